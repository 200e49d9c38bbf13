"""What an agent records about its work: a change to memory or to a skill, the review that made it,
and the journal of all changes, from which each one can be undone.
"""

from collections import Counter
from typing import Any, Literal, NewType

from msgspec import Struct

from journeyman.records.fact import FactState

ReviewId = NewType("ReviewId", str)
WriteId = NewType("WriteId", str)

WriteKind = Literal["memory", "user", "skill"]
"""`memory`: notes about the work. `user`: notes about the user. `skill`: a folder with a
SKILL.md."""

ReviewStatus = Literal[
    "running", "changed", "drafted", "unchanged", "incomplete", "failed", "cancelled"
]
"""`drafted`: what it found waits for a person. `unchanged` is a success: there was nothing worth
recording. `incomplete`: it was cut off, or said nothing usable, so that it is not known whether
there was."""

DraftKind = Literal["preference", "fact", "skill"]
"""`preference`: what the person wants. `fact`: what holds in the project. `skill`: a way of doing a
kind of task."""


class EntryChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change to one entry of a memory file: added if `before` is None, removed if `after` is
    None, otherwise replaced. `index` is its position among the entries at that moment.
    """

    index: int
    before: str | None = None
    after: str | None = None


class Write(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change to memory or to a skill: planned, done, or to be undone.

    `path` is relative to the folder with memory and skills; `before` and `after` are the whole text
    of that file, None where it does not exist. `entries` lists the changes to the entries of a
    memory file, in order. `summary` is one line for people.
    """

    kind: WriteKind
    action: str
    path: str
    before: str | None = None
    after: str | None = None
    summary: str = ""
    entries: tuple[EntryChange, ...] = ()

    @property
    def added(self) -> list[str]:
        """The added text: each new entry, or for a skill all lines that are new in the file."""
        if self.kind != "skill":
            return [change.after for change in self.entries if change.after]
        left = Counter((self.before or "").splitlines())
        new = []
        for line in (self.after or "").splitlines():
            if left[line]:
                left[line] -= 1
            else:
                new.append(line)
        return ["\n".join(new)]

    @property
    def changed_lines(self) -> int:
        """The number of added or of removed lines, whichever is larger."""
        before, after = (Counter((text or "").splitlines()) for text in (self.before, self.after))
        return max((after - before).total(), (before - after).total())


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who wrote something, and where: `origin` is `agent` or `background_review`, `context` the
    turn or the review, `parent` the session that `session` continues, `platform` the surface that
    started the agent, `folder` the folder with memory and skills that was written to.
    """

    origin: str = ""
    context: str = ""
    session: str = ""
    parent: str = ""
    platform: str = ""
    tool_call: str = ""
    model: str = ""
    folder: str = ""


class JournalEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change in the journal. `review` is None for what the agent wrote during its own work.
    `evidence` is what the writer cited as the reason.
    """

    id: WriteId
    at: float
    write: Write
    review: ReviewId | None = None
    provenance: Provenance = Provenance()
    evidence: str = ""
    undone_at: float | None = None


class Draft(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a review in a host proposes, with the evidence that was found in the session.
    A preference or a fact of a `project` is told as a fact with this id. The text of a skill is its
    whole SKILL.md, to be written for the host that keeps its skills in this `folder`.
    """

    id: str
    kind: DraftKind
    text: str
    evidence: str
    project: str = ""
    name: str = ""
    folder: str = ""
    state: FactState = "draft"


class Review(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One review of a session. `iterations` counts the model's answers, `details` holds the steps
    taken. A review in a host writes nothing but `drafts`; `told_at` is when a person was told of
    them, and `tokens` what it used.
    """

    id: ReviewId
    session: str
    started_at: float
    ended_at: float | None = None
    status: ReviewStatus = "running"
    model: str = ""
    error: str = ""
    iterations: int = 0
    details: dict[str, Any] = {}
    drafts: tuple[Draft, ...] = ()
    told_at: float | None = None
    tokens: int = 0
