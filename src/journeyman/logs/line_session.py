"""One session of a log that has an event per line, collected until it is passed on in fragments."""

from collections.abc import Iterator
from typing import Any

from journeyman.logs.fragments import FragmentBuilder
from journeyman.logs.line_reader import FRAGMENT_MESSAGES, Line
from journeyman.logs.log_file import LogFile
from journeyman.records import Fragment, Message, Session, SessionId, Usage

RUNNING = "running"
"""The end reason of a session whose last prompt has no end yet: it replaces the reason of the turn
before, which an earlier read may have stored."""


class LineSession:
    """Collects messages, usage and facts, which are fields of the session. `resumed` if an earlier
    read of the log stored the beginning of the session.
    """

    def __init__(self, log: LogFile, source: str, session_id: str, *, resumed: bool) -> None:
        self.id = SessionId(session_id)
        self.facts: dict[str, Any] = {}
        self._log, self._source = log, source
        self._pending = FragmentBuilder(replaces=not resumed)
        self._next_position = 0

    def add(self, line: Line, *, key: str = "", **fields: Any) -> None:
        """Add a message that stands in a line. Several messages of one line follow each other."""
        position = self.next_position(line)
        self._next_position = position + 1
        message = Message(key=key or f"@{position}", position=position, **fields)
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
