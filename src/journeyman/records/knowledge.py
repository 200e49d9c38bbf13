"""What an agent writes down about its work: one change of memory or of a skill, the review that
made it, and the journal of all changes, from which each can be undone.
"""

from collections import Counter
from typing import Any, Literal, NewType

from msgspec import Struct

ReviewId = NewType("ReviewId", str)
WriteId = NewType("WriteId", str)

WriteKind = Literal["memory", "user", "skill"]
"""`memory`: notes about the work. `user`: notes about the user. `skill`: a folder with a
SKILL.md."""

ReviewStatus = Literal["running", "changed", "unchanged", "failed", "cancelled"]
"""`unchanged` is a success: there was nothing worth writing down."""


class EntryChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a memory file: added where there is no `before`, removed where there is no
    `after`, else replaced. `index` is its place among the entries at that moment.
    """

    index: int
    before: str | None = None
    after: str | None = None


class FileChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The text of a file before and after; None where there is no file."""

    path: str
    before: str | None = None
    after: str | None = None


class Write(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change of memory or of a skill: planned, done, or to be undone.

    `path` is relative to the folder that holds memory and skills; `before` and `after` are the
    whole text of that file, None where there is none. `entries` says what happened to the entries
    of a memory file, in order. `others` are the further files of a skill that is deleted.
    `summary` is one line for people.
    """

    kind: WriteKind
    action: str
    path: str
    before: str | None = None
    after: str | None = None
    summary: str = ""
    entries: tuple[EntryChange, ...] = ()
    others: tuple[FileChange, ...] = ()

    @property
    def added(self) -> list[str]:
        """What it adds: each new entry, or for a skill all lines that the file did not have."""
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
        """How many lines of the file are new or gone, the larger of the two."""
        before, after = (Counter((text or "").splitlines()) for text in (self.before, self.after))
        return max((after - before).total(), (before - after).total())

    @property
    def files(self) -> tuple[FileChange, ...]:
        """Every file that it changes."""
        return FileChange(path=self.path, before=self.before, after=self.after), *self.others


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who wrote something and in what setting: `origin` is `agent` or `background_review`,
    `context` the turn or the review, `parent` the session that `session` continues, `platform`
    the surface that started the agent, `folder` the folder of memory and skills that was written.
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
    """A change as the journal keeps it. `review` is None for what the agent wrote during its own
    work. `evidence` is what the writer said shows it.
    """

    id: WriteId
    at: float
    write: Write
    review: ReviewId | None = None
    provenance: Provenance = Provenance()
    evidence: str = ""
    undone_at: float | None = None


class Review(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One review of a session. `iterations` counts the answers of the model, `details` keeps the
    steps it took.
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
