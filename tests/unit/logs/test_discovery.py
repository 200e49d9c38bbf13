import os
from pathlib import Path

import pytest

from journeyman.logs.discovery import default_locations, find_log_files


@pytest.fixture
def touch(tmp_path):
    def touch(*names: str) -> None:
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"12345")

    return touch


def discovered(tmp_path: Path, source: str, **environ: str) -> list[str]:
    (place,) = [one for one in default_locations(environ, tmp_path) if one.source == source]
    return [os.path.relpath(log, tmp_path) for log in place.logs]


class TestHermes:
    def test_main_and_profile_databases(self, tmp_path, touch):
        touch(
            ".hermes/state.db",
            ".hermes/profiles/work/state.db",
            ".hermes/other.db",
            ".hermes/cron/runtime.db",
            ".hermes/profiles/work/other.db",
            ".hermes/skills/x/state.db",
            ".hermes/state.db-wal",
        )
        assert discovered(tmp_path, "hermes") == [
            ".hermes/state.db",
            ".hermes/profiles/work/state.db",
        ]


class TestClaudeCode:
    def test_session_and_subagent_transcripts(self, tmp_path, touch):
        touch(
            ".claude/projects/a/s.jsonl",
            ".claude/projects/a/b/subagents/agent-x.jsonl",
            ".claude/projects/a/sessions-index.json",
            ".claude/history.jsonl",
            ".claude/todos/t.json",
        )
        assert discovered(tmp_path, "claude_code") == [
            ".claude/projects/a/s.jsonl",
            ".claude/projects/a/b/subagents/agent-x.jsonl",
        ]


class TestCodex:
    def test_live_and_archived_rollouts(self, tmp_path, touch):
        touch(
            ".codex/sessions/2026/01/02/rollout-1.jsonl",
            ".codex/archived_sessions/rollout-0.jsonl",
            ".codex/history.jsonl",
        )
        assert discovered(tmp_path, "codex") == [
            ".codex/sessions/2026/01/02/rollout-1.jsonl",
            ".codex/archived_sessions/rollout-0.jsonl",
        ]


class TestOtherAgents:
    CASES = (
        (
            *("opencode", "XDG_DATA_HOME", "x"),
            ".local/share/opencode/opencode.db",
            "x/opencode/opencode.db",
        ),
        (
            *("copilot", "COPILOT_HOME", "x"),
            ".copilot/session-state/1/events.jsonl",
            "x/session-state/1/events.jsonl",
        ),
        (
            *("gemini", "GEMINI_CLI_HOME", "x"),
            ".gemini/tmp/app/chats/session-1.jsonl",
            "x/.gemini/tmp/app/chats/session-1.jsonl",
        ),
    )

    def test_default_folders_and_those_from_the_environment(self, tmp_path, touch):
        touch(*(name for *_, default, moved in self.CASES for name in (default, moved)))
        for source, variable, folder, default, moved in self.CASES:
            assert discovered(tmp_path, source) == [default], source
            environ = {variable: str(tmp_path / folder)}
            assert discovered(tmp_path, source, **environ) == [moved], variable


class TestFiles:
    def test_only_log_suffixes_in_a_stable_order(self, tmp_path, touch):
        touch("b.JSONL", "a.json", "c.txt", "d.jsonl.gz", "z/state.db", "k/x.ndjson", "e.jsonl.bak")
        names = [os.path.relpath(path, tmp_path) for path in find_log_files(tmp_path, [])]
        assert names == ["a.json", "b.JSONL", "d.jsonl.gz", "k/x.ndjson", "z/state.db"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
    def test_unreadable_folder_is_reported(self, tmp_path, touch):
        touch("open/a.jsonl", "closed/b.jsonl")
        (tmp_path / "closed").chmod(0)
        problems = []
        try:
            assert len(list(find_log_files(tmp_path, problems))) == 1
        finally:
            (tmp_path / "closed").chmod(0o755)
        assert [problem.path for problem in problems] == [str(tmp_path / "closed")]
