"""The real Claude Code with Journeyman's hooks, for tests, and what its transcripts say."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.clients import ClientHome, client_program, json_lines
from tests.hosts import HostHome

from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls

QUIET = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def run_claude(home: ClientHome, name: str, server: ScriptedServer, *arguments: str) -> Any:
    """Run `claude -p`, and return its own report."""
    printed = home.run(
        client_program(name),
        *("-p", *arguments, "--output-format", "json"),
        **QUIET,
        ANTHROPIC_BASE_URL=server.url,
    )
    return json.loads(printed)


def transcripts(folder: Path) -> list[dict[str, Any]]:
    """The lines of all transcripts in a home."""
    return json_lines((folder / ".claude/projects").rglob("*.jsonl"))


def blocks(lines: Iterable[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The blocks of a kind in all lines, by the id of their call: a copy counts once."""
    found = {}
    for line in lines:
        message = line.get("message") if line.get("type") in ("user", "assistant") else None
        content = message.get("content") if message else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == kind:
                found[block.get("id") or block["tool_use_id"]] = block
    return found


def tokens(lines: Iterable[dict[str, Any]]) -> dict[str, int]:
    """The tokens of all answers in the lines, each answer once."""
    answers = {
        line["message"]["id"]: line["message"]["usage"]
        for line in lines
        if line.get("type") == "assistant" and line["message"]["model"] != "<synthetic>"
    }
    counted = Counter[str]()
    for usage in answers.values():
        counted["input_tokens"] += usage["input_tokens"]
        counted["output_tokens"] += usage["output_tokens"]
    return dict(counted)


def bash(line: str) -> Reply:
    """A reply that runs a command."""
    return calls(("Bash", {"command": line}))


class ClaudeHome(HostHome):
    """A home with Claude Code, Journeyman's hooks and experience of the work folder. `key` is that
    of a person who may decide.
    """

    def __init__(self, folder: Path, name: str = "claude_code", **hosts: object) -> None:
        super().__init__(folder)
        self.name = name
        self.configure(**{"start": "never", **hosts})
        self.write_experience()
        self.key = self.install("claude-code")

    def ask(self, server: ScriptedServer, *arguments: str) -> Any:
        """Have Claude Code work, with permission to run commands; return its own report."""
        return run_claude(self, self.name, server, *arguments, "--allowedTools", "Bash")

    def stored_whole(self, session: str) -> Any:
        """Wait until a session is stored with all calls and tokens of its transcript."""

        def is_whole(one: Any) -> bool:
            lines = self.lines(session)
            counted = {kind: one["tokens"][kind] for kind in ("input_tokens", "output_tokens")}
            return one["calls"] == len(blocks(lines, "tool_use")) and counted == tokens(lines)

        return self.stored(session, is_whole)

    def lines(self, session: str) -> list[dict[str, Any]]:
        """The lines of one session's transcript, without its subagents'."""
        return json_lines((self.folder / ".claude/projects").glob(f"*/{session}.jsonl"))
