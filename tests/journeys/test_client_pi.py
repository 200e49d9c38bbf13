"""Sessions of the real pi coding agent against its own lines."""

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
_FULL = Tokens(input_tokens=120_000, output_tokens=10)
"""A prompt so large that pi compacts the context after it."""
_EXTENSION = """
export default function (pi) {
  pi.on("tool_call", async (event) => {
    if (event.input.command === "echo forbidden") return { block: true };
    if (event.input.command === "git push") return { block: true, reason: "Blocked by user" };
  });
}
"""


def _models(base_url: str) -> dict[str, Any]:
    cost = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 0}
    model = {"id": "m1", "cost": cost, "contextWindow": 128_000, "maxTokens": 8_192}
    provider = {"baseUrl": base_url, "api": "openai-completions", "apiKey": "none"}
    return {"providers": {"scripted": {**provider, "models": [model]}}}


class Pi:
    """pi in a home of its own, with an extension that blocks two commands."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self._program = client_program("pi")
        self.home = ClientHome(folder)
        self.home.write(".pi/agent/models.json", _models(server.base_url))
        self.home.write(".pi/agent/extensions/gate.ts", _EXTENSION)
        self.sessions = folder / ".pi/agent/sessions"

    def ask(self, prompt: str, *arguments: str) -> None:
        arguments = ("--model", "scripted/m1", *arguments, "-p", prompt)
        self.home.run(self._program, *arguments, PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of all sessions, each once: a fork repeats those of its parent."""
        lines = json_lines(self.sessions.rglob("*.jsonl"))
        found = {line["id"]: line["message"] for line in lines if line["type"] == "message"}
        return [*found.values()]


def test_a_block_an_unknown_tool_a_compaction_and_a_fork(tmp_path: Path, command: Command) -> None:
    def shell(line: str) -> tuple[str, dict[str, Any]]:
        return "bash", {"command": line}

    script = {
        "do the work": [
            calls(shell("echo hello"), ("read", {"path": "notes.txt"})),
            calls(shell("cat missing.txt"), tokens=_CACHED),
            calls(("no_such_tool", {"x": 1})),
            calls(("bash", {"cmd": "echo without a command"})),
            calls(shell("echo forbidden"), shell("git push")),
            says("The work is done.", tokens=_FULL),
        ],
        "go on": [calls(shell("exit 3")), says("I went on.")],
        "another way": [calls(shell("echo other")), says("I went another way.")],
    }
    with ScriptedServer(script) as server:
        pi = Pi(tmp_path, server)
        pi.ask("do the work")
        pi.ask("go on", "--continue")
        (first,) = pi.sessions.rglob("*.jsonl")
        pi.ask("another way", "--fork", str(first))
    imported = Imported(command, pi.sessions)

    messages = pi.messages
    results = [one for one in messages if one["role"] == "toolResult"]
    errors = [one["content"][0]["text"] for one in results if one["isError"]]
    failed = [text for text in errors if "Command exited with code" in text]
    blocked = [text for text in errors if "blocked" in text.lower()]
    verdicts = imported.verdicts()
    assert verdicts.total() == len(results) == 9
    assert verdicts["failed"] == len(failed) == 2
    assert verdicts["refused"] == len(blocked) == 2
    assert verdicts["invalid"] == len(errors) - len(failed) - len(blocked) == 2

    used, cost = Counter[str](), 0.0
    for usage in (one["usage"] for one in messages if one["role"] == "assistant"):
        used.update({name: usage[name] for name in ("input", "output", "cacheRead")})
        cost += usage["cost"]["total"]
    assert imported.tokens() == {
        "input_tokens": used["input"],
        "output_tokens": used["output"],
        "cache_read_tokens": used["cacheRead"],
    }
    main, fork = imported.sessions
    assert main["cost_usd"] + fork["cost_usd"] == pytest.approx(cost)
    assert fork["session"]["lineage"] == {"parent": main["session"]["id"], "kind": "branch"}
    assert (main["calls"], main["generations"], fork["calls"]) == (8, 2, 1)
    made_in = [call.get("generation", 0) for call in imported.calls(main["session"]["id"])]
    assert made_in == [0] * 7 + [1]
