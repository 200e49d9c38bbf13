"""The contract of stored verdicts, on SQLite and on a real PostgreSQL."""

import threading
from collections.abc import Callable, Iterator

import msgspec
import pytest
import sqlalchemy as sa
from tests.tables import table

from journeyman.records import (
    Fragment,
    JudgedCall,
    Message,
    Session,
    SessionId,
    Verdict,
)
from journeyman.store.store import Store


def write(store: Store, *names: str, text: str = "hello") -> None:
    with store.writing() as writing:
        for name in names:
            session = Session(id=SessionId(name), source="test", log="/logs/a")
            message = Message(key="u", position=1, role="user", text=text)
            writing.add(Fragment(session=session, messages=(message,)))
        writing.finish()


def verdicts(*evidence: str) -> tuple[JudgedCall, ...]:
    return tuple(
        JudgedCall(
            call_id=f"c{index}",
            tool="bash",
            verdict=Verdict(status="failed", rule="r", kind="exit_code", evidence=words),
            index=index,
            generation=index // 2,
            model="small-1",
        )
        for index, words in enumerate(evidence)
    )


def save(store: Store, *names: str, rules: str = "r1", evidence: str = "exit 1") -> None:
    digests = {name: store.sessions.get(name).digest for name in names}
    judged = [(name, digest, verdicts(evidence)) for name, digest in digests.items()]
    store.verdicts.save(rules, judged)


@pytest.fixture
def sql(database_url: str) -> Iterator[Callable[..., sa.CursorResult[object]]]:
    """Run a statement directly, without the store."""
    engine = sa.create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))

    def run(statement: str, **values: object) -> sa.CursorResult[object]:
        with engine.begin() as connection:
            return connection.execute(sa.text(statement), values)

    yield run
    engine.dispose()


class TestStoredVerdicts:
    def test_reading_returns_exactly_what_was_saved(self, store: Store, database_url: str) -> None:
        write(store, "a", "b")
        said = verdicts("exit 1", "", "größer als 東京", "nul \x00")
        a, b = (store.sessions.get(name).digest for name in "ab")
        store.verdicts.save("r1", [("b", b, ()), ("a", a, said)])
        with Store(database_url) as again:
            assert again.verdicts.known("r1") == {"a": said, "b": ()}

    def test_a_changed_session_has_no_verdicts_until_judged_again(self, store: Store) -> None:
        write(store, "a", "b")
        save(store, "a", "b")
        write(store, "a", text="something else")
        assert store.verdicts.known("r1").keys() == {"b"}
        save(store, "a", evidence="anew")
        assert store.verdicts.known("r1", ["a"]) == {"a": verdicts("anew")}

    def test_verdicts_of_other_rules_are_separate_and_replace_them(self, store: Store) -> None:
        write(store, "a", "b")
        save(store, "a", "b", rules="r1")
        assert store.verdicts.known("r2") == {}
        save(store, "a", rules="r2", evidence="milder")
        assert store.verdicts.known("r2") == {"a": verdicts("milder")}
        assert store.verdicts.known("r1").keys() == {"b"}

    @table(
        "broken",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"\xc1\xc1", id="garbage"),
            pytest.param(msgspec.msgpack.encode(verdicts("x", "y"))[:-5], id="cut short"),
            pytest.param(
                msgspec.msgpack.encode(verdicts("abc")).replace(b"abc", b"\xff\xfe\xfd"),
                id="no text",
            ),
            pytest.param(
                msgspec.msgpack.encode(verdicts("x")).replace(b"failed", b"exotic"),
                id="unknown status",
            ),
        ],
    )
    def test_unreadable_verdicts_are_left_out(
        self, store: Store, sql: Callable[..., object], broken: bytes
    ) -> None:
        write(store, "a", "b")
        save(store, "a", "b")
        row = "(SELECT row_id FROM sessions WHERE id = 'a')"
        sql(f"UPDATE verdicts SET calls = :broken WHERE session_row = {row}", broken=broken)
        assert store.verdicts.known("r1").keys() == {"b"}
        save(store, "a")
        assert store.verdicts.known("r1").keys() == {"a", "b"}


class TestSaving:
    def test_sessions_changed_or_deleted_meanwhile_are_skipped(self, store: Store) -> None:
        write(store, "changes", "goes", "stays")
        judged = [
            (name, store.sessions.get(name).digest, verdicts("x"))
            for name in ("changes", "goes", "stays")
        ]
        write(store, "changes", text="something else")
        store.sessions.delete("goes")
        store.verdicts.save("r1", judged)
        write(store, "changes")
        assert store.verdicts.known("r1").keys() == {"stays"}

    def test_two_writers_may_save_the_same_concurrently(
        self, store: Store, database_url: str
    ) -> None:
        names = [f"s{n}" for n in range(30)]
        write(store, *names)
        failures: list[Exception] = []

        def save_all(order: list[str]) -> None:
            try:
                with Store(database_url, busy_timeout_s=30) as own:
                    for _ in range(5):
                        save(own, *order)
            except Exception as error:  # noqa: BLE001 - reported to the test below
                failures.append(error)

        threads = [
            threading.Thread(target=save_all, args=(order,)) for order in (names, names[::-1])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert store.verdicts.known("r1").keys() == set(names)


class TestDeleting:
    def test_verdicts_are_deleted_with_their_session(
        self, store: Store, sql: Callable[..., sa.CursorResult[object]]
    ) -> None:
        write(store, "a", "b")
        save(store, "a", "b")
        store.sessions.delete("a")
        assert store.verdicts.known("r1").keys() == {"b"}
        assert sql("SELECT count(*) FROM verdicts").scalar() == 1
