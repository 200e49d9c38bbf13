"""Reviews and the journal: every write to memory and skills with where it came from, so that it
can be shown and undone. The files themselves are not this room's business.
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
    find_beginning,
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
        """Keep a review that begins."""
        with self._writing("keeping a review") as connection:
            connection.execute(reviews.insert(), _review_values(review))

    def finish(self, review: Review) -> None:
        """Keep what became of a review. Raises UnknownReview when it never began."""
        values = _review_values(review)
        with self._writing("keeping a review") as connection:
            this = reviews.c.id == values.pop("id")
            if not connection.execute(reviews.update().where(this).values(values)).rowcount:
                raise _unknown("review", review.id)

    def list(self, limit: int | None = None) -> Sequence[Review]:
        """Reviews, newest first."""
        return [_review_of(row) for row in self._read("reading reviews", _REVIEWS.limit(limit))]

    def get(self, id_: str) -> Review:
        """A review by its id or the beginning of it. Raises UnknownReview when none or more than
        one has it.
        """
        return _review_of(self._one("review", reviews, id_))

    def add_write(self, entry: JournalEntry) -> None:
        """Keep a write in the journal."""
        with self._writing("keeping a write in the journal") as connection:
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
        """The journal, or what one review wrote, newest first: the order to undo them in."""
        asked = _WRITES if review is None else _WRITES.where(writes.c.review_id == review)
        return [_entry_of(row) for row in self._read("reading the journal", asked.limit(limit))]

    def get_write(self, id_: str) -> JournalEntry:
        """A write by its id or the beginning of it. Raises UnknownReview when none or more than
        one has it.
        """
        return _entry_of(self._one("write", writes, id_))

    def beginning(self, id_: str) -> tuple[Sequence[ReviewId], Sequence[WriteId]]:
        """The ids of reviews and of writes that begin so; one that is the whole id is alone."""
        with self._reading("reading reviews") as one:
            of_reviews, of_writes = (
                [row.id for row in find_beginning(one, table, id_)] for table in (reviews, writes)
            )
        whole = {storable(id_)} & {*of_reviews, *of_writes}
        return (
            [ReviewId(one) for one in of_reviews if not whole or one in whole],
            [WriteId(one) for one in of_writes if not whole or one in whole],
        )

    def mark_undone(self, id_: WriteId, at: float) -> None:
        """Say that a write was undone. Raises UnknownReview when the journal has no such write."""
        this, first = writes.c.id == storable(id_), sa.func.coalesce(writes.c.undone_at, at)
        with self._writing("marking a write as undone") as connection:
            if not connection.execute(writes.update().where(this).values(undone_at=first)).rowcount:
                raise _unknown("write", id_)

    def _one(self, what: str, table: sa.Table, id_: str) -> sa.Row[Any]:
        with self._reading("reading reviews") as connection:
            found = find_beginning(connection, table, id_)
        if len(found) > 1:
            names = ", ".join(row.id for row in found)
            raise UnknownReview(
                f"The id {id_!r} is the beginning of more than one {what}: {names}. Give more "
                "letters of it."
            )
        if not found:
            raise _unknown(what, id_)
        return found[0]


def _unknown(what: str, id_: str) -> UnknownReview:
    return UnknownReview(
        f"No {what} has the id {id_!r} or one that begins so. "
        "See the ids with: journeyman review list"
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
