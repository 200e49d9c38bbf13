"""The sample corpus: reproducible, produced by real execution, and consistent with its metadata."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from journeyman.testing import Corpus, Source, write_corpus

SOURCES: tuple[Source, ...] = ("claude_code", "codex", "hermes", "chat")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def blocks(file: Path, kind: str) -> list[dict[str, Any]]:
    """Return the content blocks of one kind in a Claude Code transcript."""
    contents = [
        line["message"]["content"] for line in lines(file) if line["type"] in ("user", "assistant")
    ]
    return [b for c in contents if isinstance(c, list) for b in c if b["type"] == kind]


def everything(folder: Path) -> dict[str, Any]:
    """Return all files by path; for SQLite the dump, because the file has unused bytes."""
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".db":
            connection = sqlite3.connect(file)
            found[str(file.relative_to(folder))] = list(connection.iterdump())
            connection.close()
        elif file.is_file():
            found[str(file.relative_to(folder))] = file.read_bytes()
    return found


class TestBuild:
    @pytest.mark.soak
    def test_two_builds_are_equal(self, corpus: Corpus, tmp_path: Path) -> None:
        (tmp_path / "hermes").mkdir()
        (tmp_path / "hermes" / "state.db").write_text("left over from before")
        again = write_corpus(tmp_path)
        assert everything(corpus.folder) == everything(tmp_path)
        assert [s.id for s in corpus.sessions] == [s.id for s in again.sessions]

    def test_logs_contain_nothing_from_this_machine(self, corpus: Corpus) -> None:
        for path, content in everything(corpus.folder).items():
            text = content.decode() if isinstance(content, bytes) else "\n".join(content)
            for word in ("journeyman", "site-packages", "/usr/lib", str(Path.home())):
                assert word not in text, f"{word} in {path}"
            addresses = re.findall(r"[\w.]+@[\w-]+\.\w+", text)
            assert all(address.endswith("@example.com") for address in addresses)


class TestContents:
    def test_sessions_of_every_kind(self, corpus: Corpus) -> None:
        sessions = corpus.sessions
        assert [len(corpus.of(source)) for source in SOURCES] == [12, 7, 9, 3]
        assert len({s.id for s in sessions}) == len(sessions)
        marathons = {s.source for s in sessions if s.messages >= 100}
        assert marathons == {"claude_code", "codex", "hermes"}
        (chat,) = corpus.logs("chat")
        assert [line["reward"] for line in lines(chat)] == [1.0, 1.0, 0.0]

    def test_every_call_outcome_occurs(self, corpus: Corpus) -> None:
        sessions = corpus.sessions
        assert 0.08 < sum(s.failed for s in sessions) / sum(s.calls for s in sessions) < 0.10
        assert sum(s.refused for s in sessions) >= 5
        assert sum(s.cancelled for s in sessions) >= 1
        assert sum(s.calls - s.answered for s in sessions) >= 3
        assert sum(s.failed == 0 for s in sessions) >= 10


class TestClaudeCode:
    def test_calls_and_results_match_the_session_counts(self, corpus: Corpus) -> None:
        for session in (s for s in corpus.sessions if s.source == "claude_code"):
            assert len(blocks(session.log, "tool_use")) == session.calls
            results = blocks(session.log, "tool_result")
            assert len(results) == session.answered
            bad = session.failed + session.refused + session.cancelled
            assert sum(bool(block.get("is_error")) for block in results) == bad

    def test_line_size_is_realistic(self, corpus: Corpus) -> None:
        sizes = [
            len(line)
            for file in corpus.logs("claude_code")
            for line in file.read_bytes().splitlines()
        ]
        assert 2_500 < sum(sizes) / len(sizes) < 3_500

    def test_every_parent_line_exists(self, corpus: Corpus) -> None:
        for file in corpus.logs("claude_code"):
            read = lines(file)
            known = {line["uuid"] for line in read if "uuid" in line}
            parents = {line["parentUuid"] for line in read if line.get("parentUuid")}
            assert parents <= known

    def test_subagents(self, corpus: Corpus) -> None:
        (session,) = [s for s in corpus.sessions if s.subagent]
        read = lines(session.log)
        assert session.log.parent.parent.name == session.parent
        assert all(line["isSidechain"] and line["agentId"] == session.id for line in read)
        assert {line["sessionId"] for line in read} == {session.parent}

    def test_parallel_calls_share_a_message(self, corpus: Corpus) -> None:
        asked: dict[str, int] = {}
        for file in corpus.logs("claude_code"):
            for line in lines(file):
                if line["type"] == "assistant" and line["message"]["content"][0].get("input"):
                    message = line["message"]["id"]
                    asked[message] = asked.get(message, 0) + 1
        assert max(asked.values()) >= 2

    def test_compaction(self, corpus: Corpus) -> None:
        (session,) = [s for s in corpus.of("claude_code") if s.compressions]
        read = lines(session.log)
        (place,) = [n for n, line in enumerate(read) if line.get("subtype") == "compact_boundary"]
        assert read[place]["compactMetadata"]["preTokens"] > 10_000
        assert read[place + 1]["isCompactSummary"]

    def test_written_file_can_be_read_back(self, corpus: Corpus) -> None:
        """A later call prints the page that an earlier call wrote."""
        (session,) = [s for s in corpus.of("claude_code") if s.title == "Hydration"]
        (written,) = [b["input"] for b in blocks(session.log, "tool_use") if b["name"] == "Write"]
        results = [str(block["content"]) for block in blocks(session.log, "tool_result")]
        assert any(written["content"].strip() in text for text in results)

    def test_fix_makes_the_tests_pass(self, corpus: Corpus) -> None:
        (session,) = [s for s in corpus.of("claude_code") if s.title == "Lost cents"]
        runs = [
            str(block["content"])
            for block in blocks(session.log, "tool_result")
            if "Ran 70 tests" in str(block["content"])
        ]
        assert ["FAILED (failures=2)" in run for run in runs] == [True, False]
        assert runs[-1].endswith("OK")


class TestCodex:
    def test_calls_and_outputs_match_the_session_counts(self, corpus: Corpus) -> None:
        for session in corpus.of("codex"):
            kinds = [line["payload"].get("type", "") for line in lines(session.log)]
            asked = kinds.count("function_call") + kinds.count("custom_tool_call")
            outputs = sum(kind.endswith("_call_output") for kind in kinds)
            assert (asked, outputs) == (session.calls, session.answered)

    def test_tokens_add_up(self, corpus: Corpus) -> None:
        for file in corpus.logs("codex"):
            payloads = [line["payload"] for line in lines(file)]
            counts = [p["info"] for p in payloads if p.get("type") == "token_count"]
            last = sum(info["last_token_usage"]["total_tokens"] for info in counts)
            assert counts[-1]["total_token_usage"]["total_tokens"] == last


class TestHermes:
    def test_rotation(self, corpus: Corpus) -> None:
        (database,) = corpus.logs("hermes")
        lineage = rows(
            database,
            "SELECT c.id, p.id, p.end_reason FROM sessions c "
            "JOIN sessions p ON p.id = c.parent_session_id",
        )
        (child,) = [s for s in corpus.of("hermes") if s.parent]
        assert lineage == [(child.id, child.parent, "compression")]

    def test_compaction_in_place(self, corpus: Corpus) -> None:
        (database,) = corpus.logs("hermes")
        counts = rows(
            database,
            "SELECT session_id, SUM(compacted), SUM(_compressed_summary) FROM messages "
            "GROUP BY session_id HAVING SUM(compacted) > 0",
        )
        ((session, archived, summaries),) = counts
        assert archived > 40
        assert summaries == 1
        copies = rows(
            database,
            "SELECT role, content, timestamp, tool_call_id, tool_calls FROM messages "
            f"WHERE session_id = '{session}' "
            "GROUP BY role, content, timestamp, tool_call_id, tool_calls HAVING COUNT(*) = 2",
        )
        assert len(copies) == 4

    def test_blocked_results(self, corpus: Corpus) -> None:
        (database,) = corpus.logs("hermes")
        blocked = rows(
            database,
            'SELECT effect_disposition FROM messages WHERE content LIKE \'%"status": "blocked"%\'',
        )
        assert blocked == [("none",)]

    def test_answered_calls_match_the_session_counts(self, corpus: Corpus) -> None:
        (database,) = corpus.logs("hermes")
        for session in corpus.of("hermes"):
            found = rows(
                database,
                f"SELECT DISTINCT tool_call_id FROM messages WHERE session_id = '{session.id}' "
                "AND role = 'tool'",
            )
            assert len(found) == session.answered
