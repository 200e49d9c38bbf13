"""What an import did, what was learned and what a look around the machine found, for people and for
`--json`.
"""

from collections.abc import Mapping

from msgspec import Struct


class SkippedLine(Struct, frozen=True, kw_only=True):
    """A line of a log that could not be used; `line` is 0 for logs without lines."""

    log: str
    line: int
    reason: str


class Problem(Struct, frozen=True, kw_only=True):
    """A file, a folder or a reader that was left out, and why; the reason names it too."""

    path: str
    reason: str


class SourceReport(Struct, frozen=True, kw_only=True):
    """What became of the sessions of one source. `subagents` says how many of them are
    subagents'.
    """

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    subagents: int = 0

    @property
    def sessions(self) -> int:
        return self.new + self.updated + self.unchanged


class ImportReport(Struct, frozen=True, kw_only=True):
    """The result of one import. `skipped` is cut at a thousand lines; `skipped_lines` is not."""

    new: int
    updated: int
    unchanged: int
    sources: dict[str, SourceReport]
    logs_read: int
    logs_unchanged: int
    read_bytes: int
    seconds: float
    skipped_lines: int
    skipped: list[SkippedLine]
    ignored: list[Problem]
    problems: list[Problem]


class Progress(Struct, frozen=True, kw_only=True):
    """How far an import or learning is: `done` of `total` logs or sessions, and the share of the
    whole work that this is. `done_bytes` counts what was gone through.
    """

    done: int
    total: int
    done_bytes: int
    share: float


class Place(Struct, frozen=True, kw_only=True):
    """A usual place for logs on this machine and what is in it."""

    source: str
    folder: str
    exists: bool
    logs: list[str] = []
    size_bytes: int = 0
    problems: list[Problem] = []


class LearnReport(Struct, frozen=True, kw_only=True):
    """What is learned now. `mined` counts the sessions that were new or had changed, `teaching`
    those of all sessions that may teach, and `reasons` why the others may not. `kinds` counts the
    patterns by kind; `quarantined` counts what rules kept out and nobody has decided about.
    """

    sessions: int
    mined: int
    teaching: int
    reasons: dict[str, int]
    patterns: int
    kinds: dict[str, int]
    quarantined: int
    seconds: float = 0.0


def learn_report(
    reasons: Mapping[str, int], counts: Mapping[str, int], *, mined: int, seconds: float
) -> LearnReport:
    """The report from the counts of sessions by reason and of patterns by kind."""
    kinds = {kind: count for kind, count in sorted(counts.items()) if kind != "quarantined"}
    return LearnReport(
        sessions=sum(reasons.values()),
        mined=mined,
        teaching=reasons.get("", 0),
        reasons={reason: count for reason, count in sorted(reasons.items()) if reason},
        patterns=sum(kinds.values()),
        kinds=kinds,
        quarantined=counts.get("quarantined", 0),
        seconds=seconds,
    )
