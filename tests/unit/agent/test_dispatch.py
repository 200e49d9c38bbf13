"""Dispatching calls: network access for a single command, and commands without confinement."""

import json
import socket

import pytest
from tests.program import PYTHON
from tests.tables import table

from journeyman.agent.dispatch import Dispatch, ask_when_unconfined
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


@pytest.fixture
def tools(tmp_path):
    with Workspace(tmp_path) as workspace:
        yield {tool.name: tool for tool in workspace_tools(workspace, ToolLimits())}


class Bench:
    """A workspace with a scripted gate decision and a scripted answer to approval requests."""

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


def connect_code(server):
    port = server.getsockname()[1]
    return f"import socket; socket.create_connection(('127.0.0.1', {port})); print('reached')"


CALLS = {
    "terminal": lambda code: {"command": f'echo x >> tries; {PYTHON} -c "{code}"'},
    "execute_code": lambda code: {"code": f"open('tries', 'a').write('x\\n')\n{code}"},
}


@needs_confinement
@table("tool", CALLS)
def test_approval_reruns_the_command_with_network(tool, tmp_path, server):
    (tmp_path / tool).mkdir()
    bench = Bench(tmp_path / tool, answer=True)
    content = bench.call(tool, **CALLS[tool](connect_code(server)))
    assert (content["output"], content["exit_code"]) == ("reached\n", 0)
    assert [(one.tool, one.rule) for one in bench.questions] == [(tool, "network.needed")]
    assert (tmp_path / tool / "tries").read_text() == "x\nx\n"
    # The approval covered that one command only.
    bench.call(tool, **CALLS[tool](connect_code(server)))
    assert len(bench.questions) == 2


@needs_confinement
@table("answer", [False, None])
@table("tool", CALLS)
def test_without_approval_the_result_reports_the_missing_network(tool, answer, tmp_path, server):
    folder = tmp_path / f"{tool} {answer}"
    folder.mkdir()
    bench = Bench(folder, answer=answer)
    content = bench.call(tool, **CALLS[tool](connect_code(server)))
    assert NO_NETWORK in content["output"]
    assert content["exit_code"] == 1
    assert len(bench.questions) == 1
    assert (folder / "tries").read_text() == "x\n"


@needs_confinement
def test_network_off_asks_no_one(tmp_path, server):
    bench = Bench(tmp_path, answer=True, network="off")
    content = bench.call("terminal", **CALLS["terminal"](connect_code(server)))
    assert NO_NETWORK in content["output"]
    assert bench.questions == []


@needs_confinement
def test_network_on_needs_no_approval(tmp_path, server):
    bench = Bench(tmp_path, network="on")
    content = bench.call("terminal", **CALLS["terminal"](connect_code(server)))
    assert (content["output"], bench.questions) == ("reached\n", [])


@needs_confinement
def test_gate_approval_may_include_the_network(tmp_path, server):
    decision = Decision(answer="ask", rule="network", reason="It fetches.", network=True)
    bench = Bench(tmp_path, answer=True, decision=decision)
    content = bench.call("terminal", **CALLS["terminal"](connect_code(server)))
    assert content["output"] == "reached\n"
    assert [one.rule for one in bench.questions] == ["network"]


OTHER_FAILURES = {
    "succeeds without network": "python3 -c 'import socket; socket.has_ipv6' && exit 0",
    "fails for another reason": (
        "python3 -c 'import socket\ntry: socket.socket()\nexcept OSError: pass\n"
        'assert 1 == 2, "the sum is wrong"\''
    ),
    "only prints a network error": "echo Could not resolve host >&2; exit 6",
    "unix socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
}


@needs_confinement
@table("why", OTHER_FAILURES)
def test_other_failures_do_not_ask_for_the_network(why, tmp_path):
    bench = Bench(tmp_path, answer=True)
    content = bench.call("terminal", command=OTHER_FAILURES[why])
    assert bench.questions == []
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
def test_unconfined_commands_run_only_if_harmless(command, tools):
    decide = ask_when_unconfined(lambda _tool, _arguments: ALLOW, "it is a test", HARMLESS)
    decision = decide(tools["terminal"], {"command": command})
    assert decision.answer == UNCONFINED[command]
    if decision.answer == "ask":
        assert decision.rule == "unconfined"
        assert decision.reason == "Nothing confines commands here: it is a test."


def test_unconfined_code_asks_and_file_tools_do_not(tools):
    decide = ask_when_unconfined(lambda _tool, _arguments: ALLOW, "it is a test", HARMLESS)
    assert decide(tools["execute_code"], {"code": "1"}).rule == "unconfined"
    assert decide(tools["read_file"], {"path": "a"}) == ALLOW


@table("answer", ["ask", "refuse"])
def test_decision_of_the_gate_takes_precedence(answer, tools):
    own = Decision(answer=answer, rule="own", reason="It is so.")
    decide = ask_when_unconfined(lambda _tool, _arguments: own, "it is a test", ("ls",))
    assert decide(tools["terminal"], {"command": "ls"}) == own
    assert decide(tools["terminal"], {"command": "make"}) == own
