"""Sessions of the real opencode against its own database."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.clients import ClientHome, Imported, client_program
from tests.program import Command

from journeyman.testing import ScriptedServer, calls, says

pytestmark = pytest.mark.soak

_OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}


def _config(base_url: str) -> dict[str, Any]:
    model = {"name": "m1", "tool_call": True, "limit": {"context": 128_000, "output": 8_192}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": base_url, "apiKey": "none"},
        "models": {"m1": model},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
        "permission": {"webfetch": "ask"},
    }


def test_a_subagent_a_refusal_an_unknown_tool_and_a_resumed_session(
    tmp_path: Path, command: Command
) -> None:
    home = ClientHome(tmp_path)

    def shell(line: str) -> tuple[str, dict[str, Any]]:
        return "bash", {"command": line, "description": "a command"}

    errand = {
        "description": "Ask another",
        "prompt": "a separate errand",
        "subagent_type": "general",
    }
    script = {
        "do the work": [
            calls(shell("echo hello"), ("read", {"filePath": str(home.work / "notes.txt")})),
            calls(shell("cat missing.txt")),
            calls(("no_such_tool", {"x": 1})),
            calls(("task", errand)),
            says("The work is done."),
        ],
        "a separate errand": [calls(shell("echo sub")), says("Errand done.")],
        "read a page": [calls(("webfetch", {"url": "http://127.0.0.1:1/", "format": "text"}))],
    }
    with ScriptedServer(script) as server:
        home.write(".config/opencode/opencode.json", _config(server.base_url))
        program = client_program("opencode")
        home.run(program, "run", "do the work", **_OFFLINE)
        home.run(program, "run", "-c", "read a page", code=None, **_OFFLINE)
    database = tmp_path / ".local/share/opencode/opencode.db"
    imported = Imported(command, database)

    with closing(sqlite3.connect(database)) as connection:
        parts = [json.loads(data) for (data,) in connection.execute("SELECT data FROM part")]
        tokens = "SELECT sum(tokens_input), sum(tokens_output) FROM session"
        used = connection.execute(tokens).fetchone()
    tools = [part for part in parts if part["type"] == "tool"]
    exits = [part["state"].get("metadata", {}).get("exit") for part in tools]
    refused = [part for part in tools if "rejected permission" in part["state"].get("error", "")]
    assert imported.verdicts() == {
        "ok": 4,
        "failed": sum(bool(code) for code in exits),
        "invalid": sum(part["tool"] == "invalid" for part in tools),
        "refused": len(refused),
    }
    assert imported.verdicts().total() == len(tools) == 7
    assert tuple(imported.tokens().values()) == used
    kinds = {one["session"].get("lineage", {}).get("kind"): one for one in imported.sessions}
    assert kinds.keys() == {None, "subagent"}
    assert kinds["subagent"]["calls"] == 1
