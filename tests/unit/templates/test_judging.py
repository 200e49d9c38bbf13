"""Judging what is stored: once, in order, and kept as it goes."""

import logging
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.tables import table

from journeyman.records import (
    Call,
    Fragment,
    JudgedCall,
    JudgedSession,
    Lineage,
    LineageKind,
    Message,
    Session,
    SessionId,
    ToolCall,
    Verdict,
)
from journeyman.store.store import Store
from journeyman.templates.judging import Judging


@pytest.fixture
def store(tmp_path: Path, tables: Path) -> Iterator[Store]:
    path = tmp_path / "journeyman.db"
    shutil.copyfile(tables, path)
    with Store(f"sqlite:///{path}", busy_timeout_s=0.2) as store:
        yield store


class Judge:
    """Says ok to everything, and remembers what it was asked."""

    def __init__(self, evidence: str = "") -> None:
        self.evidence = evidence
        self.asked: list[str] = []

    def __call__(self, call: Call) -> Verdict:
        self.asked.append(call.id)
        return Verdict(status="ok", rule="always", evidence=self.evidence or call.result or "")


def turn(number: int, *ids: str, role: str = "assistant") -> Message:
    calls = tuple(ToolCall(id=one, name=f"tool-{one}") for one in ids)
    return Message(
        key=f"k{number}",
        position=number,
        role=role,
        tool_calls=calls,
        model="small-1",
        generation=number // 10,
    )


def write(store: Store, name: str, *messages: Message, tags: tuple[str, ...] = ()) -> None:
    session = Session(id=SessionId(name), source="test", log="/logs/a", tags=tags)
    with store.writing() as writing:
        writing.add(Fragment(session=session, messages=messages, replaces=True))
        writing.finish()


def write_many(store: Store, *names: str) -> None:
    """Sessions of one call each, named as the session is."""
    for name in names:
        write(store, name, turn(1, name))


def calls_of(judged: list[JudgedSession]) -> dict[str, list[str]]:
    return {one.id: [call.call_id for call in one.calls] for one in judged}


class TestJudging:
    def test_a_session_and_its_calls_come_with_what_counting_needs(self, store: Store) -> None:
        answer = Message(key="t", position=2, role="tool", tool_call_id="a", text="done")
        write(store, "s", turn(1, "a"), answer, turn(12, "b"), tags=("red", "ripe"))
        assert Judging(store, Judge(), "r1").judged(store.sessions.list()) == [
            JudgedSession(
                id=SessionId("s"),
                source="test",
                model="small-1",
                messages=3,
                tags=("red", "ripe"),
                calls=(
                    JudgedCall(
                        call_id="a",
                        tool="tool-a",
                        verdict=Verdict(status="ok", rule="always", evidence="done"),
                        index=0,
                        generation=0,
                        model="small-1",
                    ),
                    JudgedCall(
                        call_id="b",
                        tool="tool-b",
                        verdict=Verdict(status="ok", rule="always"),
                        index=1,
                        generation=1,
                        model="small-1",
                    ),
                ),
            )
        ]

    def test_the_second_time_nothing_is_judged_and_the_answer_is_the_same(
        self, store: Store
    ) -> None:
        write_many(store, "a", "b", "c")
        overviews = store.sessions.list()
        first = Judging(store, Judge("x"), "r1").judged(overviews)
        judge = Judge("y")
        assert Judging(store, judge, "r1").judged(overviews) == first
        assert judge.asked == []

    def test_only_what_is_new_or_changed_is_judged(self, store: Store) -> None:
        write_many(store, "a", "b", "c")
        Judging(store, Judge(), "r1").judged(store.sessions.list())
        write(store, "b", turn(1, "b"), turn(2, "b2"))
        write_many(store, "d")
        judge = Judge()
        judged = Judging(store, judge, "r1").judged(store.sessions.list())
        assert sorted(judge.asked) == ["b", "b2", "d"]
        assert calls_of(judged) == {"a": ["a"], "b": ["b", "b2"], "c": ["c"], "d": ["d"]}

    def test_other_rules_judge_again(self, store: Store) -> None:
        write_many(store, "a")
        Judging(store, Judge("old"), "r1").judged(store.sessions.list())
        (judged,) = Judging(store, Judge("new"), "r2").judged(store.sessions.list())
        assert judged.calls[0].verdict.evidence == "new"

    def test_the_order_is_the_one_given(self, store: Store) -> None:
        write_many(store, "a", "b", "c", "d")
        by_id = {one.session.id: one for one in store.sessions.list()}
        judging = Judging(store, Judge(), "r1")
        judging.judged([by_id["c"], by_id["a"]])
        mixed = [by_id[name] for name in ("d", "c", "b", "a", "c")]
        assert [one.id for one in judging.judged(mixed)] == ["d", "c", "b", "a", "c"]
        assert judging.judged([]) == []

    def test_calls_of_a_simulated_user_are_left_out_and_still_counted(self, store: Store) -> None:
        write(store, "s", turn(1, "a"), turn(2, "theirs", role="user"), turn(3, "b"))
        judge = Judge()
        for _ in range(2):
            (judged,) = Judging(store, judge, "r1").judged(store.sessions.list())
            assert [(call.call_id, call.index) for call in judged.calls] == [("a", 0), ("b", 2)]
        assert judge.asked == ["a", "b"]

    def test_a_session_without_calls_needs_no_judge(self, store: Store) -> None:
        write(store, "talk", turn(1))
        told: list[tuple[int, int]] = []
        judged = Judging(store, Judge(), "r1").judged(
            store.sessions.list(), lambda *step: told.append(step)
        )
        assert calls_of(judged) == {"talk": []}
        assert judged[0].messages == 1
        assert told == []

    def test_a_session_where_only_the_user_called_is_judged_once(self, store: Store) -> None:
        write(store, "s", turn(1, "theirs", role="user"))
        judging = Judging(store, Judge(), "r1")
        assert calls_of(judging.judged(store.sessions.list())) == {"s": []}
        assert store.verdicts.known("r1") == {"s": ()}

    def test_half_a_character_in_the_evidence_is_no_obstacle(self, store: Store) -> None:
        write_many(store, "a")
        judging = Judging(store, Judge("half \ud83d of größe"), "r1")
        first = judging.judged(store.sessions.list())
        assert first[0].calls[0].verdict.evidence == "half ? of größe"
        assert store.verdicts.known("r1") == {"a": first[0].calls}


class TestKeeping:
    def test_a_judge_that_fails_is_not_silenced(self, store: Store) -> None:
        write_many(store, "a")

        def broken(call: Call) -> Verdict:
            raise RuntimeError(call.id)

        with pytest.raises(RuntimeError, match="a"):
            Judging(store, broken, "r1").judged(store.sessions.list())

    def test_progress_counts_the_sessions_that_had_to_be_judged(self, store: Store) -> None:
        write_many(store, "a", "b", "c", "d")
        overviews = store.sessions.list()
        judging = Judging(store, Judge(), "r1")
        judging.judged(overviews[:1])
        told: list[tuple[int, int]] = []
        judging.judged(overviews, lambda *step: told.append(step))
        assert told == [(1, 3), (2, 3), (3, 3)]

    @table(
        ("rules", "limits", "kept"),
        [
            ("by sessions", {"batch": 2}, 4),
            ("none finished", {}, 0),
        ],
    )
    def test_an_interruption_keeps_the_batches_that_were_finished(
        self, store: Store, rules: str, limits: dict[str, int], kept: int
    ) -> None:
        names = [f"s{n}" for n in range(7)]
        write_many(store, *names)

        def interrupt(done: int, _total: int) -> None:
            if done == 5:
                raise KeyboardInterrupt

        overviews = store.sessions.list()
        with pytest.raises(KeyboardInterrupt):
            Judging(store, Judge(), rules, **limits).judged(overviews, interrupt)
        assert len(store.verdicts.known(rules)) == kept
        judge = Judge()
        judged = Judging(store, judge, rules).judged(overviews)
        assert calls_of(judged) == {name: [name] for name in names}
        assert len(judge.asked) == 7 - kept

    def test_a_session_deleted_since_it_was_listed_is_left_out(self, store: Store) -> None:
        names = ["known", "gone", "stem", "stem-1", "stem-2"]
        write_many(store, *names)
        overviews = store.sessions.list()
        judging = Judging(store, Judge(), "r1")
        judging.judged([one for one in overviews if one.session.id == "known"])
        for name in names[:3]:
            store.sessions.delete(name)
        told: list[tuple[int, int]] = []
        judged = judging.judged(overviews, lambda *step: told.append(step))
        assert calls_of(judged) == {"stem-1": ["stem-1"], "stem-2": ["stem-2"]}
        assert told[-1] == (5, 5)

    def test_a_session_changed_since_it_was_listed_is_judged_as_it_is_now(
        self, store: Store
    ) -> None:
        write_many(store, "a")
        overviews = store.sessions.list()
        write(store, "a", turn(1, "other"))
        judging = Judging(store, Judge(), "r1")
        assert calls_of(judging.judged(overviews)) == {"a": ["other"]}
        write_many(store, "a")
        assert calls_of(judging.judged(overviews)) == {"a": ["a"]}


def refuse_writes(store: Store) -> None:
    """From here on the database can only be read, whoever runs this: root may write to any file."""
    is_sqlite = store._engine.dialect.name == "sqlite"
    setting = "PRAGMA query_only=ON" if is_sqlite else "SET default_transaction_read_only = on"

    def read_only(driver: sa.engine.interfaces.DBAPIConnection, _entry: object) -> None:
        driver.cursor().execute(setting)
        if not is_sqlite:
            driver.commit()

    sa.event.listen(store._engine, "connect", read_only)
    store._engine.dispose()


class TestWithoutKeeping:
    @pytest.fixture
    def store(self, database_url: str) -> Iterator[Store]:
        """On both databases: they refuse in ways of their own."""
        with Store(database_url, busy_timeout_s=0.2) as store:
            yield store

    def test_a_database_that_can_only_be_read_still_answers(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, logger="journeyman.templates.judging")
        write_many(store, "a", "b", "c")
        overviews = store.sessions.list()
        judging = Judging(store, Judge(), "r1", batch=1)
        judging.judged([one for one in overviews if one.session.id == "a"])
        refuse_writes(store)
        for _ in range(2):
            judge = Judge()
            judged = Judging(store, judge, "r1", batch=1).judged(overviews)
            assert calls_of(judged) == {"a": ["a"], "b": ["b"], "c": ["c"]}
            assert sorted(judge.asked) == ["b", "c"]
        assert len(caplog.records) == 2, "a database that refused is asked again"
        assert store.verdicts.known("r1").keys() == {"a"}

    def test_a_database_that_another_program_is_writing_to(self, tmp_path: Path) -> None:
        path = tmp_path / "j.db"
        with Store(f"sqlite:///{path}", busy_timeout_s=0.1) as store:
            write_many(store, "a", "b")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            judging = Judging(store, Judge(), "r1")
            assert calls_of(judging.judged(store.sessions.list())) == {"a": ["a"], "b": ["b"]}
            assert store.verdicts.known("r1") == {}
            other.execute("ROLLBACK")
            other.close()
            judging.judged(store.sessions.list())
            assert store.verdicts.known("r1").keys() == {"a", "b"}


def write_child(
    store: Store, name: str, parent: str, *messages: Message, kind: LineageKind = "compression"
) -> None:
    lineage = Lineage(parent=SessionId(parent), kind=kind)
    session = Session(id=SessionId(name), source="test", log="/logs/a", lineage=lineage)
    with store.writing() as writing:
        writing.add(Fragment(session=session, messages=messages, replaces=True))
        writing.finish()


def stretches(store: Store, name: str) -> tuple[dict[str, list[str]], str]:
    found, note = Judging(store, Judge(), "r1").stretches(name)
    return {part.label: [call.call_id for call in part.calls] for part in found}, note


class TestLineage:
    def test_a_chain_of_parents_from_any_of_its_sessions(self, store: Store) -> None:
        write(store, "first", turn(1, "a"), turn(2, "b"))
        write_child(store, "second", "first", turn(1, "c"))
        write_child(store, "third", "second", turn(1, "d"))
        whole = {"first": ["a", "b"], "second": ["c"], "third": ["d"]}
        for name in whole:
            assert stretches(store, name) == (whole, "")

    def test_one_session(self, store: Store) -> None:
        # Generations inside a session.
        write(store, "s", turn(1, "a"), turn(12, "b"), turn(13, "c"), turn(25, "d"))
        parts = {"s, part 1 of 3": ["a"], "s, part 2 of 3": ["b", "c"], "s, part 3 of 3": ["d"]}
        assert stretches(store, "s") == (parts, "")

        # A session without calls.
        write(store, "quiet", Message(key="k", position=1, role="user", text="hello"))
        assert stretches(store, "quiet") == ({"quiet": []}, "")

    def test_calls_that_are_in_both(self, store: Store) -> None:
        # Calls that the child repeats are the parent s.
        write(store, "first", turn(1, "a"), turn(2, "b"), turn(3, "c"))
        write_child(store, "second", "first", turn(1, "b"), turn(2, "c"), turn(3, "d"))
        parts, _ = stretches(store, "second")
        assert parts == {"first": ["a", "b", "c"], "second": ["d"]}

        # Ids that are used again drop nothing.
        write(store, "first", *(turn(at, "a") for at in range(1, 4)))
        write_child(store, "second", "first", *(turn(at, "a") for at in range(1, 4)))
        assert stretches(store, "second")[0] == {"first": ["a"] * 3, "second": ["a"] * 3}

        # Ids that begin anew drop nothing.
        write(store, "first", turn(1, "a"), turn(2, "b"), turn(3, "c"))
        write_child(store, "second", "first", turn(1, "a"), turn(2, "b"))
        assert stretches(store, "second")[0] == {"first": ["a", "b", "c"], "second": ["a", "b"]}

    @table("kind", ["branch", "subagent", "reset"])
    def test_other_descent_is_no_compression(self, store: Store, kind: LineageKind) -> None:
        first, second = f"{kind} 1", f"{kind} 2"
        write(store, first, turn(1, "a"))
        write_child(store, second, first, turn(1, "b"), kind=kind)
        assert stretches(store, second) == ({second: ["b"]}, "")
        assert stretches(store, first) == ({first: ["a"]}, "")

    def test_a_missing_parent_is_said(self, store: Store) -> None:
        write_child(store, "second", "gone", turn(1, "b"))
        parts, note = stretches(store, "second")
        assert parts == {"second": ["b"]}
        assert "gone is not stored" in note

    def test_a_circle_is_cut_and_said(self, store: Store) -> None:
        write_child(store, "a", "b", turn(1, "a"))
        write_child(store, "b", "a", turn(1, "b"))
        parts, note = stretches(store, "a")
        assert parts == {"b": ["b"], "a": ["a"]}
        assert "circle" in note
        write_child(store, "self", "self", turn(1, "c"))
        assert "circle" in stretches(store, "self")[1]
