"""What readers share: groups messages into fragments, and reads logs that hold whole sessions, one
per line or in a JSON document, or an event per line. Includes the reader of Journeyman's own
export.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from journeyman.logs.line_reader import (
    FRAGMENT_MESSAGES,
    BadLine,
    Line,
    Lines,
    read_each_line,
    read_lines,
)
from journeyman.logs.log_file import MAX_EXPORT_BYTES, MAX_VALUE_BYTES, LogFile
from journeyman.records import (
    Fragment,
    LogEvent,
    LogState,
    Mark,
    Message,
    Session,
    SessionId,
    Skip,
    Usage,
)
from journeyman.records.fragment import ExportedSession
from journeyman.records.session import REDACTED_DETAIL

_SESSIONS_PER_MARK = 500

Part = Message | Usage | Skip

ReadSession = Callable[[Any, int], tuple[Session, Iterable[Part]]]
"""Parses one whole session from its value and its number, which in a line log is the line number.
Raises BadLine."""


class FragmentBuilder:
    """Collects the parts of one session and groups them into fragments."""

    def __init__(self, *, replaces: bool) -> None:
        self.messages: list[Message] = []
        self.usage: list[Usage] = []
        self.undone: list[tuple[int, int]] = []
        self.replaces = replaces

    def put(self, message: Message) -> None:
        """Add a message, or replace the one that has its key."""
        for index, other in enumerate(self.messages):
            if other.key == message.key:
                self.messages[index] = message
                return
        self.messages.append(message)

    def fragments(
        self, session: Session, read_bytes: int = 0, *, also_empty: bool = False
    ) -> Iterator[Fragment]:
        """Yield what was collected since the last call. `undone` is in the last fragment, because
        it refers to messages in the fragments before.
        """
        messages, usage, undone, replaces = self.messages, self.usage, self.undone, self.replaces
        if not (messages or usage or undone or also_empty):
            return
        self.messages, self.usage, self.undone, self.replaces = [], [], [], False
        for start in range(0, len(messages) or 1, FRAGMENT_MESSAGES):
            end = start + FRAGMENT_MESSAGES
            yield Fragment(
                session=session,
                messages=tuple(messages[start:end]),
                usage=() if start else tuple(usage),
                undone=tuple(undone) if end >= len(messages) else (),
                replaces=replaces and not start,
                read_bytes=read_bytes,
            )


def in_fragments(
    session: Session, parts: Iterable[Part], *, line: int = 0, read_bytes: int = 0
) -> Iterator[Fragment | Skip]:
    """Yield one session as fragments, the first of which replaces any stored version of it."""
    pending = FragmentBuilder(replaces=True)
    for part in parts:
        if isinstance(part, Skip):
            yield Skip(line=part.line or line, reason=part.reason)
        elif isinstance(part, Message):
            pending.messages.append(part)
        else:
            pending.usage.append(part)
        if len(pending.messages) + len(pending.usage) >= FRAGMENT_MESSAGES:
            yield from pending.fragments(session, read_bytes)
    yield from pending.fragments(session, read_bytes, also_empty=pending.replaces)


def read_sessions(
    log: LogFile,
    reader: str,
    read: ReadSession,
    *,
    document: Iterable[Any] | None = None,
    unique_ids: bool = True,
    max_bytes: int = MAX_VALUE_BYTES,
) -> Iterator[LogEvent]:
    """Read a log that holds whole sessions, one per line or as the items of a document. With
    `unique_ids`, a session with the id of an earlier one gets a numbered id, so that both are kept.
    """
    used: dict[str, int] = {}

    def events(line: Line, value: Any) -> Iterator[LogEvent]:
        number = line.number if document is None else 0
        try:
            session, parts = read(value, line.number)
        except BadLine as error:
            yield Skip(line=number, reason=str(error))
            return
        unique = str(session.id)
        while unique_ids and unique in used:
            used[session.id] += 1
            unique = f"{session.id}#{used[session.id]}"
        used[unique] = 1
        if unique != session.id:
            reason = f"another conversation already has the id {session.id}"
            yield Skip(line=number, reason=f"{reason}; this one is stored as {unique}")
            session = msgspec.structs.replace(session, id=SessionId(unique))
        yield from in_fragments(session, parts, line=number, read_bytes=line.offset)
        if line.number % _SESSIONS_PER_MARK == 0:
            yield Mark(state=log.state(reader))

    if document is None:
        yield from read_each_line(log, events, max_bytes=max_bytes)
    else:
        for number, value in enumerate(document, 1):
            yield from events(Line(number, 0, b"", whole=True), value)
    yield Mark(state=log.state(reader))


RUNNING = "running"
"""The end reason of a session whose last prompt has no end yet."""


class LineSession:
    """Collects messages, usage and facts, which are fields of the session."""

    def __init__(self, log: LogFile, source: str, session_id: str) -> None:
        self.id = SessionId(session_id)
        self.facts: dict[str, Any] = {}
        self.generation = 0
        self._log, self._source = log, source
        self._pending = FragmentBuilder(replaces=True)
        self._next_position = 0

    def add(self, line: Line, **fields: Any) -> None:
        """Add a message that stands in a line. Several messages of one line follow each other."""
        position = self.next_position(line)
        self._next_position = position + 1
        message = Message(
            key=f"@{position}", position=position, generation=self.generation, **fields
        )
        self._pending.messages.append(message)
        if message.at is not None:
            self.facts["ended_at"] = message.at

    def next_position(self, line: Line) -> int:
        """Return the position that the next message of a line gets."""
        return max(line.offset, self._next_position)

    def add_usage(self, usage: Usage) -> None:
        self._pending.usage.append(usage)

    def undo(self, start: int, end: int) -> None:
        """Mark the messages from one position up to another as taken back by the user."""
        self._pending.undone.append((start, end))

    @property
    def is_full(self) -> bool:
        """Whether enough was collected for a fragment."""
        return len(self._pending.messages) + len(self._pending.usage) >= FRAGMENT_MESSAGES

    def fragments(self, read_bytes: int) -> Iterator[Fragment]:
        """Yield what was collected since the last call."""
        facts = {name: value for name, value in self.facts.items() if value}
        session = Session(id=self.id, source=self._source, log=self._log.name, **facts)
        also_empty = bool(facts) or self._pending.replaces
        yield from self._pending.fragments(session, read_bytes, also_empty=also_empty)
        self.facts = {}


class EventLog:
    """Base of the handlers that turn the lines of one log into sessions. `read` processes one line,
    an object, and raises BadLine.
    """

    def __init__(self, log: LogFile, source: str) -> None:
        self.ready: list[LogEvent] = []
        self.log, self.source = log, source
        self.sessions: dict[str, LineSession] = {}

    def events(self) -> Iterator[LogEvent]:
        """Read the log to its end."""
        return read_lines(self.source, Lines(self.log, None), Any, lambda: self)

    def open_session(self, session_id: str, name: str = "") -> LineSession:
        """Return the session of this name, which gets the id if it is new."""
        if name not in self.sessions:
            self.sessions[name] = LineSession(self.log, self.source, session_id)
        return self.sessions[name]

    def read(self, value: dict[str, Any], line: Line) -> None:
        raise NotImplementedError

    def handle(self, value: Any, line: Line) -> None:
        if not isinstance(value, dict):
            raise BadLine(f"expected a JSON object, found {type(value).__name__}")
        self.read(value, line)
        for session in self.sessions.values():
            if session.is_full:
                self.ready += session.fragments(line.offset)

    def memory(self) -> dict[str, Any]:
        return {}

    def close(self, read_bytes: int) -> Iterator[LogEvent]:
        for session in self.sessions.values():
            yield from session.fragments(read_bytes)


class JourneymanExportReader:
    """Reads files written by `journeyman sessions export`."""

    name = "journeyman"
    about = "Journeyman's own export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        return {"journeyman", "session"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        def read(value: Any, _: int) -> tuple[Session, Iterable[Part]]:
            try:
                exported = msgspec.convert(value, ExportedSession)
            except msgspec.ValidationError as error:
                raise BadLine(f"not the expected shape: {error}") from error
            session = msgspec.structs.replace(exported.session, log=log.name)
            if exported.redacted:
                details = session.details | {REDACTED_DETAIL: True}
                session = msgspec.structs.replace(session, details=details)
            return session, (*exported.usage, *exported.messages)

        return read_sessions(log, self.name, read, unique_ids=False, max_bytes=MAX_EXPORT_BYTES)
