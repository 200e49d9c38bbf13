"""Reports for people and for `--json`: of an import, of learning, and of the logs found on this
machine.
"""

from collections.abc import Mapping

from msgspec import Struct


class SkippedLine(Struct, frozen=True, kw_only=True):
    """A log line that could not be used; `line` is 0 for logs without lines."""

    log: str
    line: int
    reason: str


class Problem(Struct, frozen=True, kw_only=True):
    """A file, folder or reader that was left out, and why; the reason names it too."""

    path: str
    reason: str


class SourceReport(Struct, frozen=True, kw_only=True):
    """The imported sessions of one source. `subagents` counts those of subagents among them."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    subagents: int = 0

    @property
    def sessions(self) -> int:
        return self.new + self.updated + self.unchanged


class ImportReport(Struct, frozen=True, kw_only=True):
    """The result of one import. `skipped` ends after a thousand lines; `skipped_lines` counts
    all.
    """

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
    """The progress of an import or of learning: `done` of `total` logs or sessions, and the `share`
    of the whole work.
    """

    done: int
    total: int
    share: float


class LogLocation(Struct, frozen=True, kw_only=True):
    """A default location of logs on this machine, and its contents."""

    source: str
    folder: str
    exists: bool
    logs: list[str] = []
    size_bytes: int = 0
    problems: list[Problem] = []


class LearnReport(Struct, frozen=True, kw_only=True):
    """The state after learning. `mined` counts the sessions that were new or changed, `teaching`
    the sessions, of all, that may be learned from, and `reasons` why the others may not. `examples`
    counts the requests that ended well and whose calls may be shown.
    """

    sessions: int
    mined: int
    teaching: int
    reasons: dict[str, int]
    examples: int
    seconds: float = 0.0


def learn_report(
    reasons: Mapping[str, int], examples: int, *, mined: int, seconds: float
) -> LearnReport:
    """Build the report from the counts of sessions by reason."""
    return LearnReport(
        sessions=sum(reasons.values()),
        mined=mined,
        teaching=reasons.get("", 0),
        reasons={reason: count for reason, count in sorted(reasons.items()) if reason},
        examples=examples,
        seconds=seconds,
    )
