"""What every reader is: it recognises a log, reads it as a stream, and reports what it left out.

Readers of other programs' files never write to them, keep no session in memory, and yield
fragments, skips and marks (see `journeyman.records.fragment`). Another package adds a reader by
naming it in the entry-point group `journeyman.readers`.
"""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from journeyman.logs.logfile import LogFile
from journeyman.records import LogEvent, LogState

FRAGMENT_MESSAGES = 256
"""Messages a reader gathers before it hands them on: enough to write in one go, few enough that
memory stays flat."""


@runtime_checkable
class Reader(Protocol):
    """One kind of log. `name` is what `--source` takes; `about` is one line for people."""

    name: str
    about: str

    def recognises(self, log: LogFile) -> bool:
        """Whether this log is of this kind, decided from its name and its first bytes."""
        ...

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """The log's sessions as fragments. With `since`, only what has come since then, if the
        log allows it; otherwise all of it again. Ends with a mark when the log was read to its
        end. Raises LogUnreadable when nothing can be read at all.
        """
        ...
