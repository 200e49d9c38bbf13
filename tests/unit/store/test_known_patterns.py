"""Whether there is anything to learn, asked with the bare driver: the store has to say the same."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.tables import table

from journeyman.records import (
    Fragment,
    KeptOut,
    Message,
    MinedSession,
    Pattern,
    PatternId,
    Session,
    SessionId,
    Step,
)
from journeyman.store.address import sqlite_url
from journeyman.store.known_patterns import KnownPatterns, find_known
from journeyman.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a folder" / "100% journeyman?.db"


@pytest.fixture
def store(path: Path, tables: Path) -> Iterator[Store]:
    path.parent.mkdir()
    shutil.copyfile(tables, path)
    with Store(sqlite_url(path)) as store:
        yield store


def write(store: Store, name: str, *, text: str = "hello", **facts: Any) -> None:
    with store.writing() as writing:
        session = Session(id=SessionId(name), source="test", log="/logs/a", **facts)
        message = Message(key="u", position=1, role="user", text=text)
        writing.add(Fragment(session=session, messages=(message,)))
        writing.finish()


def save(store: Store, name: str, *patterns: str, rules: str = "r1", reason: str = "") -> None:
    """Keep that a session teaches these; those in capital letters are held."""
    found = store.sessions.get(name)
    taught = tuple(
        Pattern(
            id=PatternId(one),
            kind="sequence" if one > "m" else "first_try",
            intent=f"{name} says {one}",
            steps=(Step(tool="bash"),),
            sessions=(SessionId(name),),
            quarantined="rule" if one.isupper() else "",
        )
        for one in patterns
    )
    mined = MinedSession(
        session=SessionId(name),
        digest=found.digest,
        outcome=found.session.outcome,
        end_reason=found.session.end_reason,
        reason=reason,
        patterns=taught,
        kept_out=tuple(
            KeptOut(
                key=one.lower(),
                kind="pattern",
                rule="rule",
                reason="It is held.",
                text=one,
                session=SessionId(name),
                number=1,
            )
            for one in patterns
            if one.isupper()
        ),
    )
    store.learned.save(rules, [mined], {})


def test_what_was_learned_is_counted(store: Store, path: Path) -> None:
    for name in "abc":
        write(store, name)
    save(store, "a", "p", "x", "f", "HELD")
    save(store, "b", "p")
    save(store, "c", reason="failed")
    kinds = {"sequence": 2, "first_try": 1}
    reasons = {"": 2, "failed": 1}
    held = {"quarantined": 1}
    assert find_known(sqlite_url(path), "r1") == KnownPatterns(reasons, kinds | held)
    store.quarantine.delete(["HELD"])
    assert find_known(sqlite_url(path), "r1") == KnownPatterns(reasons, kinds)


def test_an_empty_store_has_nothing_left_to_learn(store: Store, path: Path) -> None:
    assert store.learned.missing("r1") == []
    assert find_known(sqlite_url(path), "r1") == ({}, {})


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(one, marks=pytest.mark.soak) for one in range(1, 6))]
)
def test_it_says_what_the_store_says_whatever_happens(store: Store, path: Path, seed: int) -> None:
    chance = random.Random(seed)
    gone: set[str] = set()
    answers = set()
    for _ in range(60):
        name = chance.choice(sorted({"a", "b", "c", "d", "e"} - gone))
        match chance.randrange(12):
            case 0:
                write(store, name, text=f"words {chance.random()}")
            case 1:
                write(store, name, outcome=chance.choice([0.0, 0.5, 1.0]))
            case 2:
                write(store, name, end_reason=chance.choice(["done", "given up"]))
            case 3 if len(gone) < 3 and name in _names(store):
                store.sessions.delete(name)
                gone.add(name)
            case 4 if name in _names(store):
                save(store, name, "p", rules="r2")
            case _:
                for one in store.learned.missing("r1")[: chance.randrange(6)]:
                    patterns = chance.sample(["p", "q", "HELD"], chance.randrange(4))
                    save(store, one, *patterns, reason=chance.choice(["", "failed"]))
        for rules in ("r1", "r2"):
            known = find_known(sqlite_url(path), rules)
            assert (known is not None) == (store.learned.missing(rules) == [])
            if known is not None:
                assert known == (store.patterns.reasons(), store.patterns.counts())
            answers.add((rules, known is not None))
    assert answers >= {("r1", True), ("r1", False), ("r2", False)}


def _names(store: Store) -> set[str]:
    return {one.session.id for one in store.sessions.list()}


class TestTheStoreHasToBeAsked:
    @table(
        "url",
        [
            "postgresql://somebody@localhost/somewhere",
            "sqlite:////no/such/folder/journeyman.db",
            "sqlite:///:memory:",
            "sqlite://",
            "sqlite:////tmp",
            "",
        ],
    )
    def test_where_there_is_no_file(self, url: str) -> None:
        assert find_known(url, "r1") is None

    def test_asking_makes_no_file(self, path: Path) -> None:
        path.parent.mkdir()
        assert find_known(sqlite_url(path), "r1") is None
        assert list(path.parent.iterdir()) == []

    @table("version", ["0002", "9999"])
    def test_where_the_tables_are_of_another_program(
        self, store: Store, path: Path, version: str
    ) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            own = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
        assert find_known(sqlite_url(path), "r1") is None
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", own)
        assert find_known(sqlite_url(path), "r1") is not None

    @table(
        "content",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"This is no database. " * 500, id="text"),
            pytest.param(b"SQLite format 3\x00" + bytes(5000), id="a head only"),
        ],
    )
    def test_where_the_file_is_none(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "j.db"
        file.write_bytes(content)
        assert find_known(sqlite_url(file), "r1") is None
        assert file.read_bytes() == content

    def test_where_a_table_is_damaged(self, path: Path) -> None:
        url = sqlite_url(path)
        with Store(url) as store:
            for n in range(60):
                write(store, f"s{n}")
                save(store, f"s{n}", "p", f"q{n}", "HELD")
        whole, known = path.read_bytes(), find_known(url, "r1")
        assert known is not None
        answers = []
        for start in range(4096, len(whole), 4096):
            path.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
            answers.append(find_known(url, "r1"))
        assert all(one in (None, known) for one in answers)
        assert answers.count(None) > 3
        path.write_bytes(whole[: len(whole) // 2])
        assert find_known(url, "r1") is None

    def test_where_a_table_is_missing(self, store: Store, path: Path) -> None:
        assert find_known(sqlite_url(path), "r1") is not None
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE mined")
        assert find_known(sqlite_url(path), "r1") is None
