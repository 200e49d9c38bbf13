"""Chats of the real Gemini CLI against its own lines."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.clients import ClientHome, Imported, client_program, json_lines
from tests.gemini_server import GeminiServer
from tests.program import Command

from journeyman.records import Tokens
from journeyman.testing import calls, says

pytestmark = pytest.mark.soak

_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
}
_POLICY = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push"
decision = "deny"
priority = 900
"""
_CACHED = Tokens(input_tokens=600, cache_read_tokens=400, output_tokens=50, reasoning_tokens=20)
_FULL = Tokens(input_tokens=900_000, output_tokens=10)
"""A prompt so large that Gemini CLI compresses the chat before it goes on."""


class Gemini:
    """Gemini CLI in a home of its own, which may not push."""

    def __init__(self, folder: Path, server: GeminiServer) -> None:
        self._program = client_program("gemini")
        self._server = server
        self.home = ClientHome(folder)
        self.home.write(".gemini/settings.json", _SETTINGS)
        self.home.write(".gemini/policies/deny.toml", _POLICY)
        self.chats = folder / ".gemini/tmp/work/chats"

    def ask(self, prompt: str, *arguments: str) -> None:
        flags = ("-m", "gemini-2.5-pro", "--approval-mode", "yolo")
        environ = {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self._server.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        self.home.run(self._program, *flags, "-p", prompt, *arguments, **environ)

    @property
    def answers(self) -> dict[str, Any]:
        """The answers of all chats by id: a line that repeats one has more of it."""
        lines = json_lines(self.chats.rglob("*.jsonl"))
        return {line["id"]: line for line in lines if line.get("type") == "gemini"}


def test_a_subagent_a_refusal_a_resumed_chat_and_a_compression(
    tmp_path: Path, command: Command
) -> None:
    def shell(line: str) -> tuple[str, dict[str, Any]]:
        return "run_shell_command", {"command": line, "description": "a command"}

    errand = {"agent_name": "generalist", "prompt": "a separate errand"}
    script = {
        "do the work": [
            calls(shell("echo hello"), ("read_file", {"file_path": "notes.txt"})),
            calls(shell("cat missing.txt"), tokens=_CACHED),
            calls(("no_such_tool", {"x": 1})),
            calls(("run_shell_command", {"cmd": "echo without a command"})),
            calls(shell("git push origin")),
            calls(("invoke_agent", errand)),
            says("The work is done."),
        ],
        "a separate errand": [
            calls(shell("echo sub")),
            calls(("complete_task", {"result": {"response": "Errand done."}})),
        ],
        "Generate a new <state_snapshot>|Critically evaluate": [
            says("<state_snapshot>There was work.</state_snapshot>")
        ],
        "go on": [calls(shell("exit 3"), tokens=_FULL), calls(shell("echo after")), says("Yes.")],
    }
    with GeminiServer(script) as server:
        gemini = Gemini(tmp_path, server)
        gemini.ask("do the work")
        gemini.ask("go on", "-r", "latest")
    imported = Imported(command, gemini.chats)

    answers = gemini.answers.values()
    made = [call for answer in answers for call in answer.get("toolCalls", ())]
    results = [str(call["result"]) for call in made]
    errors = [text for call, text in zip(made, results, strict=True) if call["status"] == "error"]
    denied = [text for text in errors if "denied by policy" in text]
    exits = [code for text in results for code in re.findall(r"Exit Code: (\d+)", text)]
    verdicts = imported.verdicts()
    assert verdicts.total() == len(made) == 11
    assert verdicts["failed"] == len(exits) == 2
    assert verdicts["refused"] == len(denied) == 1
    assert verdicts["invalid"] == len(errors) - len(denied) == 2

    used = Counter[str]()
    for answer in answers:
        used.update(answer["tokens"])
    assert imported.tokens() == {
        "input_tokens": used["input"] - used["cached"],
        "output_tokens": used["output"] + used["thoughts"],
        "cache_read_tokens": used["cached"],
    }
    main, subagent = imported.sessions
    assert (main["calls"], main["generations"], subagent["calls"]) == (9, 2, 2)
    assert subagent["session"]["lineage"] == {"parent": main["session"]["id"], "kind": "subagent"}
    made_in = [call.get("generation", 0) for call in imported.calls(main["session"]["id"])]
    assert made_in == [0] * 8 + [1]
