"""The contract of the quarantine, on SQLite and on a real PostgreSQL."""

from typing import Any

import pytest
from tests.tables import table

from journeyman.records import (
    Fragment,
    KeptOut,
    Message,
    MinedSession,
    Quarantined,
    Session,
    SessionId,
)
from journeyman.records.errors import WrongInput
from journeyman.store.store import Store

RULES = "r1"


def write(store: Store, *names: str, **facts: Any) -> None:
    with store.writing() as writing:
        for name in names:
            session = Session(id=SessionId(name), source="test", log="/logs/a", **facts)
            message = Message(key="u", position=1, role="user", text="hello")
            writing.add(Fragment(session=session, messages=(message,)))
        writing.finish()


def an_exclusion(key: str, session: str = "a", **facts: Any) -> KeptOut:
    given = {
        "kind": "command",
        "rule": "git.push",
        "reason": "It overwrites what others have pushed.",
        "text": f"git push --force {key}",
        "number": 1,
        **facts,
    }
    return KeptOut(key=key, session=SessionId(session), **given)


def mined(store: Store, name: str, *found: KeptOut) -> MinedSession:
    """The session in its current state, with its exclusions. Exclusions that were released are
    found again.
    """
    digest, released = store.sessions.get(name).digest, store.quarantine.released()
    return MinedSession(
        session=SessionId(name),
        digest=digest,
        kept_out=found,
        released=released.intersection(one.key for one in found),
    )


def save(store: Store, name: str, *found: KeptOut) -> None:
    store.learned.save(RULES, [mined(store, name, *found)], {})


def keys(store: Store, **chosen: Any) -> list[str]:
    return [one.key for one in store.quarantine.list(**chosen)]


class TestListing:
    def test_reading_returns_exactly_what_was_stored(self, store: Store) -> None:
        write(store, "a")
        assert store.quarantine.list() == []
        one = an_exclusion("k1", text="Größer 東京 \t\n\\ \" ' %s :x", number=7)
        save(store, "a", one)
        assert store.quarantine.list() == [
            Quarantined(
                key="k1",
                kind="command",
                rule=one.rule,
                reason=one.reason,
                text=one.text,
                sessions=(SessionId("a"),),
            )
        ]

    def test_equal_exclusions_of_several_sessions_are_one_and_come_first(
        self, store: Store
    ) -> None:
        write(store, "a", "b")
        save(store, "a", an_exclusion("k1"), an_exclusion("k2"))
        save(store, "b", an_exclusion("k2", "b"), an_exclusion("k2", "b", number=2))
        assert keys(store) == ["k2", "k1"]
        assert store.quarantine.list()[0].sessions == ("a", "b")

    def test_exclusions_a_session_no_longer_contains_are_removed(self, store: Store) -> None:
        write(store, "a", "b")
        save(store, "a", an_exclusion("k1"), an_exclusion("k2"))
        save(store, "b", an_exclusion("k3", "b"))
        save(store, "a", an_exclusion("k2"))
        assert keys(store) == ["k2", "k3"]
        store.sessions.delete("b")
        assert keys(store) == ["k2"]

    @table(
        ("chosen", "expected"),
        [
            ({"rule": "git"}, ["k1"]),
            ({"rule": "git.push"}, ["k1"]),
            ({"rule": "gi"}, []),
            ({"rule": "instruct"}, ["k2"]),
            ({"project": "shop"}, ["k1"]),
            ({"project": "other"}, []),
            ({"decided": True}, []),
        ],
    )
    def test_listing_can_be_filtered(
        self, store: Store, chosen: dict[str, Any], expected: list[str]
    ) -> None:
        write(store, "a", project="acme/shop")
        write(store, "b")
        save(store, "a", an_exclusion("k1"))
        save(store, "b", an_exclusion("k2", "b", kind="pattern", rule="instruct.ignore"))
        assert keys(store, **chosen) == expected


class TestDecisions:
    def test_a_release_is_mined_again_and_stays_recorded(
        self, store: Store, database_url: str
    ) -> None:
        write(store, "a", "b", "c")
        save(store, "a", an_exclusion("k1"), an_exclusion("k2"))
        save(store, "b", an_exclusion("k2", "b"))
        save(store, "c")
        (released,) = store.quarantine.release(["k2"], by="ada")
        assert (released.state, released.decided_by) == ("released", "ada")
        assert released.decided_at
        with Store(database_url, clock=lambda: 7.0) as dated:
            assert [one.decided_at for one in dated.quarantine.release(["k1"])] == [7.0]
            dated.quarantine.restore(["k1"])
        assert store.quarantine.released() == {"k2"}
        assert store.learned.missing(RULES) == ["a", "b"]
        assert (keys(store), keys(store, decided=True)) == (["k1"], ["k2"])
        save(store, "a", an_exclusion("k1"), an_exclusion("k2"))
        save(store, "b", an_exclusion("k2", "b"))
        assert store.quarantine.get("k2").sessions == ("a", "b")
        (restored,) = store.quarantine.restore(["k2"])
        assert (restored.state, restored.decided_at) == ("kept out", None)
        assert store.learned.missing(RULES) == ["a", "b"]
        assert keys(store) == ["k2", "k1"]

    def test_results_from_before_a_release_are_mined_again(self, store: Store) -> None:
        write(store, "a")
        save(store, "a", an_exclusion("k1"))
        before = mined(store, "a", an_exclusion("k1"))
        store.quarantine.release(["k1"])
        store.learned.save(RULES, [before], {})
        assert store.learned.missing(RULES) == ["a"]
        save(store, "a", an_exclusion("k1"))
        assert store.learned.missing(RULES) == []
        before = mined(store, "a", an_exclusion("k1"))
        store.quarantine.restore(["k1"])
        store.learned.save(RULES, [before], {})
        assert store.learned.missing(RULES) == ["a"]

    def test_a_release_is_not_counted_as_excluded(self, store: Store) -> None:
        write(store, "a")
        save(store, "a", an_exclusion("k1"), an_exclusion("k2"))
        store.quarantine.release(["k1"])
        save(store, "a", an_exclusion("k1"), an_exclusion("k2"))
        assert store.patterns.counts() == {"quarantined": 1}
        forgotten = store.forgotten.forget({SessionId("a"): frozenset((1,))}, at=1.0)
        assert forgotten.kept_out == 2
        assert store.quarantine.list(decided=True) == []
        save(store, "a", an_exclusion("k1"))
        assert store.learned.missing(RULES) == []

    def test_a_key_is_found_by_a_unique_prefix(self, store: Store) -> None:
        write(store, "a")
        save(store, "a", an_exclusion("abc1"), an_exclusion("abd2"), an_exclusion("ab"))
        assert store.quarantine.get("abc").key == "abc1"
        assert store.quarantine.get("ABC1").key == "abc1"
        assert store.quarantine.get("ab").key == "ab"
        with pytest.raises(WrongInput, match="More than one key starts with 'a': ab, abc1, abd2"):
            store.quarantine.get("a")
        for wrong in ("x", ""):
            with pytest.raises(WrongInput, match="journeyman templates quarantine"):
                store.quarantine.get(wrong)

    def test_one_wrong_key_prevents_every_decision(self, store: Store) -> None:
        write(store, "a")
        save(store, "a", an_exclusion("k1"))
        with pytest.raises(WrongInput):
            store.quarantine.release(["k1", "unknown"])
        assert store.quarantine.released() == frozenset()
