"""Sessions of the real Hermes Agent against its own database."""

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.clients import ClientHome, Imported, client_program
from tests.program import Command

from journeyman.models.model import Reply
from journeyman.records import Tokens
from journeyman.testing import ScriptedServer, calls, says

pytestmark = pytest.mark.soak

_CONFIG = """
model:
  default: scripted-1
  provider: custom
  base_url: {base_url}
  api_key: none
  context_length: 64000
compression: {{threshold: 0.75, protect_first_n: 1, protect_last_n: 4, in_place: {in_place}}}
approvals:
  mode: "off"
security:
  allow_lazy_installs: false
  tirith_enabled: false
plugins:
  enabled: [blocker]
"""
_PLUGIN = """
def register(ctx):
    def before_tool(tool_name, args, **_):
        if "forbidden" in str(args):
            return {"action": "block", "message": "Not on a Friday."}
    ctx.register_hook("pre_tool_call", before_tool)
"""
_FULL = Tokens(input_tokens=60_000, output_tokens=10)
"""A prompt so large that Hermes compresses the context after it."""


class Hermes:
    """Hermes Agent in a home of its own, with a plugin that blocks a command."""

    def __init__(self, folder: Path, server: ScriptedServer, *, in_place: bool) -> None:
        self._program = client_program("hermes")
        self.home = ClientHome(folder)
        self.folder = folder / ".hermes"
        config = _CONFIG.format(base_url=server.base_url, in_place=str(in_place).lower())
        self.home.write(".hermes/config.yaml", config)
        self.home.write(".hermes/plugins/blocker/plugin.yaml", "name: blocker\nversion: '1'\n")
        self.home.write(".hermes/plugins/blocker/__init__.py", _PLUGIN)

    def ask(self, prompt: str, *arguments: str) -> None:
        environ = {"HERMES_HOME": str(self.folder)}
        self.home.run(self._program, "chat", "-Q", *arguments, "-q", prompt, **environ)

    def rows(self, statement: str) -> list[sqlite3.Row]:
        """Select from Hermes' database."""
        with closing(sqlite3.connect(self.folder / "state.db")) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(statement).fetchall()

    @property
    def results(self) -> dict[str, Any]:
        """The result of each call, without copies: a row has its call's id."""
        rows = self.rows("SELECT * FROM messages WHERE role = 'tool' ORDER BY id DESC")
        return {row["tool_call_id"]: row["content"] for row in rows}

    @property
    def call_ids(self) -> set[str]:
        rows = self.rows("SELECT tool_calls FROM messages WHERE tool_calls IS NOT NULL")
        return {call["id"] for row in rows for call in json.loads(row["tool_calls"])}


def _steps(first: int, last: int) -> list[Reply]:
    """Commands with these numbers, after the last of which the context is full."""
    commands = [("terminal", {"command": f"echo step {n}"}) for n in range(first, last + 1)]
    return [calls(one) for one in commands[:-1]] + [calls(commands[-1], tokens=_FULL)]


def _exit_code(result: str) -> int | None:
    code: int | None = json.JSONDecoder().raw_decode(result)[0].get("exit_code")
    return code


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "child sessions"])
def test_compactions_count_each_call_once(in_place: bool, tmp_path: Path, command: Command) -> None:
    script = {
        "summarization agent": [says("They walked on.")],
        "first part": [*_steps(1, 9), says("The first part is done.")],
        "second part": [*_steps(11, 19), says("The second part is done.")],
    }
    with ScriptedServer(script) as server:
        hermes = Hermes(tmp_path, server, in_place=in_place)
        hermes.ask("walk the first part")
        hermes.ask("walk the second part", "--continue")
        hermes.ask("say goodbye", "--continue")
    imported = Imported(command, hermes.folder / "state.db")

    segments = _calls_between_compactions(server)
    assert len(segments) >= 3, "the script no longer makes Hermes compress its context"
    assert sum(segments) == len(hermes.call_ids)
    stored = imported.sessions
    assert imported.verdicts() == {"ok": len(hermes.call_ids)}
    assert sum(one["calls"] for one in stored) == len(hermes.call_ids)
    totals = hermes.rows("SELECT sum(input_tokens), sum(output_tokens) FROM session_model_usage")
    assert tuple(imported.tokens().values()) == tuple(totals[0])
    assert sum(one["generations"] for one in stored) == len(segments)
    steps = imported.json("compression", stored[-1]["session"]["id"])["steps"]
    sides = [(step["before"]["total"], step["after"]["total"]) for step in steps]
    assert sides == [*pairwise(segments)]


def _calls_between_compactions(server: ScriptedServer) -> list[int]:
    """The number of calls before, between and after the requests for a summary."""
    segments = [0]
    for request in server.requests:
        if "summarization agent" in str(request.body["messages"][-1]):
            segments.append(0)
        segments[-1] += len(request.reply.tool_calls)
    return segments


def test_a_block_a_subagent_and_an_unknown_tool(tmp_path: Path, command: Command) -> None:
    errand = {"goal": "a separate errand", "context": "none"}
    script = {
        "do the work": [
            calls(("terminal", {"command": "echo hello"})),
            calls(("terminal", {"command": "cat missing.txt"})),
            calls(("terminal", {"command": "echo forbidden"})),
            calls(("delegate_task", errand)),
            calls(("no_such_tool", {})),
            says("The work is done."),
        ],
        "a separate errand": [calls(("terminal", {"command": "echo sub"})), says("Errand done.")],
    }
    with ScriptedServer(script) as server:
        hermes = Hermes(tmp_path, server, in_place=True)
        hermes.ask("do the work")
    imported = Imported(command, hermes.folder / "state.db")

    failed = [one for one in hermes.results.values() if one[0] == "{" and _exit_code(one)]
    verdicts = imported.verdicts()
    assert verdicts.total() == len(hermes.call_ids)
    assert verdicts["failed"] == len(failed) == 1
    assert verdicts["refused"] == verdicts["invalid"] == 1
    main = imported.sessions[0]
    assert main["session"]["platform"] == "cli"
    (dispatched,) = [
        call for call in imported.calls(main["session"]["id"]) if "errand" in str(call)
    ]
    assert verdicts["unknown"] >= 1, dispatched
    children = [one["session"].get("lineage", {}).get("kind") for one in imported.sessions[1:]]
    assert children == ["subagent"]
