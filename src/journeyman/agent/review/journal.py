"""The journal of memory and skills: each change is recorded and can be undone, and what reviews in
hosts drafted waits here for a person. A drafted fact is stored as a fact that waits; a drafted
skill is only written when it is accepted.
"""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.tools.tool import Invocation
from journeyman.records import Draft, JournalEntry, Provenance, Review, ReviewId, Write, WriteId
from journeyman.records.errors import NotWritten, UnknownReview
from journeyman.records.fact import FactDecision, FactState
from journeyman.store.facts import FactDecisions
from journeyman.store.reviews import Reviews

_Drafted = tuple[Review, Draft]


def journal_entry(
    write: Write,
    invocation: Invocation,
    knowledge: Knowledge,
    at: float,
    review: ReviewId | None = None,
) -> JournalEntry:
    """The journal entry of a write: its origin, its folder and its evidence."""
    folder = str(knowledge.folder.resolve())
    return JournalEntry(
        id=WriteId(secrets.token_hex(4)),
        at=at,
        write=write,
        review=review,
        provenance=replace(invocation.origin, tool_call=invocation.call_id, folder=folder),
        evidence=str(invocation.arguments.get("evidence") or ""),
    )


class Changes(Struct, frozen=True, kw_only=True):
    """The writes that were made or undone, the drafts that were decided about, as they are now, and
    what could not be done, each with the reason.
    """

    entries: tuple[JournalEntry, ...] = ()
    drafts: tuple[Draft, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()


class Journal:
    """Reviews, writes and drafts of one home (`jm.reviews`). Ids may be abbreviated to a unique
    prefix; that of a review stands for all its writes and drafts.
    """

    def __init__(
        self,
        reviews: Reviews,
        decisions: FactDecisions,
        knowledge: Knowledge,
        clock: Callable[[], float],
    ) -> None:
        self.store = reviews
        self._decisions, self._knowledge, self._clock = decisions, knowledge, clock

    def list(self, limit: int | None = None) -> Sequence[Review]:
        """Return the reviews with their drafts as they are now, newest first."""
        return [self._as_it_is(review) for review in self.store.list(limit)]

    def get(self, id_: str) -> Review:
        """Return a review, by its id or that of one of its drafts. Raise UnknownReview."""
        drafted = self.store.list(1, draft=id_) if id_ else ()
        return self._as_it_is(drafted[0] if drafted else self.store.get(id_))

    def writes(
        self, review: Review | None = None, *, limit: int | None = None
    ) -> Sequence[JournalEntry]:
        """Return all writes, or those of one review, newest first."""
        return self.store.writes(None if review is None else review.id, limit=limit)

    def accept(self, id_: str) -> Changes:
        """Have later sessions told drafted facts, and write drafted skills for the host. Raise
        UnknownReview.
        """
        entries, drafts, kept = [], [], []
        for review, draft in self._named(id_)[1]:
            if self._state(review, draft) == "pinned":
                continue
            try:
                if draft.kind == "skill":
                    entries.append(self._write(review, draft))
            except NotWritten as reason:
                kept.append((draft.name, str(reason)))
            else:
                drafts.append(self._decided(review, draft, "pinned"))
        return Changes(entries=tuple(entries), drafts=tuple(drafts), kept=tuple(kept))

    def refuse(self, id_: str) -> Changes:
        """Have nobody told drafts, also if they were accepted before. Raise UnknownReview."""
        return self._take_back(id_, "dropped")

    def undo(self, id_: str) -> Changes:
        """Undo a write or a whole review, or the decision about a draft, which then waits again.
        What has changed since stays. Raise UnknownReview.
        """
        return self._take_back(id_, "draft")

    def news(self) -> str:
        """Return a line about the drafts of which no person was told; empty if there are none."""
        untold = self.store.list(untold=True)
        count = sum(len(review.drafts) for review in untold)
        sessions = "your last session" if len(untold) == 1 else f"{len(untold)} sessions"
        things = "1 thing" if count == 1 else f"{count} things"
        told = f"Journeyman: the review of {sessions} drafted {things}: journeyman review list"
        return told if count else ""

    def note_told(self) -> None:
        """Note that a person was told of all drafts that there are."""
        for review in self.store.list(untold=True):
            self.store.finish(replace(review, told_at=self._clock()))

    def _take_back(self, id_: str, state: FactState) -> Changes:
        entries, drafted = self._named(id_)
        undone, kept = [], []
        for entry in entries:
            try:
                folder = entry.provenance.folder
                (Knowledge(Path(folder)) if folder else self._knowledge).undo(entry.write)
            except NotWritten as reason:
                kept.append((entry.write.summary, str(reason)))
                continue
            self.store.mark_undone(entry.id, self._clock())
            undone.append(entry)
        drafts = [
            self._decided(review, draft, state)
            for review, draft in drafted
            if self._state(review, draft) != state and not self._written(review, draft)
        ]
        return Changes(entries=tuple(undone), drafts=tuple(drafts), kept=tuple(kept))

    def _write(self, review: Review, draft: Draft) -> JournalEntry:
        """Write a drafted skill. Raise NotWritten."""
        skills = (knowledge := Knowledge(Path(draft.folder))).skills
        write = knowledge.change("skill", lambda: skills.create(draft.name, draft.text))
        origin = Provenance(
            origin="background_review",
            context=_context(draft),
            session=review.session,
            model=review.model,
            folder=draft.folder,
        )
        entry = JournalEntry(
            id=WriteId(secrets.token_hex(4)),
            at=self._clock(),
            write=write,
            review=review.id,
            provenance=origin,
            evidence=draft.evidence,
        )
        self.store.add_write(entry)
        return entry

    def _decided(self, review: Review, draft: Draft, state: FactState) -> Draft:
        """Store a decision about a draft: about a fact beside other facts, about a skill with the
        review.
        """
        decided, at = replace(draft, state=state), self._clock()
        if draft.kind != "skill":
            decision = FactDecision(
                project=draft.project, id=draft.id, state=state, text=draft.text, at=at
            )
            self._decisions.decide(decision)
        else:
            stored = self.store.get(review.id)
            drafts = tuple(decided if one.id == draft.id else one for one in stored.drafts)
            self.store.finish(replace(stored, drafts=drafts))
        return decided

    def _as_it_is(self, review: Review) -> Review:
        drafts = (replace(one, state=self._state(review, one)) for one in review.drafts)
        return replace(review, drafts=tuple(drafts))

    def _state(self, review: Review, draft: Draft) -> FactState:
        """Return what was decided about a draft, also elsewhere: `facts` decides about facts, and
        the write of a skill can be undone by its own id.
        """
        if draft.kind != "skill":
            decisions = self._decisions.decisions(draft.project)
            return next((one.state for one in decisions if one.id == draft.id), "dropped")
        is_lost = draft.state == "pinned" and not self._written(review, draft)
        return "draft" if is_lost else draft.state

    def _written(self, review: Review, draft: Draft) -> Sequence[JournalEntry]:
        entries = self.store.writes(review.id) if draft.kind == "skill" else ()
        return [
            entry
            for entry in entries
            if entry.undone_at is None and entry.provenance.context == _context(draft)
        ]

    def _named(self, id_: str) -> tuple[Sequence[JournalEntry], Sequence[_Drafted]]:
        """Return the writes to undo and the drafts that an id stands for. Raise UnknownReview."""
        reviews, writes = self.store.beginning(id_)
        drafted = {
            draft.id: (review, draft)
            for review in self.store.list(draft=id_)
            for draft in review.drafts
            if draft.id.startswith(id_)
        }
        names = [f"review {review}" for review in reviews]
        names += [f"write {write}" for write in writes]
        names += [f"draft {draft}" for draft in drafted]
        if len(names) != 1:
            problem = f"matches more than one: {', '.join(names)}" if names else "matches nothing"
            raise UnknownReview(f"The id {id_!r} {problem}. List the ids: journeyman review list")
        if writes:
            found, chosen = [self.store.get_write(writes[0])], list[_Drafted]()
        elif reviews:
            review = self.store.get(reviews[0])
            found, chosen = [*self.writes(review)], [(review, draft) for draft in review.drafts]
        else:
            chosen = [*drafted.values()]
            found = [entry for pair in chosen for entry in self._written(*pair)]
        return [entry for entry in found if entry.undone_at is None], chosen


def _context(draft: Draft) -> str:
    return f"draft {draft.id}"
