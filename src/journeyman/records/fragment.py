"""The events that carry sessions from a log to the store, and the form of an exported session.

A reader yields a stream of events. A Fragment is a part of a session, so that no session has to fit
into memory. A Mark says that everything before it is complete, and from which state the log can be
read further. A Skip reports something that was left out.
"""

from typing import Any, Literal

from msgspec import Struct

from journeyman.records.message import Message
from journeyman.records.session import Session
from journeyman.records.usage import Usage


class Fragment(Struct, frozen=True, kw_only=True):
    """A part of one session, as read.

    Fields set in `session` overwrite the stored ones; empty fields do not. `replaces` is true on
    the first fragment of a session that is read completely again: what the following fragments do
    not contain is gone from the log. A message with the key of an earlier one replaces it, as when
    the end of a call becomes known. `undone` are spans of positions [from, to) that the user
    reverted. `read_bytes` is how far the log has been read, for progress.
    """

    session: Session
    messages: tuple[Message, ...] = ()
    usage: tuple[Usage, ...] = ()
    replaces: bool = False
    undone: tuple[tuple[int, int], ...] = ()
    read_bytes: int = 0


class Skip(Struct, frozen=True, kw_only=True):
    """Something in a log that could not be used, and why. `line` counts from 1; it is 0 for logs
    without lines.
    """

    line: int
    reason: str


class LogState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a log has been read: `offset` bytes and `lines` lines, with the `digest` of the bytes
    before the offset. `memory` belongs to the reader.
    """

    reader: str
    size: int
    mtime_ns: int
    offset: int = 0
    lines: int = 0
    digest: str = ""
    memory: dict[str, Any] = {}


class Mark(Struct, frozen=True, kw_only=True):
    """Everything before this event is complete and may be committed, together with this state. A
    mark therefore never stands between two parts of one session.
    """

    state: LogState


LogEvent = Fragment | Skip | Mark


SessionChange = Literal["new", "updated", "unchanged"]
"""The effect of a write on a session."""


class ExportedSession(Struct, frozen=True, kw_only=True):
    """A session with everything stored about it. `journeyman` is the version of this format; it
    comes first, so that the first bytes identify the file. `redacted` is true if secrets and
    personal data were replaced: it is then no faithful copy.
    """

    journeyman: int = 1
    session: Session
    messages: list[Message]
    usage: list[Usage] = []
    redacted: bool = False
