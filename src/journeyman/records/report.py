"""What an import did and what a look around the machine found, for people and for `--json`."""

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


class Place(Struct, frozen=True, kw_only=True):
    """A usual place for logs on this machine and what is in it."""

    source: str
    folder: str
    exists: bool
    logs: list[str] = []
    size_bytes: int = 0
    problems: list[Problem] = []
