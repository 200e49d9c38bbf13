"""SessionJudge stored sessions: once each, in order, with results stored in batches."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.tables import table

from journeyman.learning.session_judge import SessionJudge
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


@pytest.fixture
def store(tmp_path: Path, tables: Path) -> Iterator[Store]:
    path = tmp_path / "journeyman.db"
    shutil.copyfile(tables, path)
    with Store(f"sqlite:///{path}", busy_timeout_s=0.2) as store:
        yield store


class Judge:
    """Judges every call as ok and records the ids of the calls."""

    def __init__(self, evidence: str = "") -> None:
        self.evidence = evidence
        self.judged: list[str] = []

    def __call__(self, call: Call) -> Verdict:
        self.judged.append(call.id)
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
    """Write sessions of one call each; the call id is the session name."""
    for name in names:
        write(store, name, turn(1, name))


def calls_of(judged: list[JudgedSession]) -> dict[str, list[str]]:
    return {one.id: [call.call_id for call in one.calls] for one in judged}


class TestJudging:
    def test_judged_session_has_the_fields_needed_for_profiles(self, store: Store) -> None:
        answer = Message(key="t", position=2, role="tool", tool_call_id="a", text="done")
        write(store, "s", turn(1, "a"), answer, turn(12, "b"), tags=("red", "ripe"))
        assert SessionJudge(store, Judge(), "r1").judged(store.sessions.list()) == [
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
                        turn=1,
                    ),
                    JudgedCall(
                        call_id="b",
                        tool="tool-b",
                        verdict=Verdict(status="ok", rule="always"),
                        index=1,
                        generation=1,
                        model="small-1",
                        turn=2,
                    ),
                ),
            )
        ]

    def test_unchanged_sessions_are_not_judged_again(self, store: Store) -> None:
        write_many(store, "a", "b", "c")
        overviews = store.sessions.list()
        first = SessionJudge(store, Judge("x"), "r1").judged(overviews)
        judge = Judge("y")
        assert SessionJudge(store, judge, "r1").judged(overviews) == first
        assert judge.judged == []

    def test_changed_rules_judge_again(self, store: Store) -> None:
        write_many(store, "a")
        SessionJudge(store, Judge("old"), "r1").judged(store.sessions.list())
        (judged,) = SessionJudge(store, Judge("new"), "r2").judged(store.sessions.list())
        assert judged.calls[0].verdict.evidence == "new"

    def test_calls_of_a_simulated_user_are_skipped_but_numbered(self, store: Store) -> None:
        write(store, "s", turn(1, "a"), turn(2, "theirs", role="user"), turn(3, "b"))
        judge = Judge()
        for _ in range(2):
            (judged,) = SessionJudge(store, judge, "r1").judged(store.sessions.list())
            assert [(call.call_id, call.index) for call in judged.calls] == [("a", 0), ("b", 2)]
        assert judge.judged == ["a", "b"]

    def test_lone_surrogate_in_the_evidence_is_replaced(self, store: Store) -> None:
        write_many(store, "a")
        judging = SessionJudge(store, Judge("half \ud83d of größe"), "r1")
        first = judging.judged(store.sessions.list())
        assert first[0].calls[0].verdict.evidence == "half ? of größe"
        assert store.verdicts.known("r1") == {"a": first[0].calls}


class TestStoring:
    def test_progress_counts_sessions_to_judge(self, store: Store) -> None:
        write_many(store, "a", "b", "c", "d")
        overviews = store.sessions.list()
        judging = SessionJudge(store, Judge(), "r1")
        judging.judged(overviews[:1])
        progress: list[tuple[int, int]] = []
        judging.judged(overviews, lambda *step: progress.append(step))
        assert progress == [(1, 3), (2, 3), (3, 3)]

    @table(
        ("rules", "limits", "kept"),
        [
            ("by sessions", {"batch": 2}, 4),
            ("none finished", {}, 0),
        ],
    )
    def test_finished_batches_survive_an_interruption(
        self, store: Store, rules: str, limits: dict[str, int], kept: int
    ) -> None:
        names = [f"s{n}" for n in range(7)]
        write_many(store, *names)

        def interrupt(done: int, _total: int) -> None:
            if done == 5:
                raise KeyboardInterrupt

        overviews = store.sessions.list()
        with pytest.raises(KeyboardInterrupt):
            SessionJudge(store, Judge(), rules, **limits).judged(overviews, interrupt)
        assert len(store.verdicts.known(rules)) == kept
        judge = Judge()
        judged = SessionJudge(store, judge, rules).judged(overviews)
        assert calls_of(judged) == {name: [name] for name in names}
        assert len(judge.judged) == 7 - kept


def refuse_writes(store: Store) -> None:
    """Make the database read-only. File modes do not help, because root may write to any file."""
    is_sqlite = store._engine.dialect.name == "sqlite"
    setting = "PRAGMA query_only=ON" if is_sqlite else "SET default_transaction_read_only = on"

    def read_only(driver: sa.engine.interfaces.DBAPIConnection, _entry: object) -> None:
        driver.cursor().execute(setting)
        if not is_sqlite:
            driver.commit()

    sa.event.listen(store._engine, "connect", read_only)
    store._engine.dispose()


class TestReadOnlyDatabase:
    @pytest.fixture
    def store(self, database_url: str) -> Iterator[Store]:
        """Both databases, because they refuse writes differently."""
        with Store(database_url, busy_timeout_s=0.2) as store:
            yield store

    def test_read_only_database_still_gives_results(self, store: Store) -> None:
        write_many(store, "a", "b", "c")
        overviews = store.sessions.list()
        judging = SessionJudge(store, Judge(), "r1", batch=1)
        judging.judged([one for one in overviews if one.session.id == "a"])
        refuse_writes(store)
        for _ in range(2):
            judge = Judge()
            judged = SessionJudge(store, judge, "r1", batch=1).judged(overviews)
            assert calls_of(judged) == {"a": ["a"], "b": ["b"], "c": ["c"]}
            assert sorted(judge.judged) == ["b", "c"]
        assert store.verdicts.known("r1").keys() == {"a"}


def write_child(
    store: Store, name: str, parent: str, *messages: Message, kind: LineageKind = "compression"
) -> None:
    lineage = Lineage(parent=SessionId(parent), kind=kind)
    session = Session(id=SessionId(name), source="test", log="/logs/a", lineage=lineage)
    with store.writing() as writing:
        writing.add(Fragment(session=session, messages=messages, replaces=True))
        writing.finish()


def segments(store: Store, name: str) -> tuple[dict[str, list[str]], str]:
    found, note = SessionJudge(store, Judge(), "r1").segments(name)
    return {part.label: [call.call_id for call in part.calls] for part in found}, note


class TestLineage:
    def test_chain_of_parents_from_any_of_its_sessions(self, store: Store) -> None:
        write(store, "first", turn(1, "a"), turn(2, "b"))
        write_child(store, "second", "first", turn(1, "c"))
        write_child(store, "third", "second", turn(1, "d"))
        whole = {"first": ["a", "b"], "second": ["c"], "third": ["d"]}
        for name in whole:
            assert segments(store, name) == (whole, "")

    def test_parts_of_one_session(self, store: Store) -> None:
        # A session is split by generation.
        write(store, "s", turn(1, "a"), turn(12, "b"), turn(13, "c"), turn(25, "d"))
        parts = {"s, part 1 of 3": ["a"], "s, part 2 of 3": ["b", "c"], "s, part 3 of 3": ["d"]}
        assert segments(store, "s") == (parts, "")

        # So is one that was compressed before its first call, or after its last.
        write(store, "s", turn(1), turn(11, "a"), turn(21))
        parts = {"s, part 1 of 3": [], "s, part 2 of 3": ["a"], "s, part 3 of 3": []}
        assert segments(store, "s") == (parts, "")

        # A session without calls is one empty part.
        write(store, "quiet", Message(key="k", position=1, role="user", text="hello"))
        assert segments(store, "quiet") == ({"quiet": []}, "")

    def test_calls_repeated_in_a_child(self, store: Store) -> None:
        # Calls that the child repeats belong to the parent.
        write(store, "first", turn(1, "a"), turn(2, "b"), turn(3, "c"))
        write_child(store, "second", "first", turn(1, "b"), turn(2, "c"), turn(3, "d"))
        parts, _ = segments(store, "second")
        assert parts == {"first": ["a", "b", "c"], "second": ["d"]}

        # Reused ids drop nothing.
        write(store, "first", *(turn(at, "a") for at in range(1, 4)))
        write_child(store, "second", "first", *(turn(at, "a") for at in range(1, 4)))
        assert segments(store, "second")[0] == {"first": ["a"] * 3, "second": ["a"] * 3}

        # Ids that restart drop nothing.
        write(store, "first", turn(1, "a"), turn(2, "b"), turn(3, "c"))
        write_child(store, "second", "first", turn(1, "a"), turn(2, "b"))
        assert segments(store, "second")[0] == {"first": ["a", "b", "c"], "second": ["a", "b"]}

    @table("kind", ["branch", "subagent", "reset"])
    def test_other_lineage_is_not_compression(self, store: Store, kind: LineageKind) -> None:
        first, second = f"{kind} 1", f"{kind} 2"
        write(store, first, turn(1, "a"))
        write_child(store, second, first, turn(1, "b"), kind=kind)
        assert segments(store, second) == ({second: ["b"]}, "")
        assert segments(store, first) == ({first: ["a"]}, "")

    def test_missing_parent_is_noted(self, store: Store) -> None:
        write_child(store, "second", "gone", turn(1, "b"))
        parts, note = segments(store, "second")
        assert parts == {"second": ["b"]}
        assert "gone is not stored" in note
