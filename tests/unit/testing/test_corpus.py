"""The sample corpus: what the generator writes, with sessions of every kind."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.samples.generator import generate_corpus

from journeyman.testing import Corpus, Source

SOURCES: tuple[Source, ...] = ("claude_code", "codex", "hermes", "chat")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


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
    def test_the_shipped_logs_are_those_that_the_generator_writes(
        self, corpus: Corpus, tmp_path: Path
    ) -> None:
        again = generate_corpus(tmp_path)
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
