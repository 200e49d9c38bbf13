"""Reviews and the journal: every write to memory and skills with where it came from, so that it
can be shown and undone. The files themselves are not this room's business.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import JournalEntry, Provenance, Review, ReviewId, Write, WriteId
from journeyman.records.errors import UnknownReview
from journeyman.store.engine import explained, writing
from journeyman.store.rows import storable
from journeyman.store.tables import reviews, writes
from journeyman.store.values import json_text

_decode_write = msgspec.json.Decoder(Write).decode
_decode_provenance = msgspec.json.Decoder(Provenance).decode
_decode_details = msgspec.json.Decoder(dict[str, Any]).decode

_REVIEWS: sa.Select[Any] = reviews.select().order_by(
    reviews.c.started_at.desc(), reviews.c.row_id.desc()
)
_WRITES: sa.Select[Any] = writes.select().order_by(writes.c.at.desc(), writes.c.row_id.desc())


class Reviews:
    """The reviews of a store and the journal of writes, newest first."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def begin(self, review: Review) -> None:
        """Keep a review that begins."""
        with writing(self._engine, "keeping a review") as connection:
            connection.execute(reviews.insert(), _review_values(review))

    def finish(self, review: Review) -> None:
        """Keep what became of a review. Raises UnknownReview when it never began."""
        values = _review_values(review)
        with writing(self._engine, "keeping a review") as connection:
            this = reviews.c.id == values.pop("id")
            if not connection.execute(reviews.update().where(this).values(values)).rowcount:
                raise _unknown("review", review.id)

    def list(self, limit: int | None = None) -> Sequence[Review]:
        """Reviews, newest first."""
        return [_review_of(row) for row in self._read(_REVIEWS.limit(limit))]

    def get(self, id_: str) -> Review:
        """A review by its id or the beginning of it. Raises UnknownReview when none or more than
        one has it.
        """
        return _review_of(self._one("review", reviews, id_))

    def add_write(self, entry: JournalEntry) -> None:
        """Keep a write in the journal."""
        with writing(self._engine, "keeping a write in the journal") as connection:
            connection.execute(writes.insert(), _write_values(entry))

    def writes(
        self, review: ReviewId | None = None, *, limit: int | None = None
    ) -> Sequence[JournalEntry]:
        """The journal, or what one review wrote, newest first: the order to undo them in."""
        asked = _WRITES if review is None else _WRITES.where(writes.c.review_id == review)
        return [_entry_of(row) for row in self._read(asked.limit(limit))]

    def get_write(self, id_: str) -> JournalEntry:
        """A write by its id or the beginning of it. Raises UnknownReview when none or more than
        one has it.
        """
        return _entry_of(self._one("write", writes, id_))

    def beginning(self, id_: str) -> tuple[Sequence[ReviewId], Sequence[WriteId]]:
        """The ids of reviews and of writes that begin so; one that is the whole id is alone."""
        begins = storable(id_)
        found = []
        for table in (reviews, writes):
            alike = sa.func.substr(table.c.id, 1, len(begins)) == begins
            rows = self._read(table.select().where(alike).order_by(table.c.id).limit(4))
            found.append([row.id for row in rows] if begins else [])
        if any(begins in ids for ids in found):
            found = [[begins] if begins in ids else [] for ids in found]
        return [ReviewId(one) for one in found[0]], [WriteId(one) for one in found[1]]

    def mark_undone(self, id_: WriteId, at: float) -> bool:
        """Say that a write was undone; whether it was not before. Raises UnknownReview when the
        journal has no such write.
        """
        this = writes.c.id == storable(id_)
        with writing(self._engine, "marking a write as undone") as connection:
            known = connection.execute(sa.select(writes.c.id).where(this)).one_or_none()
            if known is None:
                raise _unknown("write", id_)
            open_ = this & writes.c.undone_at.is_(None)
            done = connection.execute(writes.update().where(open_).values(undone_at=at))
            return done.rowcount > 0

    def _read(self, asked: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with explained(self._engine.url, "reading reviews"), self._engine.connect() as one:
            return one.execute(asked).all()

    def _one(self, what: str, table: sa.Table, id_: str) -> sa.Row[Any]:
        begins = storable(id_)
        # Not LIKE: SQLite's takes capital letters for small ones.
        alike = sa.func.substr(table.c.id, 1, len(begins)) == begins
        found = self._read(table.select().where(alike).order_by(table.c.id).limit(5))
        exact = [row for row in found if row.id == begins]
        if exact or (len(found) == 1 and begins):
            return (exact or found)[0]
        if found and begins:
            names = ", ".join(row.id for row in found)
            raise UnknownReview(
                f"The id {id_!r} is the beginning of more than one {what}: {names}. Give more "
                "letters of it."
            )
        raise _unknown(what, id_)


def _unknown(what: str, id_: str) -> UnknownReview:
    return UnknownReview(
        f"No {what} has the id {id_!r} or one that begins so. "
        "See the ids with: journeyman review list"
    )


def _review_values(review: Review) -> dict[str, Any]:
    return {
        "id": storable(review.id),
        "session_id": storable(review.session),
        "started_at": review.started_at,
        "ended_at": review.ended_at,
        "status": review.status,
        "model": storable(review.model),
        "iterations": review.iterations,
        "error": storable(review.error),
        "details": json_text(review.details),
    }


def _review_of(row: sa.Row[Any]) -> Review:
    return Review(
        id=ReviewId(row.id),
        session=row.session_id,
        started_at=row.started_at,
        ended_at=row.ended_at,
        status=row.status,
        model=row.model,
        error=row.error,
        iterations=row.iterations,
        details=_decode_details(row.details),
    )


def _write_values(entry: JournalEntry) -> dict[str, Any]:
    return {
        "id": storable(entry.id),
        "review_id": None if entry.review is None else storable(entry.review),
        "at": entry.at,
        "undone_at": entry.undone_at,
        "provenance": json_text(entry.provenance),
        "evidence": storable(entry.evidence),
        "body": json_text(entry.write),
    }


def _entry_of(row: sa.Row[Any]) -> JournalEntry:
    return JournalEntry(
        id=WriteId(row.id),
        at=row.at,
        write=_decode_write(row.body),
        review=None if row.review_id is None else ReviewId(row.review_id),
        provenance=_decode_provenance(row.provenance),
        evidence=row.evidence,
        undone_at=row.undone_at,
    )
