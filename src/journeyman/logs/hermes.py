"""Hermes' `state.db` and its JSONL export.

A compaction in place keeps the session and copies its last messages: the copies are left out, and
what follows the summary is the next generation. Rows the user took back are left out too, and so
are the reviews that older versions left in the conversation.
"""

from collections.abc import Iterable, Iterator, Set
from itertools import chain
from typing import Any

import msgspec

from journeyman.logs import hermes_rows
from journeyman.logs.documents import read_whole
from journeyman.logs.fragments import SessionNames, in_fragments, read_session_lines
from journeyman.logs.hermes_database import BUSY_TIMEOUT_S, Database, opened
from journeyman.logs.hermes_rows import Row
from journeyman.logs.hermes_usage import usage_of
from journeyman.logs.logfile import LogFile
from journeyman.records import Fragment, LogEvent, LogState, Mark, Message, Skip

_SESSIONS_A_MARK = 200
_EXPORTED = {"id", "source", "started_at", "messages"}


class HermesReader:
    """Hermes' database of sessions."""

    name = "hermes"
    about = "Hermes Agent database (state.db), any schema version"

    def __init__(self, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._busy_timeout_s = busy_timeout_s

    def recognises(self, log: LogFile) -> bool:
        return log.is_sqlite

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """The sessions that changed, each whole: Hermes changes rows in place, so parts would not
        do.
        """
        before: dict[str, str] = since.memory.get("sessions", {}) if since else {}
        known: dict[str, str] = {}
        with opened(log, self._busy_timeout_s) as database:
            changed = 0
            for row, parent_end, mark in database.sessions():
                session_id = str(row["id"])
                known[session_id] = mark
                if before.get(session_id) == mark:
                    continue
                yield from _read_session(database, row, parent_end, log)
                changed += 1
                if changed % _SESSIONS_A_MARK == 0:
                    yield self._mark(log, {**before, **known})
        yield self._mark(log, known)

    def _mark(self, log: LogFile, sessions: dict[str, str]) -> Mark:
        state = read_whole(log, self.name)
        return Mark(state=msgspec.structs.replace(state, memory={"sessions": sessions}))


class HermesExportReader:
    """What `hermes sessions export` writes: a session with its messages a line."""

    name = "hermes_export"
    about = "Hermes Agent session export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        lines = (line.keys() for line in log.first_lines[:3] if isinstance(line, dict))
        return any(keys >= _EXPORTED for keys in (*lines, log.keys))

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        def read(row: Any, line: int, _: SessionNames, offset: int) -> Iterator[Fragment | Skip]:
            if not isinstance(row, dict) or not row.get("id"):
                yield Skip(line=line, reason="a session without an id")
            elif not isinstance(row.get("messages"), list):
                yield Skip(line=line, reason="a session whose messages are not a list")
            else:
                session = hermes_rows.session_of(row, None, log.name)
                rows = [one if isinstance(one, dict) else {} for one in row["messages"]]
                said = _conversation(session.id, rows, _taken_back(rows), line)
                parts = chain(usage_of(row, []), said)
                yield from in_fragments(session, parts, read_bytes=offset)

        return read_session_lines(log, since, self.name, read)


def _read_session(
    database: Database, row: Row, parent_end: str | None, log: LogFile
) -> Iterator[Fragment | Skip]:
    session = hermes_rows.session_of(row, parent_end, log.name)
    usage = usage_of(row, database.model_usage(row["id"]))
    undone = _taken_back(database.messages(row["id"])) if database.has_undone(row["id"]) else set()
    said = _conversation(session.id, database.messages(row["id"]), undone)
    return in_fragments(session, chain(usage, said))


def _taken_back(rows: Iterable[Row]) -> Set[int]:
    """The marks of what the user took back. Of a message with copies the live one speaks for all,
    otherwise the last: to take back a copy is to take back the message.
    """
    last: dict[int, tuple[bool, bool]] = {}
    for row in rows:
        live = bool(row.get("active", True))
        mark = hermes_rows.copy_mark(row)
        if mark is not None and live >= last.get(mark, (False, False))[0]:
            last[mark] = (live, hermes_rows.was_undone(row))
    return {mark for mark, (_, undone) in last.items() if undone}


def _conversation(
    session_id: str, rows: Iterable[Row], taken_back: Set[int], line: int = 0
) -> Iterator[Message | Skip]:
    """Rows in order as messages: undone ones, copies and reviews left out, generations counted."""
    seen: set[int | None] = {None, *taken_back}
    generation, spoken, in_review = 0, False, False
    for index, recorded in enumerate(rows):
        mark = hermes_rows.copy_mark(recorded)
        if hermes_rows.was_undone(recorded) or (mark is not None and mark in seen):
            continue
        seen.add(mark)
        row = {**recorded, "content": hermes_rows.content_text(recorded.get("content"))}
        if hermes_rows.starts_review(row):
            in_review = True
            continue
        if in_review and row.get("role") in ("assistant", "tool"):
            in_review = row.get("role") == "tool" or hermes_rows.asks_for_tools(row)
            continue
        in_review = False
        position = row["id"] if isinstance(row.get("id"), int) else index
        generation += hermes_rows.is_summary(row) and spoken
        try:
            calls = hermes_rows.tool_calls_of(row.get("tool_calls"))
        except ValueError as error:
            # What was said beside them is kept.
            calls = ()
            yield Skip(line=line, reason=f"message {position} of {session_id}: {error}")
        try:
            message = hermes_rows.message_of(row, position, generation, calls)
        except ValueError as error:
            yield Skip(line=line, reason=f"message {position} of {session_id}: {error}")
            continue
        if message is not None:
            spoken = spoken or message.role != "system"
            yield message
