"""Sessions of the real Codex against its own rollouts."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.clients import HOOK, ClientHome, Imported
from tests.codex_host import configure_codex, payloads, run_codex, tokens
from tests.program import PYTHON, Command

from journeyman.testing import ScriptedServer, calls, says

pytestmark = pytest.mark.soak


class Codex:
    """Codex in a home of its own, with a hook before every command."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.home = ClientHome(folder)
        configure_codex(self.home, server)
        hook = self.home.write("hook.py", HOOK)
        hooks = [{"type": "command", "command": f"{PYTHON} {hook}"}]
        before_tools = [{"matcher": "Bash", "hooks": hooks}]
        self.home.write(".codex/hooks.json", {"hooks": {"PreToolUse": before_tools}})

    def ask(self, *arguments: str) -> list[dict[str, Any]]:
        """Have Codex work; return the events that it printed."""
        return run_codex(self.home, *arguments)

    @property
    def sessions(self) -> Path:
        return self.home.folder / ".codex/sessions"

    @property
    def payloads(self) -> list[dict[str, Any]]:
        return payloads(self.home.folder)


def test_hooks_a_late_end_an_unknown_tool_and_a_fork(tmp_path: Path, command: Command) -> None:
    script = {
        "do the work": [
            calls(("exec_command", {"cmd": "echo hello"})),
            calls(("exec_command", {"cmd": "cat missing.txt"})),
            calls(("exec_command", {"cmd": "sleep 1; exit 4", "yield_time_ms": 250})),
            calls(("exec_command", {"cmd": "echo forbidden"})),
            calls(("exec_command", {"cmd": "echo rewritten"})),
            calls(("no_such_tool", {"x": 1})),
            calls(("exec_command", {"cmd": "sleep 2"})),
            says("The work is done."),
        ],
        "go on": [calls(("exec_command", {"cmd": "echo more"})), says("I went on.")],
    }
    with ScriptedServer(script) as server:
        codex = Codex(tmp_path, server)
        session = codex.ask("do the work")[0]["thread_id"]
        fork = codex.ask("fork", session, "go on")[0]["thread_id"]
        codex.ask("resume", session, "go on")
    imported = Imported(command, codex.sessions)

    lines = codex.payloads
    kinds = Counter(payload.get("type") for payload in lines)
    ends = [
        payload["item"]
        for payload in lines
        if payload.get("type") == "item_completed" and payload["item"]["type"] == "CommandExecution"
    ]
    failed = [item for item in ends if item["exit_code"]]
    verdicts = imported.verdicts()
    assert verdicts.total() == kinds["function_call"] == 9
    assert verdicts["failed"] == len(failed) == 3  # the missing file, the late end, the rewritten
    assert verdicts["refused"] == verdicts["invalid"] == 1
    assert verdicts["ok"] == len(ends) - len(failed) == 4

    assert imported.tokens() == tokens(lines)
    by_id = {one["session"]["id"]: one for one in imported.sessions}
    assert by_id[fork]["session"]["lineage"] == {"parent": session, "kind": "branch"}
    assert [by_id[id_]["calls"] for id_ in (session, fork)] == [8, 1]
    rewritten = imported.calls(session)[4]
    assert json.loads(rewritten["arguments"])["cmd"] == "echo what ran; exit 3"


def test_a_command_that_ends_after_the_first_import(tmp_path: Path, command: Command) -> None:
    script = {
        "start it": [
            calls(("exec_command", {"cmd": "sleep 1; exit 4", "yield_time_ms": 250})),
            calls(("exec_command", {"cmd": "sleep 2"})),
            says("It ran."),
        ]
    }
    with ScriptedServer(script) as server:
        codex = Codex(tmp_path, server)
        session = codex.ask("start it")[0]["thread_id"]
    (rollout,) = codex.sessions.rglob("*.jsonl")
    lines = rollout.read_text().splitlines(keepends=True)
    late = next(at for at, line in enumerate(lines) if '"CommandExecution"' in line)
    before = tmp_path / "copy" / rollout.name
    before.parent.mkdir()
    before.write_text("".join(lines[:late]))
    imported = Imported(command, before.parent)
    assert imported.verdicts()["failed"] == 0

    with before.open("a") as file:
        file.write("".join(lines[late:]))
    imported.read()

    assert imported.verdicts() == {"failed": 1, "ok": 1}
    assert imported.calls(session)[0]["recorded"]["exit_code"] == 4
