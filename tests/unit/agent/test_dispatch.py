"""Dispatching calls: network access for a single command, and commands without confinement."""

import json
import socket

import pytest
from tests.program import PYTHON

from journeyman.agent.dispatch import Dispatch
from journeyman.agent.factory import decide_by_risk
from journeyman.agent.tools import confinement
from journeyman.agent.tools.tool import ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools
from journeyman.agent.tools.workspace import Workspace
from journeyman.gate.decision import ALLOW, Decision
from journeyman.gate.gate import Gate
from journeyman.records import Provenance, ToolCall

needs_confinement = pytest.mark.skipif(
    confinement.why_unconfined() != "", reason="the kernel confines nothing"
)


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
            Provenance(),
        )

    def _ask(self, question):
        self.questions.append(question)
        return self._answer

    def call(self, tool, **arguments):
        call = ToolCall(id="c1", name=tool, arguments=json.dumps(arguments))
        return self._dispatch.run(call).content


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


def test_unconfined_code_asks_and_file_tools_do_not(tools, tmp_path):
    decide = decide_by_risk(Gate(tmp_path), "it is a test")
    assert decide(tools["execute_code"], {"code": "1"}).rule == "unconfined"
    assert decide(tools["read_file"], {"path": "a"}) == ALLOW


def test_decision_of_the_gate_takes_precedence(tools, tmp_path):
    decide = decide_by_risk(Gate(tmp_path), "it is a test")
    assert decide(tools["terminal"], {"command": "git push"}).rule == "git.push"
    assert decide(tools["terminal"], {"command": "make"}).rule == "unconfined"
