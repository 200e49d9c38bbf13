"""The journal of memory and skills: each change is recorded and can be undone."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.tools.tool import Invocation
from journeyman.records import JournalEntry, Review, ReviewId, Write, WriteId
from journeyman.records.errors import NotWritten
from journeyman.store.reviews import Reviews


def journal_entry(
    write: Write,
    invocation: Invocation,
    knowledge: Knowledge,
    at: float,
    review: ReviewId | None = None,
) -> JournalEntry:
    """The journal entry of a write: its origin, its folder and its evidence."""
    return JournalEntry(
        id=WriteId(secrets.token_hex(4)),
        at=at,
        write=write,
        review=review,
        provenance=msgspec.structs.replace(
            invocation.origin,
            tool_call=invocation.call_id,
            folder=str(knowledge.folder.resolve()),
        ),
        evidence=str(invocation.arguments.get("evidence") or ""),
    )


class UndoneWrites(Struct, frozen=True, kw_only=True):
    """The writes that were undone, and those that could not be, each with the reason."""

    entries: tuple[JournalEntry, ...] = ()
    kept: tuple[tuple[JournalEntry, str], ...] = ()


class Journal:
    """Reviews and writes of one home (`jm.reviews`). Ids may be abbreviated to a unique prefix."""

    def __init__(self, reviews: Reviews, knowledge: Knowledge, clock: Callable[[], float]) -> None:
        self._reviews, self._knowledge, self._clock = reviews, knowledge, clock

    def list(self, limit: int | None = None) -> Sequence[Review]:
        """Return the reviews, newest first."""
        return self._reviews.list(limit)

    def get(self, review_id: str) -> Review:
        """Return one review. Raise UnknownReview."""
        return self._reviews.get(review_id)

    def writes(
        self, review: Review | None = None, *, limit: int | None = None
    ) -> Sequence[JournalEntry]:
        """Return all writes, or those of one review, newest first."""
        return self._reviews.writes(None if review is None else review.id, limit=limit)

    def undo(self, id_: str) -> UndoneWrites:
        """Undo a write or a whole review; what has changed since stays. Raise UnknownReview."""
        entries = [entry for entry in self._reviews.to_undo(id_) if entry.undone_at is None]
        undone, kept = [], []
        for entry in entries:
            try:
                folder = entry.provenance.folder
                knowledge = Knowledge(Path(folder)) if folder else self._knowledge
                knowledge.undo(entry.write)
            except NotWritten as reason:
                kept.append((entry, str(reason)))
                continue
            self._reviews.mark_undone(entry.id, self._clock())
            undone.append(entry)
        return UndoneWrites(entries=tuple(undone), kept=tuple(kept))
