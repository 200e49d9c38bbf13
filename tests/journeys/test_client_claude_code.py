"""Sessions of the real Claude Code, two versions of it, against its own transcripts."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.claude_code_host import blocks, run_claude, tokens, transcripts
from tests.clients import HOOK, ClientHome, Imported
from tests.program import PYTHON, Command

from journeyman.testing import ScriptedServer, calls, says

pytestmark = pytest.mark.soak


class ClaudeCode:
    """Claude Code in a home of its own."""

    def __init__(self, name: str, folder: Path, server: ScriptedServer) -> None:
        self._name = name
        self._server = server
        self.home = ClientHome(folder)

    def ask(self, prompt: str, *arguments: str) -> Any:
        """Have Claude Code answer a prompt; return its own report."""
        return run_claude(self.home, self._name, self._server, prompt, *arguments)

    @property
    def projects(self) -> Path:
        return self.home.folder / ".claude/projects"

    @property
    def lines(self) -> list[dict[str, Any]]:
        return transcripts(self.home.folder)


@pytest.mark.parametrize("name", ["claude_code", "older_claude_code"])
class TestClaudeCode:
    def test_a_fork_a_subagent_and_a_denial(
        self, name: str, tmp_path: Path, command: Command
    ) -> None:
        script = {
            "look around": [
                calls(("Bash", {"command": "ls; echo hello"})),
                calls(("Bash", {"command": "cat missing.txt"}), ("Bash", {"command": "date"})),
                calls(("Write", {"file_path": "denied.txt", "content": "x"})),
                calls(
                    (
                        "Agent",
                        {
                            "description": "Ask another",
                            "prompt": "a separate errand",
                            "subagent_type": "general-purpose",
                        },
                    )
                ),
                says("I looked around."),
            ],
            "a separate errand": [calls(("Bash", {"command": "echo sub"})), says("Errand done.")],
            "go on": [calls(("Bash", {"command": "echo more"})), says("I went on.")],
        }
        with ScriptedServer(script) as server:
            claude = ClaudeCode(name, tmp_path, server)
            first = claude.ask("look around")
            fork = claude.ask("go on", "--resume", first["session_id"], "--fork-session")
        imported = Imported(command, claude.projects)

        lines = claude.lines
        asked, answered = blocks(lines, "tool_use"), blocks(lines, "tool_result")
        # Not from the report: after a subagent in the background, it covers only the last turn.
        denied = {
            id_
            for id_, block in answered.items()
            if "requested permissions" in str(block["content"])
        }
        failed = {id_ for id_, block in answered.items() if block.get("is_error")} - denied
        verdicts = imported.verdicts()
        assert verdicts.total() == len(asked) == 7
        assert verdicts["refused"] == len(denied) == 1
        assert verdicts["failed"] + verdicts["invalid"] == len(failed) == 1
        assert imported.tokens() == tokens(lines)

        by_id = {one["session"]["id"]: one for one in imported.sessions}
        parent, child = by_id[first["session_id"]], by_id[fork["session_id"]]
        assert child["session"]["lineage"] == {"parent": first["session_id"], "kind": "branch"}
        assert "lineage" not in parent["session"]
        assert child["tokens"]["input_tokens"] == fork["usage"]["input_tokens"]
        assert child["session"]["title"] != parent["session"]["title"]
        subagents = [
            one
            for one in by_id.values()
            if one["session"].get("lineage", {}).get("kind") == "subagent"
        ]
        assert [one["calls"] for one in subagents] == [1]

    def test_hooks_a_background_command_and_a_compaction(
        self, name: str, tmp_path: Path, command: Command
    ) -> None:
        background = {"command": "sleep 0.2; echo late", "run_in_background": True}
        script = {
            "work with hooks": [
                calls(("Bash", {"command": "echo rewritten"})),
                calls(("Bash", {"command": "echo forbidden"})),
                calls(("Bash", background)),
                says("The hooks have spoken."),
            ],
            "TEXT ONLY|detailed summary": [says("<summary>There were hooks.</summary>")],
            "after the summary": [calls(("Bash", {"command": "echo after"})), says("After.")],
        }
        with ScriptedServer(script) as server:
            claude = ClaudeCode(name, tmp_path, server)
            hook = claude.home.write("hook.py", HOOK)
            hooks = [{"type": "command", "command": f"{PYTHON} {hook}"}]
            before_tools = [{"matcher": "Bash", "hooks": hooks}]
            settings = {"hooks": {"PreToolUse": before_tools}}
            claude.home.write(".claude/settings.json", settings)
            session = claude.ask("work with hooks", "--allowedTools", "Bash")["session_id"]
            claude.ask("/compact", "--resume", session)
            claude.ask("after the summary", "--resume", session, "--allowedTools", "Bash")
        imported = Imported(command, claude.projects)

        lines = claude.lines
        assert imported.verdicts().total() == len(blocks(lines, "tool_use")) == 4
        rewritten, forbidden, late, after = imported.calls(session)
        assert json.loads(rewritten["arguments"])["command"] == "echo what ran; exit 3"
        verdicts = imported.verdicts()
        assert verdicts["failed"] == 1  # the rewritten command exits with 3
        assert verdicts["refused"] == 1
        assert forbidden["result"].endswith("Not on a Friday.")
        assert imported.tokens() == tokens(lines)
        assert [call.get("generation", 0) for call in (late, after)] == [0, 1]
        assert verdicts["ok"] + verdicts["unknown"] == 2
