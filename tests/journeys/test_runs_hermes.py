"""Runs of the real Hermes Agent: what it does is what the result says, limits hold, and a fork
keeps the cached prefix of its original.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests import client_run_checks as checks
from tests.client_runs import TASK, Runs, Server, run, shared_prefix
from tests.clients import ClientHome, client_program
from tests.hermes_host import RUN_CONFIG, run_environ

from journeyman.hosts.hermes import Hermes
from journeyman.hosts.host import Plug
from journeyman.hosts.process import HostRunner
from journeyman.hosts.runner import RunRequest
from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]

_GATE = """
def register(ctx, *, is_gated):
    def before_tool(tool_name, args, **_):
        if "forbidden" in str(args):
            return {"action": "block", "message": "Not on a Friday."}
    ctx.register_hook("pre_tool_call", before_tool)
"""


class HermesRuns:
    """A home in which Hermes runs."""

    page = Hermes()
    requests_path = "/v1/chat/completions"
    key = "OPENROUTER_API_KEY"
    has_approvals = False

    def __init__(self, folder: Path) -> None:
        self.home = ClientHome(folder)
        self.program = client_program("hermes")

    def environ(self, server: Server) -> dict[str, str]:
        config = RUN_CONFIG.replace('"off"', "manual") if self.has_approvals else RUN_CONFIG
        self.home.write(".hermes/config.yaml", config)
        path = f"{self.program.parent}:{os.environ['PATH']}"
        home = {"HOME": str(self.home.folder), "PATH": path}
        return {**home, **run_environ(server.base_url)}

    def command(self, line: str) -> Reply:
        return calls(("terminal", {"command": line}))

    def edit(self) -> Reply:
        arguments = {"path": "notes.txt", "old_string": "one", "new_string": "1"}
        return calls(("patch", {"mode": "replace", **arguments}))

    def errands(self) -> list[Reply]:
        tools: list[tuple[str, dict[str, Any]]] = [
            ("terminal", {"command": "echo > new.txt"}),
            ("write_file", {"path": "new.txt", "content": "x"}),
            ("execute_code", {"code": "open('new.txt', 'w')"}),
            ("memory", {"action": "add", "target": "memory", "content": "x"}),
            ("todo", {"todos": [{"id": "1", "content": "x", "status": "pending"}]}),
        ]
        return [calls(tool) for tool in tools]

    def prefix(self, body: Any) -> list[Any]:
        return [*body["tools"], *body["messages"]]

    def add_own_hook(self, command: str) -> None:
        raise NotImplementedError


_OTHERS = (
    checks.a_gate_decides,
    checks.a_fork_only_answers,
    checks.without_a_key_it_is_not_logged_in,
)
"""What is different with Hermes: its hooks are those of plugins, all sessions are in one file, and
an endpoint of one's own may need no key.
"""
CHECKS = [check for check in checks.CHECKS if check not in _OTHERS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_runs(check: Callable[[Runs], None], tmp_path: Path) -> None:
    check(HermesRuns(tmp_path))


def test_without_a_provider_it_is_not_logged_in(tmp_path: Path) -> None:
    runs = HermesRuns(tmp_path)
    with ScriptedServer({}) as server:
        environ = runs.environ(server)
        runs.home.write(".hermes/config.yaml", "")
        request = RunRequest(prompt=TASK, folder=runs.home.work)
        unset = {runs.key: "", "OPENROUTER_BASE_URL": ""}
        result = HostRunner(runs.page, environ=environ | unset).run(request)
    assert (result.status, server.requests) == ("not_logged_in", [])
    assert "hermes setup" in result.reason


def test_approvals_of_hermes_hold_but_with_full_access(tmp_path: Path) -> None:
    runs = HermesRuns(tmp_path)
    runs.has_approvals = True
    line = 'python3 -c \'open("made.txt", "w")\''
    with ScriptedServer({TASK: [runs.command(line), says("Done.")]}) as server:
        held = run(runs, server)
        assert not (runs.home.work / "made.txt").exists()
        ran = run(runs, server, f"{TASK} again", access="all")
    assert [call.denied for call in (*held.calls, *ran.calls)] == [True, False]
    assert (runs.home.work / "made.txt").exists()


def test_another_plugin_decides_as_well(tmp_path: Path) -> None:
    runs = HermesRuns(tmp_path)
    plugin = runs.home.write("gate.py", _GATE)
    words = [runs.command("echo forbidden > no.txt"), runs.command("echo > yes.txt"), says("Done.")]
    with ScriptedServer({TASK: words}) as server:
        ran = run(runs, server, plug=Plug(plugin=str(plugin)))
    assert [call.denied for call in ran.calls] == [True, False]
    assert "Not on a Friday." in ran.result.denied[0].reason
    assert {path.name for path in runs.home.work.glob("*.txt")} == {"notes.txt", "yes.txt"}
    checks.check_as_imported(runs, ran)


def test_a_fork_only_answers(tmp_path: Path) -> None:
    runs = HermesRuns(tmp_path)
    denied = [reply for _ in range(6) for reply in runs.errands()]
    script = {
        TASK: [runs.command("echo hi"), says("It is done.")],
        "Look back": [*denied, says("So.")],
        "And then": [says("Nothing.")],
    }
    with ScriptedServer(script) as server:
        original = run(runs, server).result
        before, asked = _rows(runs, original.session), len(server.requests)
        fork = run(runs, server, "Look back", fork=original.session, tools=False).result
        assert _rows(runs, original.session) == before
        run(runs, server, "And then", resume=original.session)
        before_fork, *_, last = (request.body for request in server.requests[asked - 1 :])
        forked = server.requests[asked].body
    assert shared_prefix(runs, before_fork, forked) == shared_prefix(runs, before_fork, last) == 1.0
    assert fork.session not in ("", original.session)
    assert (fork.status, fork.text, fork.calls, len(fork.denied)) == ("done", "So.", 30, 30)
    assert (fork.turns, fork.tokens.input_tokens) == (31, 3_100)
    assert {path.name for path in runs.home.work.iterdir()} == {".git", "notes.txt"}


def _rows(runs: HermesRuns, session: str) -> list[Any]:
    """What the database has of a session."""
    with closing(sqlite3.connect(runs.home.folder / ".hermes/state.db")) as connection:
        messages = connection.execute("SELECT * FROM messages WHERE session_id = ?", (session,))
        found = connection.execute("SELECT * FROM sessions WHERE id = ?", (session,))
        return [*messages, *found]


def test_without_its_plugin_nothing_runs(tmp_path: Path) -> None:
    """A wrapper may set the folder of plugins itself."""
    runs = HermesRuns(tmp_path)
    wrapper = runs.home.write(
        "bin/hermes", f'#!/bin/sh\nHERMES_BUNDLED_PLUGINS= exec "{runs.program}" "$@"\n'
    )
    wrapper.chmod(0o700)
    with ScriptedServer({TASK: [says("Done.")]}) as server:
        path = {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
        result = run(runs, server, environ=path).result
    assert (result.status, server.requests) == ("failed", [])
    assert "hermes update" in result.reason


def test_logins(tmp_path: Path) -> None:
    runs = HermesRuns(tmp_path)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    assert runs.page.login(str(runs.program), environ) == "unknown"
    assert runs.page.login("/no/such/program", environ) == "unknown"
    key = ("--type", "api-key", "--api-key", "none")
    runs.home.run(runs.program, "auth", "add", "openrouter", *key)
    assert runs.page.login(str(runs.program), environ) == "yes"
