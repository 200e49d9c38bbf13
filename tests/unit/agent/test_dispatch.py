"""From a call to its result: the network that a person gives to one command, and commands where
nothing confines them.
"""

import json
import socket
import sys

import pytest
from tests.tables import table

from journeyman.agent.dispatch import Dispatch, ask_unconfined
from journeyman.agent.tools import confinement
from journeyman.agent.tools.tool import ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools
from journeyman.agent.tools.workspace import Workspace
from journeyman.gate.decision import ALLOW, Decision
from journeyman.records import Provenance, ToolCall
from journeyman.settings import HARMLESS

needs_confinement = pytest.mark.skipif(
    confinement.why_unconfined() != "", reason="the kernel confines nothing"
)
NO_NETWORK = "which is off for commands. The user can allow it: journeyman run --network"


class Desk:
    """A workspace whose calls are decided and asked about as a test says."""

    def __init__(self, root, *, answer=None, decision=ALLOW, network="ask"):
        self.questions = []
        self._answer = answer
        self.workspace = Workspace(root, network=network)
        self._dispatch = Dispatch(
            Toolbox(workspace_tools(self.workspace, ToolLimits())),
            lambda _tool, _arguments: decision,
            self._ask,
            Provenance,
        )

    def _ask(self, question):
        self.questions.append(question)
        return self._answer

    def call(self, tool, **arguments):
        call = ToolCall(id="c1", name=tool, arguments=json.dumps(arguments))
        [(_, result)] = self._dispatch.run([call])
        return result.content


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def reaching(server):
    port = server.getsockname()[1]
    return f"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')"


CALLS = {
    "terminal": lambda code: {"command": f'echo x >> tries; {sys.executable} -c "{code}"'},
    "execute_code": lambda code: {"code": f"open('tries', 'a').write('x\\n')\n{code}"},
}


@needs_confinement
@table("tool", CALLS)
def test_a_yes_runs_it_again_with_the_network(tool, tmp_path, server):
    (tmp_path / tool).mkdir()
    desk = Desk(tmp_path / tool, answer=True)
    content = desk.call(tool, **CALLS[tool](reaching(server)))
    assert (content["output"], content["exit_code"]) == ("reached\n", 0)
    assert [(one.tool, one.rule) for one in desk.questions] == [(tool, "network.needed")]
    assert (tmp_path / tool / "tries").read_text() == "x\nx\n"
    # It was for that one command.
    desk.call(tool, **CALLS[tool](reaching(server)))
    assert len(desk.questions) == 2


@needs_confinement
@table("answer", [False, None])
@table("tool", CALLS)
def test_otherwise_the_result_says_what_it_lacks(tool, answer, tmp_path, server):
    folder = tmp_path / f"{tool} {answer}"
    folder.mkdir()
    desk = Desk(folder, answer=answer)
    content = desk.call(tool, **CALLS[tool](reaching(server)))
    assert NO_NETWORK in content["output"]
    assert content["exit_code"] == 1
    assert len(desk.questions) == 1
    assert (folder / "tries").read_text() == "x\n"


@needs_confinement
def test_where_the_network_is_off_nobody_is_asked(tmp_path, server):
    desk = Desk(tmp_path, answer=True, network="off")
    content = desk.call("terminal", **CALLS["terminal"](reaching(server)))
    assert NO_NETWORK in content["output"]
    assert desk.questions == []


@needs_confinement
def test_where_it_is_on_it_is_there(tmp_path, server):
    desk = Desk(tmp_path, network="on")
    content = desk.call("terminal", **CALLS["terminal"](reaching(server)))
    assert (content["output"], desk.questions) == ("reached\n", [])


@needs_confinement
def test_a_yes_to_the_gate_may_give_the_network(tmp_path, server):
    decision = Decision(answer="ask", rule="network", reason="It fetches.", network=True)
    desk = Desk(tmp_path, answer=True, decision=decision)
    content = desk.call("terminal", **CALLS["terminal"](reaching(server)))
    assert content["output"] == "reached\n"
    assert [one.rule for one in desk.questions] == ["network"]


NOT_FOR_WANT_OF_IT = {
    "it worked all the same": "python3 -c 'import socket; socket.has_ipv6' && exit 0",
    "it only tried": (
        "python3 -c 'import socket\ntry: socket.socket()\nexcept OSError: pass\n"
        'assert 1 == 2, "the sum is wrong"\''
    ),
    "it never asked": "echo Could not resolve host >&2; exit 6",
    "a socket with a path": "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
}


@needs_confinement
@table("why", NOT_FOR_WANT_OF_IT)
def test_nobody_is_asked_about_what_fails_otherwise(why, tmp_path):
    desk = Desk(tmp_path, answer=True)
    content = desk.call("terminal", command=NOT_FOR_WANT_OF_IT[why])
    assert desk.questions == []
    assert NO_NETWORK not in content["output"]


UNCONFINED = {
    "ls": "allow",
    "ls -la src | grep -v test | head -3": "allow",
    "git status && git diff --stat; git log --oneline -5": "allow",
    "cat 'a b.txt'": "allow",
    "make": "ask",
    "git push": "ask",
    "git": "ask",
    "lsof": "ask",
    "ls; make": "ask",
    "ls & make": "ask",
    "ls\nmake": "ask",
    "ls $(make)": "ask",
    "ls `make`": "ask",
    "cat <(make)": "ask",
    "echo x > file": "ask",
    "cat ~/.ssh/id_rsa": "ask",
    "cat /etc/passwd": "ask",
    "cat ../secret": "ask",
    "cat $HOME/x": "ask",
    "cat '": "ask",
    "git diff --output=x": "ask",
    "rg --pre ./run x": "ask",
    "X=1 ls": "ask",
    "": "ask",
}


@table("command", UNCONFINED)
def test_where_nothing_confines_commands_only_harmless_ones_run(command):
    decide = ask_unconfined(lambda _tool, _arguments: ALLOW, "it is a test", HARMLESS)
    decision = decide("terminal", {"command": command})
    assert decision.answer == UNCONFINED[command]
    if decision.answer == "ask":
        assert decision.rule == "unconfined"
        assert decision.reason == "Nothing confines commands here: it is a test."


def test_where_nothing_confines_code_it_is_asked_about_and_files_are_not():
    decide = ask_unconfined(lambda _tool, _arguments: ALLOW, "it is a test", HARMLESS)
    assert decide("execute_code", {"code": "1"}).rule == "unconfined"
    assert decide("read_file", {"path": "a"}) == ALLOW


@table("answer", ["ask", "refuse"])
def test_what_the_gate_says_itself_stays(answer):
    own = Decision(answer=answer, rule="own", reason="It is so.")
    decide = ask_unconfined(lambda _tool, _arguments: own, "it is a test", ("ls",))
    assert decide("terminal", {"command": "ls"}) == own
    assert decide("terminal", {"command": "make"}) == own
