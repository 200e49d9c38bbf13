"""Sessions that are read whole, on their way to the store: their parts gathered into fragments,
and their ids kept apart inside one log. What a session says is the readers' business.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from journeyman.logs.lines import MAX_LINE_BYTES, BadLine, LineDecoder, Lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.reader import FRAGMENT_MESSAGES
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

_FIRST_MARK = 500


def in_fragments(
    session: Session, parts: Iterable[Message | Usage | Skip], *, read_bytes: int = 0
) -> Iterator[Fragment | Skip]:
    """The parts of one session in fragments, the first of which replaces what was known of it."""
    messages: list[Message] = []
    usage: list[Usage] = []
    replaces = True
    for part in parts:
        if isinstance(part, Skip):
            yield part
            continue
        if isinstance(part, Usage):
            usage.append(part)
        else:
            messages.append(part)
        if len(messages) + len(usage) >= FRAGMENT_MESSAGES:
            yield Fragment(
                session=session,
                messages=tuple(messages),
                usage=tuple(usage),
                replaces=replaces,
                read_bytes=read_bytes,
            )
            messages, usage, replaces = [], [], False
    if messages or usage or replaces:
        yield Fragment(
            session=session,
            messages=tuple(messages),
            usage=tuple(usage),
            replaces=replaces,
            read_bytes=read_bytes,
        )


class SessionNames:
    """The ids given out in one log. A second conversation with an id gets a number after it, so
    that both are kept; `memory` lets a later reading of the same log go on.
    """

    def __init__(self, memory: Mapping[str, int] | None = None) -> None:
        self._times: dict[str, int] = dict(memory or {})

    @property
    def memory(self) -> dict[str, int]:
        return dict(self._times)

    def give(self, wanted: str, line: int = 0) -> tuple[SessionId, list[Skip]]:
        """The id for the next conversation that wants this one, and a note if it was taken."""
        given = wanted
        while (digest := _digest(given)) in self._times:
            times = self._times[_digest(wanted)] = self._times.get(_digest(wanted), 0) + 1
            given = f"{wanted}#{times}"
        self._times[digest] = 1
        if given == wanted:
            return SessionId(given), []
        reason = f"another conversation has the id {wanted} already; this one is kept as {given}"
        return SessionId(given), [Skip(line=line, reason=reason)]


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).hexdigest()


def read_session_lines(
    log: LogFile,
    since: LogState | None,
    reader: str,
    read: Callable[[Any, int, SessionNames, int], Iterator[Fragment | Skip]],
    *,
    longest: int = MAX_LINE_BYTES,
) -> Iterator[LogEvent]:
    """A log with one whole session in each line, from where `since` ended. `read` is given the
    line's value, its number, the names given out so far and how far the log was read.
    """
    going_on = since if since is not None and since.reader == reader else None
    lines = Lines(log, going_on, longest=longest)
    decoder = LineDecoder[Any](Any)
    names: SessionNames | None = None
    next_mark = _FIRST_MARK
    settled: dict[str, int] | None = None
    for line in lines:
        if names is None:
            names = _remembered(lines, since)
        if isinstance(line, Skip):
            yield line
            continue
        if not line.whole:
            # It will be read again when it is complete: its id must not be taken by then.
            settled = names.memory
        try:
            value = decoder.decode(line)
        except BadLine as error:
            yield Skip(line=line.number, reason=str(error))
            continue
        yield from read(value, line.number, names, lines.offset)
        # The names make each mark larger, so marks become rarer as the log grows.
        if line.whole and lines.count >= next_mark:
            next_mark = 2 * lines.count
            yield Mark(state=lines.state(reader, memory={"names": names.memory}))
    if settled is None:
        settled = (names or _remembered(lines, since)).memory
    yield Mark(state=lines.state(reader, memory={"names": settled}))


def _remembered(lines: Lines, since: LogState | None) -> SessionNames:
    return SessionNames(since.memory.get("names") if since and lines.resumed else None)
