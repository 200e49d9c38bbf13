"""Sessions of the real GitHub Copilot CLI against its own event logs."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.clients import ClientHome, Imported, client_program, json_lines
from tests.program import Command

from journeyman.records import Tokens
from journeyman.testing import ScriptedServer, calls, says

pytestmark = pytest.mark.soak

_CACHED = Tokens(input_tokens=600, cache_read_tokens=400, output_tokens=50)


class Copilot:
    """Copilot CLI in a home of its own, which may not push."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self._program = client_program("copilot")
        self.home = ClientHome(folder)
        self.sessions = folder / ".copilot/session-state"
        self._environ = {
            "COPILOT_HOME": str(folder / ".copilot"),
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": server.base_url,
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "m1",
            "COPILOT_OFFLINE": "true",
        }

    def ask(self, prompt: str, *arguments: str) -> None:
        permissions = ("--allow-all-tools", "--deny-tool", "shell(git push)")
        arguments = ("-p", prompt, *arguments, *permissions)
        self.home.run(self._program, *arguments, **self._environ)

    def data(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of a kind."""
        lines = json_lines(self.sessions.rglob("events.jsonl"))
        return [line["data"] for line in lines if line["type"] == kind]


def test_a_subagent_a_refusal_a_resumed_session_and_a_compaction(
    tmp_path: Path, command: Command
) -> None:
    def shell(line: str) -> tuple[str, dict[str, Any]]:
        return "bash", {"command": line, "description": "a command"}

    errand = {
        "agent_type": "general-purpose",
        "description": "Ask another",
        "name": "messenger",
        "prompt": "a separate errand",
    }
    script = {
        "do the work": [
            calls(shell("echo hello"), ("view", {"path": str(tmp_path / "work/notes.txt")})),
            calls(shell("cat missing.txt"), tokens=_CACHED),
            calls(("no_such_tool", {"x": 1})),
            calls(("bash", {"cmd": "echo without a command"})),
            calls(shell("git push origin")),
            calls(("task", errand)),
            says("The work is done."),
        ],
        "a separate errand": [calls(shell("echo sub")), says("Errand done.")],
        "detailed summary": [says("<overview>There was work.</overview>")],
        "go on": [calls(shell("exit 3")), says("I went on.")],
    }
    with ScriptedServer(script) as server:
        copilot = Copilot(tmp_path, server)
        copilot.ask("do the work")
        copilot.ask("/compact", "--continue")
        copilot.ask("go on", "--continue")
    imported = Imported(command, copilot.sessions)

    results = copilot.data("tool.execution_complete")
    exits = [one.get("shellExecution", {}).get("exitCode") for one in results]
    errors = Counter(one["error"]["code"] for one in results if not one["success"])
    asked = [call for one in copilot.data("assistant.message") for call in one["toolRequests"]]
    verdicts = imported.verdicts()
    assert verdicts.total() == len(asked) == len(results) == 9
    assert verdicts["failed"] == sum(bool(code) for code in exits) == 2
    assert verdicts["refused"] == errors["denied"] == 1
    assert verdicts["invalid"] == errors["failure"] == 2

    totals = copilot.data("session.shutdown")[-1]["accountingSnapshot"]["modelMetrics"]["m1"]
    (compaction,) = copilot.data("session.compaction_complete")
    used = Counter(totals["usage"]) + Counter(_numbers(compaction["compactionTokensUsed"]))
    assert imported.tokens() == {
        "input_tokens": used["inputTokens"] - used["cacheReadTokens"],
        "output_tokens": used["outputTokens"],
        "cache_read_tokens": used["cacheReadTokens"],
    }
    main, subagent = imported.sessions
    assert (main["calls"], main["generations"], subagent["calls"]) == (8, 2, 1)
    assert subagent["session"]["lineage"] == {"parent": main["session"]["id"], "kind": "subagent"}
    made_in = [call.get("generation", 0) for call in imported.calls(main["session"]["id"])]
    assert made_in == [0] * 7 + [1]


def _numbers(fields: dict[str, Any]) -> dict[str, int]:
    return {name: value for name, value in fields.items() if isinstance(value, int)}
