"""The journal as people use it: what reviews and agents wrote, and taking it back."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.records import JournalEntry, Review
from journeyman.records.errors import NotWritten, UnknownReview
from journeyman.store.reviews import Reviews


class Undone(Struct, frozen=True, kw_only=True):
    """What was taken back, and what could not be, with the reason for each."""

    entries: tuple[JournalEntry, ...] = ()
    kept: tuple[tuple[JournalEntry, str], ...] = ()


class Journal:
    """Reviews and writes of one home (`jm.reviews`). Ids may be given by any beginning that only
    one has.
    """

    def __init__(self, reviews: Reviews, knowledge: Knowledge, clock: Callable[[], float]) -> None:
        self._reviews, self._knowledge, self._clock = reviews, knowledge, clock

    def list(self, limit: int | None = None) -> Sequence[Review]:
        """Reviews, newest first."""
        return self._reviews.list(limit)

    def get(self, review_id: str) -> Review:
        """One review. Raises UnknownReview."""
        return self._reviews.get(review_id)

    def writes(
        self, review: Review | None = None, *, limit: int | None = None
    ) -> Sequence[JournalEntry]:
        """What was written, or what one review wrote, newest first."""
        return self._reviews.writes(None if review is None else review.id, limit=limit)

    def undo(self, id_: str) -> Undone:
        """Take back a write, or all writes of a review, the newest first. What has changed since
        stays, with the reason. Raises UnknownReview.
        """
        entries = [one for one in self._entries(id_) if one.undone_at is None]
        undone, kept = [], []
        for entry in entries:
            try:
                folder = entry.provenance.folder
                knowledge = Knowledge(Path(folder)) if folder else self._knowledge
                knowledge.take_back(entry.write)
            except NotWritten as reason:
                kept.append((entry, str(reason)))
                continue
            self._reviews.mark_undone(entry.id, self._clock())
            undone.append(entry)
        return Undone(entries=tuple(undone), kept=tuple(kept))

    def _entries(self, id_: str) -> Sequence[JournalEntry]:
        reviews, writes = self._reviews.beginning(id_)
        names = [*(f"review {one}" for one in reviews), *(f"write {one}" for one in writes)]
        if len(names) != 1:
            said = (
                f"is the beginning of more than one: {', '.join(names)}" if names else "is of none"
            )
            raise UnknownReview(f"The id {id_!r} {said}. See the ids: journeyman review list")
        if reviews:
            return self._reviews.writes(reviews[0])
        return [self._reviews.get_write(writes[0])]
