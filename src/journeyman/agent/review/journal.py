"""The journal: a change of memory or skills is checked, made and kept, and can be taken back."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.review.rules import Forbidden
from journeyman.agent.tools.tool import Invocation, Result, failed, refused
from journeyman.records import JournalEntry, Review, ReviewId, Write, WriteId, WriteKind
from journeyman.records.errors import JourneymanError, NotWritten, UnknownReview
from journeyman.store.reviews import Reviews

Keep = Callable[[Write, Invocation], None]
"""Puts a change that was made into the journal."""

Check = Callable[[Write, Invocation], None]
"""Raises Forbidden where a rule forbids a planned change."""


class Journaled(Struct, frozen=True, kw_only=True):
    """Knowledge whose changes are checked before and kept in the journal after."""

    knowledge: Knowledge
    keep: Keep
    check: Check

    def change(
        self, invocation: Invocation, kind: WriteKind, plan: Callable[[], Write]
    ) -> Write | Result:
        """Make a change: what was written, or the answer of a call that wrote nothing."""
        try:
            write = self.knowledge.change(kind, plan, lambda one: self.check(one, invocation))
            kept = False
            try:
                self.keep(write, invocation)
                kept = True
            finally:
                if not kept:
                    self.knowledge.undo(write)
        except Forbidden as error:
            return refused(str(error), success=False)
        except JourneymanError as error:
            return failed(str(error), success=False)
        return write


def journal_entry(
    write: Write,
    invocation: Invocation,
    knowledge: Knowledge,
    at: float,
    review: ReviewId | None = None,
) -> JournalEntry:
    """A write with where it came from and where it was made, for the journal."""
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


class Undone(Struct, frozen=True, kw_only=True):
    """What was taken back, and what could not be, with the reason for each."""

    entries: tuple[JournalEntry, ...] = ()
    kept: tuple[tuple[JournalEntry, str], ...] = ()


class Journal:
    """Reviews and writes of one home (`jm.reviews`). Ids may be given by their beginning."""

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
        """Take back a write, or all of a review; what changed since stays. Raises UnknownReview."""
        entries = [one for one in self._entries(id_) if one.undone_at is None]
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
