"""Reviews and the journal: every write to memory and skills with its provenance, so that it can be
shown and undone.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Draft, JournalEntry, Provenance, Review, ReviewId, Write, WriteId
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

_decode_drafts = msgspec.json.Decoder(tuple[Draft, ...]).decode
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
                raise _unknown("review", review.id)

    def list(
        self,
        limit: int | None = None,
        *,
        session: str | None = None,
        draft: str | None = None,
        untold: bool = False,
    ) -> Sequence[Review]:
        """Return reviews, newest first: all, or those of a session, with a draft whose id begins
        like this, or with drafts of which no person was told.
        """
        query, columns = _REVIEWS.limit(limit), reviews.c
        if session is not None:
            query = query.where(columns.session_id == storable(session))
        if draft is not None:
            query = query.where(columns.drafts.contains(f'"id":"{draft}', autoescape=True))
        if untold:
            query = query.where(columns.told_at.is_(None), columns.drafts != "[]")
        return [_review_of(row) for row in self._read("reading reviews", query)]

    def get(self, id_: str) -> Review:
        """Return a review by its id or a prefix of it. Raise UnknownReview unless exactly one
        matches.
        """
        return _review_of(self._get_row("review", reviews, id_))

    def tokens_since(self, at: float) -> int:
        """Return what the reviews that began since then have used."""
        query = sa.select(sa.func.coalesce(sa.func.sum(reviews.c.tokens), 0).label("tokens"))
        return int(self._read("reading reviews", query.where(reviews.c.started_at >= at))[0].tokens)

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

    def get_write(self, id_: str) -> JournalEntry:
        """Return a write by its id or a prefix of it. Raise UnknownReview unless exactly one
        matches.
        """
        return _entry_of(self._get_row("write", writes, id_))

    def beginning(self, id_: str) -> tuple[Sequence[ReviewId], Sequence[WriteId]]:
        """Return the ids of reviews and of writes with this prefix; a complete id matches alone."""
        with self._reading("reading reviews") as connection:
            review_ids, write_ids = (
                [row.id for row in find_by_prefix(connection, table, id_)]
                for table in (reviews, writes)
            )
        exact = {storable(id_)} & {*review_ids, *write_ids}
        return (
            [ReviewId(match) for match in review_ids if not exact or match in exact],
            [WriteId(match) for match in write_ids if not exact or match in exact],
        )

    def mark_undone(self, id_: WriteId, at: float) -> None:
        """Record that a write was undone. Raise UnknownReview if the journal has no such write."""
        this, first = writes.c.id == storable(id_), sa.func.coalesce(writes.c.undone_at, at)
        with self._writing("marking a write as undone") as connection:
            if not connection.execute(writes.update().where(this).values(undone_at=first)).rowcount:
                raise _unknown("write", id_)

    def _get_row(self, kind: str, table: sa.Table, id_: str) -> sa.Row[Any]:
        with self._reading("reading reviews") as connection:
            rows = find_by_prefix(connection, table, id_)
        if len(rows) > 1:
            ids = ", ".join(row.id for row in rows)
            raise UnknownReview(
                f"More than one {kind} id starts with {id_!r}: {ids}. Use more characters."
            )
        if not rows:
            raise _unknown(kind, id_)
        return rows[0]


def _unknown(kind: str, id_: str) -> UnknownReview:
    return UnknownReview(
        f"No {kind} has the id {id_!r} or an id that starts with it. "
        "List the ids with: journeyman review list"
    )


def _review_values(review: Review) -> dict[str, Any]:
    return values_of(
        review,
        reviews,
        session_id=storable(review.session),
        drafts=json_text(review.drafts),
        details=json_text(review.details),
    )


def _review_of(row: sa.Row[Any]) -> Review:
    return record_of(
        Review,
        row,
        session=row.session_id,
        drafts=_decode_drafts(row.drafts),
        details=decode_details(row.details),
    )


def _entry_of(row: sa.Row[Any]) -> JournalEntry:
    return record_of(
        JournalEntry,
        row,
        write=_decode_write(row.body),
        review=row.review_id,
        provenance=_decode_provenance(row.provenance),
    )
