"""The contract of hosts' sessions and their events, on SQLite and on a real PostgreSQL."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from tests.waiting import LONGEST_S

from journeyman.records import Fragment, Session, SessionId
from journeyman.records.errors import StoreUnavailable
from journeyman.records.host import HostEvent, HostSession
from journeyman.store.store import Store


def a_session(name: str = "s1", **facts: Any) -> HostSession:
    given = {"host": "hermes", "session_id": name, "state": "warm", "at": 1_000.5}
    return HostSession(**{**given, **facts})


def an_event(name: str = "s1", **facts: Any) -> HostEvent:
    given = {"at": 1_000.0, "host": "codex", "session_id": name, "kind": "gate", "outcome": "deny"}
    return HostEvent(**{**given, **facts})


FULL = a_session(
    "größer 東京",
    reason="because\nof %s :x",
    opening="0123456789abcdef",
    tokens=2**40,
    shown=('command "a"', "mistake \\ \u2028", ""),
    content='[{"task": "東京"}]',
)


class TestRecords:
    def test_reading_returns_exactly_what_was_stored(self, store: Store, database_url: str) -> None:
        assert store.host_sessions.find("hermes", FULL.session_id) is None
        store.host_sessions.save(FULL)
        with Store(database_url) as again:
            assert again.host_sessions.find("hermes", FULL.session_id) == FULL
            assert again.host_sessions.find("codex", FULL.session_id) is None
            assert again.host_sessions.find("hermes", "other") is None

    def test_saving_replaces_and_adding_does_not(self, store: Store) -> None:
        first = a_session(reason="first")
        assert store.host_sessions.add(first) == first
        assert store.host_sessions.add(a_session(reason="second", state="cold")) == first
        changed = a_session(reason="third", state="off", at=2_000.0)
        store.host_sessions.save(changed)
        # It was decided when it was first decided.
        assert store.host_sessions.find("hermes", "s1") == replace(changed, at=first.at)
        other = a_session(host="codex")
        assert store.host_sessions.add(other) == other

    def test_of_many_at_once_one_is_kept(self, store: Store) -> None:
        barrier = threading.Barrier(6)

        def add(number: int) -> HostSession:
            barrier.wait()
            return store.host_sessions.add(a_session(reason=str(number)), within_s=LONGEST_S)

        with ThreadPoolExecutor(6) as pool:
            kept = list(pool.map(add, range(6)))
        assert len(set(kept)) == 1
        assert store.host_sessions.find("hermes", "s1") == kept[0]

    def test_dropping_content_leaves_the_rest(self, store: Store) -> None:
        store.host_sessions.save(FULL)
        cold = a_session("cold", state="cold", reason="nothing fitted", shown=("hint x",))
        store.host_sessions.save(cold)
        store.host_sessions.drop_content()
        dropped = store.host_sessions.find("hermes", FULL.session_id)
        assert dropped is not None
        assert (dropped.content, dropped.shown, dropped.state) == ("[]", (), "cold")
        assert "forgotten" in dropped.reason
        assert dropped.opening == FULL.opening
        assert store.host_sessions.find("hermes", "cold") == cold


class TestEvents:
    def test_events_come_oldest_first(self, store: Store) -> None:
        events = [
            an_event(at=3.0, ms=1.25, tokens=7, detail="Bash: größer %s"),
            an_event(at=1.0, kind="opening", outcome="warm"),
            an_event("other", at=2.0, host="hermes", detail="nul"),
        ]
        for event in events:
            store.host_sessions.add_event(event)
        assert store.host_sessions.events() == events
        assert store.host_sessions.events(since=2.0) == [events[0], events[2]]
        assert store.host_sessions.events(since=4.0) == []

    def test_erasing_sessions_erases_their_events(self, store: Store) -> None:
        for name in ("a", "b"):
            store.host_sessions.save(a_session(name, host="codex"))
            store.host_sessions.add_event(an_event(name))
        store.host_sessions.erase("codex", ["a", "unknown"])
        assert store.host_sessions.events() == [an_event("b")]
        assert store.host_sessions.find("codex", "a") is None
        assert store.host_sessions.find("codex", "b") is not None

    def test_old_events_are_deleted(self, store: Store) -> None:
        day = 86_400.0
        for age in (1, 179, 181, 400):
            store.host_sessions.add_event(an_event(at=1_000 * day - age * day))
        store.host_sessions.delete_old_events(1_000 * day)
        assert [one.at for one in store.host_sessions.events()] == [999 * day, 821 * day]


class TestWaiting:
    def test_a_record_does_not_wait_long_for_other_writers(
        self, store: Store, database_url: str
    ) -> None:
        with Store(database_url, busy_timeout_s=3_600.0) as other:
            other.host_sessions.save(a_session())
            with store.host_sessions._writing("holding the lock") as connection:
                connection.execute(sa.text("UPDATE host_sessions SET tokens = 7"))
                with pytest.raises(StoreUnavailable, match="Another process is writing"):
                    other.host_sessions.save(a_session(reason="late"), within_s=0.2)
                with pytest.raises(StoreUnavailable):
                    other.host_sessions.save(a_session(reason="at once"), within_s=0.0)
                # Reading does not wait.
                assert other.host_sessions.find("hermes", "s1") == a_session()


class TestOpeningNotes:
    def test_an_opening_is_noted_before_or_after_the_import(self, store: Store) -> None:
        note = store.sessions.note_opening
        note("early", "0123456789abcdef", source="codex", within_s=LONGEST_S)
        for name in ("early", "late"):
            with store.writing() as transaction:
                session = Session(id=SessionId(name), source="codex")
                transaction.add(Fragment(session=session))
                transaction.finish()
        note("late", "fedcba9876543210", source="codex", within_s=LONGEST_S)
        note("late", "0000000000000000", source="codex")
        found = {one.session.id: one.session.opening for one in store.sessions.list()}
        assert found == {"early": "0123456789abcdef", "late": "fedcba9876543210"}
