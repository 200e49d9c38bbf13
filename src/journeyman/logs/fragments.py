"""Reads logs that hold whole sessions, one per line or in a JSON document: groups
their messages into fragments and makes session ids unique within one log. Includes the reader of
Journeyman's own export.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from journeyman.logs.fields import generation_number, has_valid_numbers, whole_number
from journeyman.logs.line_reader import (
    FRAGMENT_MESSAGES,
    BadLine,
    Line,
    Lines,
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

_FIRST_MARK_LINES = 500

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


class _SessionParser:
    """Reads sessions one after the other. With `unique_ids`, a session with the id of an earlier
    one gets a numbered id, so that both are kept; `names` holds the digests of the ids in use.
    """

    def __init__(self, read: ReadSession, names: dict[str, int], *, unique_ids: bool) -> None:
        self._read_session = read
        self._unique_ids = unique_ids
        self.names = names

    def events(
        self, value: Any, number: int, *, line: int = 0, read_bytes: int = 0
    ) -> Iterator[Fragment | Skip]:
        try:
            session, parts = self._read_session(value, number)
        except BadLine as error:
            yield Skip(line=line, reason=str(error))
            return
        if self._unique_ids and (unique := self._unique_id(session.id)) != session.id:
            reason = f"another conversation already has the id {session.id}"
            yield Skip(line=line, reason=f"{reason}; this one is stored as {unique}")
            session = msgspec.structs.replace(session, id=SessionId(unique))
        yield from in_fragments(session, parts, line=line, read_bytes=read_bytes)

    def _unique_id(self, session_id: str) -> str:
        unique, original = session_id, _digest(session_id)
        while (digest := _digest(unique)) in self.names:
            self.names[original] = self.names.get(original, 0) + 1
            unique = f"{session_id}#{self.names[original]}"
        self.names[digest] = 1
        return unique


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).hexdigest()


def read_session_lines(
    log: LogFile,
    since: LogState | None,
    reader: str,
    read: ReadSession,
    *,
    unique_ids: bool = True,
    max_bytes: int = MAX_VALUE_BYTES,
) -> Iterator[LogEvent]:
    """Read a log with one whole session per line, from where `since` ended."""
    state = since if since is not None and since.reader == reader else None
    lines = Lines(log, state, max_bytes=max_bytes)

    def make_handler() -> _SessionLines:
        names = state.memory.get("names", {}) if state and lines.resumed else {}
        return _SessionLines(
            lines, reader, _SessionParser(read, dict(names), unique_ids=unique_ids)
        )

    return read_lines(reader, lines, Any, make_handler)


class _SessionLines:
    """Handles lines that each hold one session."""

    def __init__(self, lines: Lines, reader: str, sessions: _SessionParser) -> None:
        self.ready: list[LogEvent] = []
        self._lines, self._reader, self._sessions = lines, reader, sessions
        self._next_mark = _FIRST_MARK_LINES

    def handle(self, value: Any, line: Line) -> None:
        self.ready += self._sessions.events(
            value, line.number, line=line.number, read_bytes=self._lines.offset
        )
        # The names make each mark larger, so marks get rarer as the log grows.
        if line.whole and self._lines.count >= self._next_mark:
            self._next_mark = 2 * self._lines.count
            self.ready.append(Mark(state=self._lines.state(self._reader, memory=self.memory())))

    def memory(self) -> dict[str, Any]:
        return {"names": dict(self._sessions.names)}

    def close(self, read_bytes: int) -> Iterable[LogEvent]:  # noqa: ARG002
        return ()


def read_session_list(
    log: LogFile, reader: str, values: Iterable[Any], read: ReadSession
) -> Iterator[LogEvent]:
    """Read a document that holds these whole sessions, numbered from 1."""
    sessions = _SessionParser(read, {}, unique_ids=True)
    for number, value in enumerate(values, 1):
        yield from sessions.events(value, number)
    yield Mark(state=log.state(reader))


def _has_valid_numbers(message: Message) -> bool:
    return (
        whole_number(message.position) is not None
        and generation_number(message.generation) is not None
        and (message.recorded is None or has_valid_numbers(message.recorded))
    )


class JourneymanExportReader:
    """Reads files written by `journeyman sessions export`."""

    name = "journeyman"
    about = "Journeyman's own export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        return {"journeyman", "session"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        def read(value: Any, _: int) -> tuple[Session, Iterable[Part]]:
            try:
                exported = msgspec.convert(value, ExportedSession)
            except msgspec.ValidationError as error:
                raise BadLine(f"not the expected shape: {error}") from error
            if not all(map(_has_valid_numbers, exported.messages)):
                raise BadLine("a message has a number that is too large")
            session = msgspec.structs.replace(exported.session, log=log.name)
            if exported.redacted:
                details = session.details | {REDACTED_DETAIL: True}
                session = msgspec.structs.replace(session, details=details)
            return session, (*exported.usage, *exported.messages)

        return read_session_lines(
            log, since, self.name, read, unique_ids=False, max_bytes=MAX_EXPORT_BYTES
        )
