"""The contract of reviews and their journal, on SQLite and on a real PostgreSQL."""

from typing import Any

import msgspec
import pytest

from journeyman.records import (
    EntryChange,
    Fragment,
    JournalEntry,
    Message,
    Provenance,
    Review,
    ReviewId,
    Session,
    SessionId,
    Write,
    WriteId,
)
from journeyman.records.errors import UnknownReview, UnknownSession
from journeyman.store.store import Store


def a_review(id_: str = "r1", **facts: Any) -> Review:
    return Review(id=ReviewId(id_), **{"session": "s", "started_at": 1.0, **facts})


def a_write(id_: str = "w1", **facts: Any) -> JournalEntry:
    write = Write(kind="memory", action="add", path="memories/MEMORY.md", after="tea")
    return JournalEntry(id=WriteId(id_), **{"at": 1.0, "write": write, **facts})


class TestReviews:
    def test_reading_returns_exactly_what_was_stored(self, store: Store, database_url: str) -> None:
        review = a_review(
            session="größer 東京",
            started_at=1e9 + 0.125,
            model='m "quoted" %s :x',
            details={"steps": [{"said": "nul \x00 🦓 \u2028"}], "n": 1.5},
        )
        store.reviews.begin(review)
        with Store(database_url) as again:
            assert again.reviews.get("r1") == review
            assert again.reviews.list() == [review]
        ended = msgspec.structs.replace(
            review,
            ended_at=1e9 + 2.5,
            status="failed",
            error="it\nbroke",
            iterations=3,
            details={"steps": []},
        )
        store.reviews.finish(ended)
        assert store.reviews.get("r1") == ended
        assert store.reviews.list() == [ended]

    def test_the_newest_is_first(self, store: Store) -> None:
        for id_, at in (("b", 2.0), ("a", 3.0), ("d", 1.0), ("c", 2.0)):
            store.reviews.begin(a_review(id_, started_at=at))
        assert [one.id for one in store.reviews.list()] == ["a", "c", "b", "d"]
        assert [one.id for one in store.reviews.list(2)] == ["a", "c"]
        assert store.reviews.list(0) == []

    def test_a_unique_prefix_of_an_id_is_enough(self, store: Store) -> None:
        for id_ in ("abc1", "abc2", "ab", "x%"):
            store.reviews.begin(a_review(id_))
        assert store.reviews.get("abc1").id == "abc1"
        assert store.reviews.get("x").id == "x%"
        assert store.reviews.get("ab").id == "ab"
        with pytest.raises(
            UnknownReview, match="More than one review id starts with 'abc': abc1, abc2"
        ):
            store.reviews.get("abc")
        for wrong in ("y", "", "AB", "%", "abc12", "a_c"):
            with pytest.raises(UnknownReview, match="No review has the id"):
                store.reviews.get(wrong)


class TestWrites:
    def test_reading_returns_exactly_what_was_stored(self, store: Store, database_url: str) -> None:
        entry = a_write(
            at=1e9 + 0.125,
            review=ReviewId("r1"),
            write=Write(
                kind="skill",
                action="delete",
                path="skills/größer/SKILL.md",
                before="nul \x00 東京 %s :x\r\n",
                after=None,
                summary="skill: deleted “größer”",
                entries=(EntryChange(index=2, before="a", after=""),),
            ),
            provenance=Provenance(
                origin="background_review",
                context="review r1",
                session="s",
                parent="p",
                platform="cli",
                tool_call="c",
                model="m",
            ),
            evidence='the user: "never on Fridays"',
        )
        store.reviews.add_write(entry)
        with Store(database_url) as again:
            assert again.reviews.get_write("w1") == entry
            assert again.reviews.writes() == [entry]
            # None and an empty text differ.

    def test_writes_are_newest_first_so_that_they_are_undone_in_order(self, store: Store) -> None:
        for id_, at in (("b", 2.0), ("a", 2.0), ("d", 1.0), ("c", 2.0)):
            store.reviews.add_write(a_write(id_, at=at))
        assert [one.id for one in store.reviews.writes()] == ["c", "a", "b", "d"]
        assert [one.id for one in store.reviews.writes(limit=3)] == ["c", "a", "b"]

    def test_writes_of_one_review(self, store: Store) -> None:
        store.reviews.add_write(a_write("w1", review=ReviewId("r1")))
        store.reviews.add_write(a_write("w2", review=ReviewId("r2")))
        store.reviews.add_write(a_write("w3", review=ReviewId("r1")))
        store.reviews.add_write(a_write("w4"))
        assert [one.id for one in store.reviews.writes(ReviewId("r1"))] == ["w3", "w1"]
        assert [one.id for one in store.reviews.writes(ReviewId("r1"), limit=1)] == ["w3"]
        assert store.reviews.writes(ReviewId("r")) == []
        assert len(store.reviews.writes()) == 4

    def test_a_write_is_undone_once(self, store: Store) -> None:
        store.reviews.add_write(a_write("w1"))
        store.reviews.add_write(a_write("w2"))
        store.reviews.mark_undone(WriteId("w1"), 5.0)
        store.reviews.mark_undone(WriteId("w1"), 6.0)
        assert store.reviews.get_write("w1") == a_write("w1", undone_at=5.0)
        assert store.reviews.get_write("w2") == a_write("w2")

    def test_the_journal_outlives_its_session(self, store: Store) -> None:
        session = Session(id=SessionId("s"), source="test")
        message = Message(key="1", position=1, role="user", text="hello")
        with store.writing() as writing:
            writing.add(Fragment(session=session, messages=(message,)))
            writing.finish()
        store.reviews.begin(a_review(session="s"))
        store.reviews.add_write(a_write(review=ReviewId("r1"), provenance=Provenance(session="s")))
        store.sessions.delete(SessionId("s"))
        with pytest.raises(UnknownSession):
            store.sessions.get("s")
        assert store.reviews.get("r1").session == "s"
        assert [one.id for one in store.reviews.writes(ReviewId("r1"))] == ["w1"]
