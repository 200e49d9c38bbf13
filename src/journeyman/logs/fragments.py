"""Sessions that are read whole, on their way to the store: their parts gathered into fragments and
their ids kept apart inside one log; from lines, or from JSON documents that are read as a stream.
Journeyman's own export is read back so.
"""

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import ijson
import msgspec

from journeyman.logs.lines import (
    FRAGMENT_MESSAGES,
    MAX_LINE_BYTES,
    BadLine,
    Line,
    Lines,
    take_lines,
)
from journeyman.logs.logfile import LogFile
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

_FIRST_MARK = 500

Part = Message | Usage | Skip

ReadSession = Callable[[Any, int], tuple[Session, Iterable[Part]]]
"""Reads one whole session, given its value and its number; in lines, that of the line. Raises
BadLine."""


class Gathering:
    """Parts of one session, gathered until they are handed on in fragments."""

    def __init__(self, *, replaces: bool) -> None:
        self.messages: list[Message] = []
        self.usage: list[Usage] = []
        self.undone: list[tuple[int, int]] = []
        self.replaces = replaces

    def fragments(
        self, session: Session, read_bytes: int = 0, *, also_empty: bool = False
    ) -> Iterator[Fragment]:
        """What was gathered since the last time. What was taken back comes last, because it takes
        back messages of the fragments before.
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
    """The parts of one session in fragments, the first of which replaces what was known of it."""
    gathered = Gathering(replaces=True)
    for part in parts:
        if isinstance(part, Skip):
            yield Skip(line=part.line or line, reason=part.reason)
        elif isinstance(part, Message):
            gathered.messages.append(part)
        else:
            gathered.usage.append(part)
        if len(gathered.messages) + len(gathered.usage) >= FRAGMENT_MESSAGES:
            yield from gathered.fragments(session, read_bytes)
    yield from gathered.fragments(session, read_bytes, also_empty=gathered.replaces)


class _Sessions:
    """Reads sessions one after the other. A second one with the id of another gets a number after
    it, so that both are kept, if they are to be `kept_apart`; `names` are the ids given out, by
    their digests.
    """

    def __init__(self, read: ReadSession, names: dict[str, int], *, kept_apart: bool) -> None:
        self._read = read
        self._kept_apart = kept_apart
        self.names = names

    def events(
        self, value: Any, number: int, *, line: int = 0, read_bytes: int = 0
    ) -> Iterator[Fragment | Skip]:
        try:
            session, parts = self._read(value, number)
        except BadLine as reason:
            yield Skip(line=line, reason=str(reason))
            return
        if self._kept_apart and (given := self._give(session.id)) != session.id:
            taken = f"another conversation has the id {session.id} already"
            yield Skip(line=line, reason=f"{taken}; this one is kept as {given}")
            session = msgspec.structs.replace(session, id=SessionId(given))
        yield from in_fragments(session, parts, line=line, read_bytes=read_bytes)

    def _give(self, wanted: str) -> str:
        given, first = wanted, _digest(wanted)
        while (digest := _digest(given)) in self.names:
            self.names[first] = self.names.get(first, 0) + 1
            given = f"{wanted}#{self.names[first]}"
        self.names[digest] = 1
        return given


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).hexdigest()


def read_session_lines(
    log: LogFile,
    since: LogState | None,
    reader: str,
    read: ReadSession,
    *,
    kept_apart: bool = True,
    longest: int = MAX_LINE_BYTES,
) -> Iterator[LogEvent]:
    """A log with one whole session in each line, from where `since` ended."""
    going_on = since if since is not None and since.reader == reader else None
    lines = Lines(log, going_on, longest=longest)

    def begin() -> _SessionLines:
        names = going_on.memory.get("names", {}) if going_on and lines.resumed else {}
        return _SessionLines(lines, reader, _Sessions(read, dict(names), kept_apart=kept_apart))

    return take_lines(reader, lines, Any, begin)


class _SessionLines:
    """Takes lines that are sessions."""

    def __init__(self, lines: Lines, reader: str, sessions: _Sessions) -> None:
        self.ready: list[LogEvent] = []
        self._lines, self._reader, self._sessions = lines, reader, sessions
        self._next_mark = _FIRST_MARK

    def take(self, value: Any, line: Line) -> None:
        self.ready += self._sessions.events(
            value, line.number, line=line.number, read_bytes=self._lines.offset
        )
        # The names make each mark larger, so marks become rarer as the log grows.
        if line.whole and self._lines.count >= self._next_mark:
            self._next_mark = 2 * self._lines.count
            self.ready.append(Mark(state=self._lines.state(self._reader, memory=self.memory())))

    def memory(self) -> dict[str, Any]:
        return {"names": dict(self._sessions.names)}

    def close(self, read_bytes: int) -> Iterable[LogEvent]:  # noqa: ARG002
        return ()


def read_session_list(
    log: LogFile, reader: str, prefix: str, read: ReadSession
) -> Iterator[LogEvent]:
    """A document with whole sessions in the list at `prefix`; without one it is a session itself,
    whose number is 0.
    """
    sessions = _Sessions(read, {}, kept_apart=True)
    for number, value in enumerate(document_items(log, prefix), 1 if prefix else 0):
        if isinstance(value, Skip):
            yield value
        else:
            yield from sessions.events(value, number)
    yield Mark(state=log.state(reader))


_AT_ONCE_BYTES = 32 * 1024 * 1024
_BROKEN = (ijson.JSONError, UnicodeDecodeError, ValueError, RecursionError)


def document_items(log: LogFile, prefix: str) -> Iterator[Any | Skip]:
    """The elements of a document at `prefix` ("item" for a top-level list, "messages.item" for a
    list under a key, nothing for the document itself), one at a time. A broken document ends with
    a skip. What the streaming parser refuses although Python writes it (NaN, very large numbers, a
    byte order mark), the standard library reads, in documents that fit into memory.
    """
    given = 0
    with log.open() as file:
        stream = ijson.items(file, prefix, use_float=True)
        while True:
            try:
                item = next(stream)
            except StopIteration:
                return
            except _BROKEN as error:
                said = error.args[0] if error.args else error
                text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
                first = text.strip().partition("\n")[0] or type(error).__name__
                break_off = Skip(line=0, reason=f"the document breaks off: {first}")
                break
            given += 1
            yield item
    rest, broken_text = _at_once(log)
    for key in prefix.split(".")[:-1]:
        rest = rest.get(key) if isinstance(rest, dict) else None
    if not prefix and rest is not None:
        rest = [rest]
    if not isinstance(rest, list):
        yield break_off
        return
    if broken_text:
        yield Skip(line=0, reason="not valid UTF-8; what is broken was replaced")
    yield from rest[given:]


def _at_once(log: LogFile) -> tuple[Any, bool]:
    """The document as the standard library reads it, None when it cannot either; and whether its
    text was broken.
    """
    with log.open() as file:
        content = file.read(_AT_ONCE_BYTES + 1)
    if len(content) > _AT_ONCE_BYTES:
        return None, False
    text = content.decode("utf-8-sig", "replace")
    try:
        document = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None, False
    return document, "\ufffd" in text


def document_fields(log: LogFile, *, without: Container[str]) -> dict[str, Any]:
    """The values of a document's own keys in one pass, leaving out the large ones. Of a broken
    document, what came before the break.
    """
    found: dict[str, Any] = {}
    key, builder = "", None
    with log.open() as file:
        try:
            for prefix, event, value in ijson.parse(file, use_float=True):
                if not prefix and event == "map_key":
                    key, builder = value, None if value in without else ijson.ObjectBuilder()
                elif prefix and builder is not None:
                    builder.event(event, value)
                    found.setdefault(key, builder.value)
        except _BROKEN:
            # Whoever reads the messages meets the break again and reports it.
            document, _ = _at_once(log)
            if isinstance(document, dict):
                return {key: value for key, value in document.items() if key not in without}
    return found


# What this program wrote itself is read back whatever its size.
_LONGEST_EXPORT = 2**31


class JourneymanExportReader:
    """Files that `journeyman sessions export` wrote."""

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
            session = msgspec.structs.replace(exported.session, log=log.name)
            return session, (*exported.usage, *exported.messages)

        return read_session_lines(
            log, since, self.name, read, kept_apart=False, longest=_LONGEST_EXPORT
        )
