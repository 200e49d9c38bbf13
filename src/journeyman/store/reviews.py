"""Reviews and the journal: every write to memory and skills with its provenance, so that it can be
shown and undone.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import JournalEntry, Provenance, Review, ReviewId, Write, WriteId
from journeyman.records.errors import UnknownReview
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    decode_details,
    find_by_prefix,
    json_text,
    record_of,
    storable,
    values_of,
)
from journeyman.store.tables import reviews, writes

_decode_write = msgspec.json.Decoder(Write).decode
_decode_provenance = msgspec.json.Decoder(Provenance).decode

_REVIEWS: sa.Select[Any] = reviews.select().order_by(
    reviews.c.started_at.desc(), reviews.c.row_id.desc()
)
_WRITES: sa.Select[Any] = writes.select().order_by(writes.c.at.desc(), writes.c.row_id.desc())


class Reviews(Repository):
    """The reviews of a store and the journal of writes, newest first."""

    def begin(self, review: Review) -> None:
        """Store a review that begins."""
        with self._writing("storing a review") as connection:
            connection.execute(reviews.insert(), _review_values(review))

    def finish(self, review: Review) -> None:
        """Store the result of a review. Raise UnknownReview if it never began."""
        values = _review_values(review)
        with self._writing("storing a review") as connection:
            this = reviews.c.id == values.pop("id")
            if not connection.execute(reviews.update().where(this).values(values)).rowcount:
                raise _unknown(review.id)

    def list(self, limit: int | None = None) -> Sequence[Review]:
        """Return reviews, newest first."""
        return [_review_of(row) for row in self._read("reading reviews", _REVIEWS.limit(limit))]

    def get(self, id_: str) -> Review:
        """Return a review by its id or a prefix of it. Raise UnknownReview unless exactly one
        matches.
        """
        _, row = self._match(id_, reviews)
        return _review_of(row)

    def add_write(self, entry: JournalEntry) -> None:
        """Add a write to the journal."""
        with self._writing("adding a write to the journal") as connection:
            values = values_of(
                entry,
                writes,
                review_id=None if entry.review is None else storable(entry.review),
                provenance=json_text(entry.provenance),
                body=json_text(entry.write),
            )
            connection.execute(writes.insert(), values)

    def writes(
        self, review: ReviewId | None = None, *, limit: int | None = None
    ) -> Sequence[JournalEntry]:
        """Return the journal, or one review's writes, newest first: the order to undo them in."""
        query = _WRITES if review is None else _WRITES.where(writes.c.review_id == review)
        return [_entry_of(row) for row in self._read("reading the journal", query.limit(limit))]

    def to_undo(self, id_: str) -> Sequence[JournalEntry]:
        """Return the writes of the review with this id or a prefix of it, or the write with it.
        Raise UnknownReview unless exactly one matches.
        """
        table, row = self._match(id_, reviews, writes)
        return [_entry_of(row)] if table is writes else self.writes(row.id)

    def mark_undone(self, id_: WriteId, at: float) -> None:
        """Record that a write was undone. Raise UnknownReview if the journal has no such write."""
        this, first = writes.c.id == storable(id_), sa.func.coalesce(writes.c.undone_at, at)
        with self._writing("marking a write as undone") as connection:
            if not connection.execute(writes.update().where(this).values(undone_at=first)).rowcount:
                raise _unknown(id_)

    def _match(self, id_: str, *tables: sa.Table) -> tuple[sa.Table, sa.Row[Any]]:
        """Return the row with this id, or the only one whose id starts with it."""
        with self._reading("reading reviews") as connection:
            begin = [
                (table, row) for table in tables for row in find_by_prefix(connection, table, id_)
            ]
        found = [match for match in begin if match[1].id == id_] or begin
        if not found:
            raise _unknown(id_)
        if len(found) > 1:
            ids = ", ".join(row.id for _, row in found)
            raise UnknownReview(
                f"More than one id starts with {id_!r}: {ids}. Use more characters."
            )
        return found[0]


def _unknown(id_: str) -> UnknownReview:
    return UnknownReview(
        f"No review or write has the id {id_!r} or an id that starts with it. "
        "List the ids with: journeyman review list"
    )


def _review_values(review: Review) -> dict[str, Any]:
    session, details = storable(review.session), json_text(review.details)
    return values_of(review, reviews, session_id=session, details=details)


def _review_of(row: sa.Row[Any]) -> Review:
    return record_of(Review, row, session=row.session_id, details=decode_details(row.details))


def _entry_of(row: sa.Row[Any]) -> JournalEntry:
    return record_of(
        JournalEntry,
        row,
        write=_decode_write(row.body),
        review=row.review_id,
        provenance=_decode_provenance(row.provenance),
    )
