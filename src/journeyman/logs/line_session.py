"""Logs that have an event per line and are read whole: what their readers share."""

from collections.abc import Iterator
from typing import Any

from journeyman.logs.fragments import FragmentBuilder
from journeyman.logs.line_reader import FRAGMENT_MESSAGES, BadLine, Line, Lines, read_lines
from journeyman.logs.log_file import LogFile
from journeyman.records import Fragment, LogEvent, Message, Session, SessionId, Usage

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
