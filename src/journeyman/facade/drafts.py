"""What reviews in hosts drafted, and what a person decides about it. A fact is stored as one that
waits; a skill is only written when a person accepts it, and can be taken back like any write.
"""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.records import Draft, JournalEntry, Provenance, Review, Write, WriteId
from journeyman.records.errors import NotWritten, UnknownReview
from journeyman.records.fact import FactDecision, FactState
from journeyman.store.facts import FactDecisions
from journeyman.store.reviews import Reviews


class DecidedDrafts(Struct, frozen=True, kw_only=True):
    """The drafts that were decided about, as they are now, and those that could not be, each with
    the reason.
    """

    drafts: tuple[Draft, ...] = ()
    kept: tuple[tuple[Draft, str], ...] = ()


class Drafts:
    """The drafts of one home (`jm.drafts`). An id is that of a draft or of a review, which stands
    for all its drafts; it may be abbreviated to a unique prefix.
    """

    def __init__(
        self, reviews: Reviews, decisions: FactDecisions, clock: Callable[[], float]
    ) -> None:
        self.reviews = reviews
        self._decisions, self._clock = decisions, clock

    def of(self, review: Review) -> tuple[Draft, ...]:
        """Return the drafts of a review as they are now."""
        return tuple(replace(one, state=self._state(review, one)) for one in review.drafts)

    def has(self, id_: str) -> bool:
        """Return whether an id is that of a draft, or of a review that has any."""
        try:
            return bool(self._named(id_))
        except UnknownReview:
            return False

    def accept(self, id_: str) -> DecidedDrafts:
        """Tell later sessions facts, and write skills for the host. Raise UnknownReview."""
        return self._decide(id_, ("draft", "known", "dropped"), "pinned")

    def refuse(self, id_: str) -> DecidedDrafts:
        """Never tell facts, and write no skills; accepted ones are taken back. Raise
        UnknownReview.
        """
        return self._decide(id_, ("draft", "known", "pinned"), "dropped")

    def undo(self, id_: str) -> DecidedDrafts:
        """Take decisions back: the drafts wait again. Raise UnknownReview."""
        return self._decide(id_, ("known", "pinned", "dropped"), "draft")

    def news(self) -> str:
        """Return a line about the drafts of which no person was told; empty if there are none."""
        untold = self.reviews.untold()
        count = sum(len(review.drafts) for review in untold)
        if not count:
            return ""
        sessions = "your last session" if len(untold) == 1 else f"{len(untold)} sessions"
        things = "1 thing" if count == 1 else f"{count} things"
        return f"Journeyman: the review of {sessions} drafted {things}: journeyman review list"

    def note_told(self) -> None:
        """Note that a person was told of all drafts that there are."""
        for review in self.reviews.untold():
            self.reviews.finish(replace(review, told_at=self._clock()))

    def _decide(self, id_: str, before: Sequence[FactState], state: FactState) -> DecidedDrafts:
        drafts, kept = [], []
        for review, draft in self._named(id_):
            if self._state(review, draft) not in before:
                continue
            try:
                if draft.kind == "skill":
                    self._decide_on_skill(review, draft, state)
                else:
                    self._decide_on_fact(draft, state)
            except NotWritten as reason:
                kept.append((draft, str(reason)))
            else:
                drafts.append(replace(draft, state=state))
        return DecidedDrafts(drafts=tuple(drafts), kept=tuple(kept))

    def _decide_on_fact(self, draft: Draft, state: FactState) -> None:
        decision = FactDecision(
            project=draft.project,
            id=draft.id,
            state=state,
            text=draft.text,
            at=self._clock(),
        )
        self._decisions.decide(decision)

    def _decide_on_skill(self, review: Review, draft: Draft, state: FactState) -> None:
        knowledge, at = Knowledge(Path(draft.folder)), self._clock()
        if state == "pinned":

            def plan() -> Write:
                return knowledge.skills.create(draft.name, draft.text)

            origin = Provenance(
                origin="background_review",
                context=_context(draft),
                session=review.session,
                model=review.model,
                folder=draft.folder,
            )
            entry = JournalEntry(
                id=WriteId(secrets.token_hex(4)),
                at=at,
                write=knowledge.change("skill", plan),
                review=review.id,
                provenance=origin,
                evidence=draft.evidence,
            )
            self.reviews.add_write(entry)
        for entry in self._written(review, draft) if state != "pinned" else ():
            knowledge.undo(entry.write)
            self.reviews.mark_undone(entry.id, at)
        stored = self.reviews.get(review.id)
        drafts = [replace(one, state=state) if one.id == draft.id else one for one in stored.drafts]
        self.reviews.finish(replace(stored, drafts=tuple(drafts)))

    def _state(self, review: Review, draft: Draft) -> FactState:
        """Return what was decided about a draft, also elsewhere: facts can be decided about by
        `facts`, and a skill's write can be undone by its own id.
        """
        if draft.kind != "skill":
            decided = self._decisions.decisions(draft.project)
            return next((one.state for one in decided if one.id == draft.id), "dropped")
        if draft.state == "pinned" and not self._written(review, draft):
            return "draft"
        return draft.state

    def _written(self, review: Review, draft: Draft) -> list[JournalEntry]:
        return [
            entry
            for entry in self.reviews.writes(review.id)
            if entry.undone_at is None and entry.provenance.context == _context(draft)
        ]

    def _named(self, id_: str) -> list[tuple[Review, Draft]]:
        """Return the drafts that an id stands for. Raise UnknownReview."""
        found = {
            draft.id: (review, draft)
            for review in self.reviews.with_draft(id_)
            for draft in review.drafts
            if draft.id.startswith(id_) and id_
        }
        if id_ in found or len(found) == 1:
            return [found.get(id_) or next(iter(found.values()))]
        if found:
            ids = ", ".join(sorted(found))
            raise UnknownReview(f"More than one draft starts with {id_!r}: {ids}.")
        review = self.reviews.get(id_)
        return [(review, draft) for draft in review.drafts]


def _context(draft: Draft) -> str:
    return f"draft {draft.id}"
