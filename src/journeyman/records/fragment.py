"""What travels from a log to the store, and from an export back to it.

A reader yields a stream of these. Fragments carry parts of sessions, so that no session has to
fit into memory; a mark says that everything before it is whole, and with which state the log can
be read on later; what had to be left out is a skip.
"""

from typing import Any, Literal

from msgspec import Struct

from journeyman.records.message import Message
from journeyman.records.session import Session
from journeyman.records.usage import Usage


class Fragment(Struct, frozen=True, kw_only=True):
    """A part of one session, as read.

    Facts set in `session` overwrite what is known, facts left empty do not. `replaces` is true on
    the first fragment of a session that is read whole again: what is not in the fragments that
    follow is gone from the log. `undone` are spans of positions [from, to) that the user took
    back. `read_bytes` is how far the log has been read, for progress.
    """

    session: Session
    messages: tuple[Message, ...] = ()
    usage: tuple[Usage, ...] = ()
    replaces: bool = False
    undone: tuple[tuple[int, int], ...] = ()
    read_bytes: int = 0


class Skip(Struct, frozen=True, kw_only=True):
    """Something in a log that could not be used, where it stands and why. `line` counts from 1;
    0 is for logs without lines.
    """

    line: int
    reason: str


class LogState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a log was read: up to `offset` after `lines` lines, where `digest` names the bytes
    before it. `memory` is the reader's own.
    """

    reader: str
    size: int
    mtime_ns: int
    offset: int = 0
    lines: int = 0
    digest: str = ""
    memory: dict[str, Any] = {}


class Mark(Struct, frozen=True, kw_only=True):
    """Everything before this is whole: it may be committed, together with this state. So a mark
    never stands between two parts of one session.
    """

    state: LogState


LogEvent = Fragment | Skip | Mark


Change = Literal["new", "updated", "unchanged"]
"""What writing did to a session."""


class ExportedSession(Struct, frozen=True, kw_only=True):
    """A session with everything that is known of it. `journeyman` is the version of this form; it
    comes first, so that the file is known by its first bytes.
    """

    journeyman: int = 1
    session: Session
    messages: list[Message]
    usage: list[Usage] = []
