"""The contract of stored patterns, on SQLite and on a real PostgreSQL."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from tests.tables import table

from journeyman.records import (
    Episode,
    Fragment,
    Message,
    MinedSession,
    Pattern,
    PatternId,
    Session,
    SessionId,
    Step,
)
from journeyman.store.engine import connect
from journeyman.store.store import Store

RULES = "r1"


def write(store: Store, *names: str, text: str = "hello", **facts: Any) -> None:
    with store.writing() as writing:
        for name in names:
            session = Session(id=SessionId(name), source="test", log="/logs/a", **facts)
            message = Message(key="u", position=1, role="user", text=text)
            writing.add(Fragment(session=session, messages=(message,)))
        writing.finish()


def a_pattern(name: str = "p", session: str = "a", **facts: Any) -> Pattern:
    given = {
        "kind": "first_try",
        "source": "test",
        "intent": f"as {session} says {name}",
        "steps": (Step(tool="bash", arguments='{"n": 1}', result=f"{session} saw it"),),
        "sessions": (SessionId(session),),
        "models": ("m1",),
        "first_seen": 1.0,
        "last_seen": 2.0,
        "tokens": 7,
        **facts,
    }
    return Pattern(id=PatternId(name), **given)


def mined(store: Store, name: str, *patterns: Pattern, **facts: Any) -> MinedSession:
    """The session in its current state, with its patterns."""
    found = store.sessions.get(name)
    session = found.session
    given = {"digest": found.digest, "outcome": session.outcome, "end_reason": session.end_reason}
    return MinedSession(session=session.id, patterns=patterns, **(given | facts))


def save(store: Store, *found: MinedSession, rules: str = RULES) -> None:
    store.learned.save(rules, found, {})


def kept(store: Store) -> dict[str, Pattern]:
    """All patterns, those in quarantine included."""
    every = [one.session.id for one in store.sessions.list()]
    return {one.id: one for one in store.patterns.of_sessions(every)}


def shown(store: Store, name: str = "p") -> str:
    return kept(store)[name].intent if name in kept(store) else ""


@pytest.fixture
def missing(store: Store) -> Callable[..., list[str]]:
    """The sessions not learned yet."""
    return lambda rules=RULES: store.learned.missing(rules)


@pytest.fixture
def sql(database_url: str) -> Iterator[Callable[..., sa.CursorResult[Any]]]:
    """Run a statement directly, without the store."""
    engine = sa.create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))

    def run(statement: str, **values: object) -> sa.CursorResult[Any]:
        with engine.begin() as connection:
            return connection.execute(sa.text(statement), values)

    yield run
    engine.dispose()


def at_once(*works: Callable[[], None]) -> list[Exception]:
    """Run each in its own thread; return the errors."""
    failures: list[Exception] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - reported to the test
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


class TestStoring:
    def test_reading_returns_exactly_what_was_saved(self, store: Store, database_url: str) -> None:
        write(store, "a")
        pattern = a_pattern(
            kind="recovery",
            intent="Größer als 東京 🦓 \t\n\\ \" ' %s :x",
            steps=(
                Step(tool="bäsh\x00", arguments='{"a": "\x00"}', result="nein", worked=False),
                Step(tool="bash", arguments='{"\\u0000": "\\ud83d"}', result="é\x00\x7f\x1b[0m"),
            ),
            task_type="code",
            models=("größer\x00", "klein"),
            times=3,
            first_seen=1.5,
            last_seen=1e9 + 0.125,
            tokens=2**31 - 1,
        )
        save(store, mined(store, "a", pattern))
        with Store(database_url) as again:
            (stored,) = again.patterns.list()
            assert stored == pattern
            assert again.patterns.of_sessions(["a"]) == [stored]

    def test_more_patterns_than_fit_in_one_statement(self, store: Store) -> None:
        names = [f"s{n}" for n in range(600)]
        write(store, *names)
        digest = store.sessions.get("s0").digest  # all are equal
        found = [
            MinedSession(
                session=SessionId(name),
                digest=digest,
                patterns=(a_pattern("p", name, first_seen=float(n)), a_pattern(name, name)),
            )
            for n, name in enumerate(names)
        ]
        save(store, *found)
        save(store, *found[::-1])
        common = kept(store)["p"]
        assert (common.session_count, common.intent) == (600, "as s0 says p")
        assert common.sessions == ("s0",)
        assert store.patterns.counts() == {"first_try": 601}
        assert len(store.patterns.of_sessions(names)) == 601
        assert store.learned.missing(RULES) == []
        assert store.learned.reasons(["absent", *names]) == dict.fromkeys(names, "")
        save(store, *(msgspec.structs.replace(one, patterns=()) for one in found))
        assert list(store.patterns.list()) == []


class TestSharing:
    def test_the_order_of_saving_does_not_matter(self, store: Store) -> None:
        names = ("a", "b", "c")
        write(store, *names)
        sightings = {
            "a": a_pattern(session="a", first_seen=2.0, last_seen=9.0, models=("m2",), times=2),
            "b": a_pattern(session="b", first_seen=None, last_seen=None),
            "c": a_pattern(session="c", first_seen=1.0),
        }
        for order in itertools.permutations(names):
            for name in order:
                save(store, mined(store, name, sightings[name]))
            (one,) = store.patterns.list()
            assert (one.intent, one.times, one.session_count) == ("as c says p", 4, 3)
            assert (one.first_seen, one.last_seen) == (1.0, 9.0)
            assert (one.sessions, one.models) == (("c",), ("m1", "m2"))
        store.sessions.delete("c")
        assert (shown(store), kept(store)["p"].session_count) == ("as a says p", 2)
        assert store.learned.missing(RULES) == []

    def test_two_writers_may_save_the_same(self, store: Store, database_url: str) -> None:
        write(store, "a", "b")

        def work() -> None:
            with Store(database_url) as own:
                for _ in range(5):
                    save(own, mined(own, "a", a_pattern()), mined(own, "b", a_pattern(session="b")))

        assert at_once(work, work) == []
        assert kept(store)["p"].session_count == 2


class TestMissing:
    def test_every_session_is_missing_at_first_oldest_first(
        self, store: Store, missing: Callable[..., list[str]]
    ) -> None:
        assert missing() == []
        for name, at in (("undated", None), ("new", 30.0), ("old", 10.0)):
            write(store, name, started_at=at)
        assert missing() == ["old", "new", "undated"]
        save(store, mined(store, "new"))
        assert missing() == ["old", "undated"]

    def test_nothing_is_missing_after_saving(
        self, store: Store, missing: Callable[..., list[str]]
    ) -> None:
        write(store, "teaches")
        write(store, "failed", outcome=0.0, end_reason="given up")
        failed = mined(store, "failed", reason="failed")
        save(store, mined(store, "teaches", a_pattern()), failed)
        assert missing() == []
        assert store.learned.reasons(["teaches", "failed", "no"]) == {
            "teaches": "",
            "failed": "failed",
        }
        assert store.patterns.reasons() == {"": 1, "failed": 1}

    @table(
        ("name", "change"),
        [
            ("content", {"text": "something else"}),
            ("outcome known", {"outcome": 1.0}),
            ("outcome known to be none", {"outcome": 0.0}),
            ("end", {"end_reason": "done"}),
        ],
    )
    def test_a_changed_session_is_missing_again(
        self, store: Store, missing: Callable[..., list[str]], name: str, change: dict[str, Any]
    ) -> None:
        write(store, name, f"not {name}")
        pattern = a_pattern(name, name)
        save(store, mined(store, name, pattern), mined(store, f"not {name}"))
        write(store, name, **change)
        assert missing() == [name]
        assert shown(store, name) == f"as {name} says {name}"
        save(store, mined(store, name, pattern))
        assert missing() == []

    def test_results_of_other_rules_are_separate_and_replace_them(
        self, store: Store, missing: Callable[..., list[str]]
    ) -> None:
        write(store, "a", "b")
        save(store, mined(store, "a", a_pattern()), mined(store, "b"))
        assert missing("r2") == ["a", "b"]
        assert missing("R1") == ["a", "b"]
        save(store, mined(store, "a", a_pattern("q")), rules="r2")
        assert (missing("r2"), missing("r1")) == (["b"], ["a"])
        assert kept(store).keys() == {"q"}


class TestSavingAgain:
    def test_saving_replaces_the_earlier_result(self, store: Store) -> None:
        write(store, "a")
        save(store, mined(store, "a", a_pattern("p", times=2), a_pattern("gone")))
        for times in (2, 5):
            new = a_pattern("p", times=times, intent="in other words", models=("m2",))
            save(store, mined(store, "a", new))
            assert kept(store) == {"p": new}


def _late(at: float | None) -> float:
    return float("inf") if at is None else at


class TestSkipping:
    @table(
        ("name", "change"),
        [
            ("content", {"text": "something else"}),
            ("outcome", {"outcome": 0.0}),
            ("end", {"end_reason": "given up"}),
        ],
    )
    def test_a_session_that_changed_between_mining_and_saving(
        self, store: Store, missing: Callable[..., list[str]], name: str, change: dict[str, Any]
    ) -> None:
        stays = f"not {name}"
        write(store, name, stays)
        found = [mined(store, one, a_pattern(one, one)) for one in (name, stays)]
        write(store, name, **change)
        save(store, *found)
        assert (shown(store, name), shown(store, stays)) == ("", f"as {stays} says {stays}")
        assert missing() == [name]
        store.sessions.delete(name)

    def test_a_session_that_was_deleted_between_mining_and_saving(
        self, store: Store, missing: Callable[..., list[str]]
    ) -> None:
        write(store, "goes", "stays")
        found = [
            mined(store, name, a_pattern(f"of {name}", name), a_pattern("p", name, first_seen=at))
            for name, at in (("goes", 2.0), ("stays", 1.0))
        ]
        store.sessions.delete("goes")
        save(store, *found)
        assert kept(store).keys() == {"of stays", "p"}
        assert missing() == []
        before = store.patterns.revision()
        save(store, found[0])
        save(store)
        assert store.patterns.revision() == before

    def test_an_error_leaves_everything_unchanged(
        self, store: Store, missing: Callable[..., list[str]]
    ) -> None:
        write(store, "a", "b")
        save(store, mined(store, "a", a_pattern("p"), a_pattern("q")))
        before = kept(store)
        without_keys = Episode(session=SessionId("b"), number=1, request="", ending="well")
        found = [
            mined(store, "a", a_pattern("new")),
            mined(store, "b", a_pattern("other", "b"), episodes=(without_keys,)),
        ]
        with pytest.raises(KeyError):
            save(store, *found)
        assert kept(store) == before
        assert missing() == ["b"]


def meanwhile(url: str, work: Callable[[], None], statement: str) -> list[Exception]:
    """Start work after a statement has run but before it is committed; the work has to wait."""
    failures: list[Exception] = []
    thread = threading.Thread(target=lambda: failures.extend(at_once(work)))
    engine = connect(url, busy_timeout_s=30)
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        connection.execute(sa.text(statement))
        thread.start()
        thread.join(timeout=0.5)
        assert thread.is_alive()
    thread.join()
    engine.dispose()
    return failures


class TestDeleting:
    def test_patterns_of_only_one_session_are_deleted_with_it(
        self, store: Store, missing: Callable[..., list[str]], sql: Callable[..., Any]
    ) -> None:
        write(store, "a", "b")
        save(store, mined(store, "a", a_pattern("p")), mined(store, "b", a_pattern("q", "b")))
        store.sessions.delete("a")
        assert kept(store).keys() == {"q"}
        assert missing() == []
        for name in ("patterns", "mined"):
            assert sql(f"SELECT count(*) FROM {name}").scalar() == 1


def everything(store: Store) -> str:
    """The contents of all tables, as one text."""
    found = []
    with store._engine.connect() as connection:
        for table in sa.inspect(connection).get_table_names():
            for row in connection.execute(sa.text(f"SELECT * FROM {table}")):
                found += [
                    one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)
                    for one in row
                ]
    return "\n".join(found)


class TestReading:
    def test_the_most_frequent_come_first(self, store: Store) -> None:
        write(store, "a", "b")
        here = [a_pattern(name, times=n) for name, n in (("p", 1), ("q", 9), ("r", 5), ("s", 5))]
        there = a_pattern("p", "b", first_seen=2.0)
        save(store, mined(store, "a", *here), mined(store, "b", there))
        assert [one.id for one in store.patterns.list()] == ["p", "q", "r", "s"]
        assert [one.id for one in store.patterns.list(limit=2)] == ["p", "q"]

    def test_the_patterns_of_sessions(self, store: Store) -> None:
        write(store, "a", "b", "c")
        save(store, mined(store, "b", a_pattern("q", "b", first_seen=0.0)))
        save(store, mined(store, "a", a_pattern("p"), a_pattern("q")))
        save(store, mined(store, "c", a_pattern("r", "c")))

        def of(*names: str) -> list[str]:
            return [one.id for one in store.patterns.of_sessions(names)]

        assert of("a") == ["p", "q"]
        assert of("b", "c", "absent") == ["q", "r"]
        assert of() == []


class TestQuarantine:
    def test_quarantined_patterns_are_listed_and_counted_separately(self, store: Store) -> None:
        write(store, "a")
        held = a_pattern("held", quarantined="asks for more")
        save(store, mined(store, "a", a_pattern("p"), held))
        (free,) = store.patterns.list()
        (apart,) = (one for one in kept(store).values() if one.quarantined)
        assert (free.id, apart) == ("p", held)
        assert store.patterns.counts() == {"first_try": 1}

    def test_quarantine_follows_the_current_result_of_the_session(self, store: Store) -> None:
        write(store, "a")
        for rule in ("", "rule", "other", ""):
            save(store, mined(store, "a", a_pattern(quarantined=rule)))
            usable = list(store.patterns.list())
            held = [one for one in kept(store).values() if one.quarantined]
            (found,) = held if rule else usable
            assert not (usable if rule else held)
            assert found.quarantined == rule
