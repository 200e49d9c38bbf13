"""Hermes' `state.db`, any schema version, opened so that nothing in it can change, and its JSONL
export. Left out are the copies that a compaction in place makes, rows the user took back, and the
reviews that older versions left in the conversation.
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any

from journeyman.logs import hermes_rows
from journeyman.logs.fragments import Part, in_fragments, read_session_lines
from journeyman.logs.hermes_rows import COUNTERS, Row, usage_of
from journeyman.logs.lines import BadLine
from journeyman.logs.logfile import LogFile
from journeyman.records import LogEvent, LogState, Mark, Message, Session, Skip
from journeyman.records.errors import LogUnreadable, NotALog

_SESSIONS_A_MARK = 200
_EXPORTED = {"id", "source", "started_at", "messages"}
BUSY_TIMEOUT_S = 5.0
"""How long to wait for a lock; Hermes' own readers wait as long."""

_PAUSE_S = 0.05
_READ = ("sessions", "messages", "session_model_usage")
_NEEDED = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"session_id", "role", "content"},
}


class HermesReader:
    """Hermes' database of sessions."""

    name = "hermes"
    about = "Hermes Agent database (state.db), any schema version"

    def __init__(self, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._busy_timeout_s = busy_timeout_s

    def recognises(self, log: LogFile) -> bool:
        return log.head.startswith(b"SQLite format 3\x00")

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """The sessions that changed, each whole: Hermes changes rows in place, so parts would not
        do.
        """
        before: dict[str, str] = since.memory.get("sessions", {}) if since else {}
        known: dict[str, str] = {}
        with _opened(log, self._busy_timeout_s) as database:
            changed = 0
            for row, parent_end, mark in database.sessions():
                session_id = str(row["id"])
                known[session_id] = mark
                if before.get(session_id) == mark:
                    continue
                session = hermes_rows.session_of(row, parent_end, log.name)
                undone: Set[int] = set()
                if database.has_undone(row["id"]):
                    undone = _taken_back(database.messages(row["id"]))
                said = _conversation(session.id, database.messages(row["id"]), undone)
                usage = usage_of(row, database.model_usage(row["id"]))
                yield from in_fragments(session, chain(usage, said))
                changed += 1
                if changed % _SESSIONS_A_MARK == 0:
                    memory = {"sessions": {**before, **known}}
                    yield Mark(state=log.state(self.name, memory=memory))
        yield Mark(state=log.state(self.name, memory={"sessions": known}))


class HermesExportReader:
    """What `hermes sessions export` writes: a session with its messages a line."""

    name = "hermes_export"
    about = "Hermes Agent session export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        lines = (line.keys() for line in log.first_lines[:3] if isinstance(line, dict))
        return any(keys >= _EXPORTED for keys in (*lines, log.keys))

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        def read(row: Any, _: int) -> tuple[Session, Iterable[Part]]:
            if not isinstance(row, dict) or not row.get("id"):
                raise BadLine("a session without an id")
            if not isinstance(row.get("messages"), list):
                raise BadLine("a session whose messages are not a list")
            session = hermes_rows.session_of(row, None, log.name)
            rows = [one if isinstance(one, dict) else {} for one in row["messages"]]
            said = _conversation(session.id, rows, _taken_back(rows))
            return session, chain(usage_of(row, []), said)

        return read_session_lines(log, since, self.name, read, kept_apart=False)


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
    session_id: str, rows: Iterable[Row], taken_back: Set[int]
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
        where = f"message {position} of {session_id}"
        try:
            calls = hermes_rows.tool_calls_of(row.get("tool_calls"))
        except ValueError as error:
            # What was said beside them is kept.
            calls = ()
            yield Skip(line=0, reason=f"{where}: {error}")
        try:
            message = hermes_rows.message_of(row, position, generation, calls)
        except ValueError as error:
            yield Skip(line=0, reason=f"{where}: {error}")
            continue
        if message is not None:
            spoken = spoken or message.role != "system"
            yield message


class _Database:
    """An open state.db and the columns it has."""

    def __init__(self, connection: sqlite3.Connection, log: LogFile) -> None:
        self._connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [row["name"] for row in tables]
        # Only these, because to look at a search index can need what is not installed here.
        self._columns: dict[str, set[str]] = {
            name: {row["name"] for row in connection.execute(f"PRAGMA table_info({name})")}
            for name in _READ
            if name in names
        }
        for table, needed in _NEEDED.items():
            if not needed <= self._columns.get(table, set()):
                found = ", ".join(sorted(names)[:6]) or "no tables"
                raise NotALog(
                    f"{log.path} is a SQLite file, but not Hermes': it has {found}. "
                    "Hermes' database is called state.db and has the tables sessions and messages."
                )
        self._row_id = "id" if self._has("messages", "id") else "rowid"

    def sessions(self) -> Iterator[tuple[Row, str | None, str]]:
        """Each session's row, why its parent ended, and a mark that changes when the session
        does.
        """
        messages = self._sums("messages", ("active", "compacted"), f"max({self._row_id})")
        usage = self._sums("session_model_usage", COUNTERS)
        ends: dict[Any, str] = {}
        if self._has("sessions", "end_reason"):
            ended = "SELECT id, end_reason FROM sessions WHERE end_reason IS NOT NULL"
            ends = {row[0]: row[1] for row in self._connection.execute(ended)}
        for one in self._connection.execute(
            "SELECT * FROM sessions WHERE id IS NOT NULL ORDER BY started_at, id"
        ):
            row = dict(one)
            parent_end = ends.get(row.get("parent_session_id"))
            parts = (row, parent_end, messages.get(row["id"]), usage.get(row["id"]))
            mark = hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8)
            yield row, parent_end, mark.hexdigest()

    def messages(self, session_id: Any) -> Iterator[Row]:
        """A session's messages, all of them, in the order they were written."""
        return self._select(f"messages WHERE session_id = ? ORDER BY {self._row_id}", session_id)

    def has_undone(self, session_id: Any) -> bool:
        """Whether the user took back any of a session's messages."""
        if not self._has("messages", "active"):
            return False
        archived = "coalesce(compacted, 0)" if self._has("messages", "compacted") else "0"
        wanted = f"messages WHERE session_id = ? AND active = 0 AND {archived} = 0 LIMIT 1"
        return any(self._select(wanted, session_id))

    def model_usage(self, session_id: Any) -> list[Row]:
        """A session's token counts by model and task, where the database keeps them."""
        if not self._has("session_model_usage", "session_id"):
            return []
        return list(self._select("session_model_usage WHERE session_id = ?", session_id))

    def _select(self, source: str, session_id: Any) -> Iterator[Row]:
        statement = f"SELECT * FROM {source}"  # noqa: S608 - made of this module's own words
        for row in self._connection.execute(statement, (session_id,)):
            yield dict(row)

    def _sums(self, table: str, columns: Iterable[str], *more: str) -> dict[Any, Any]:
        """By session: the count of its rows and the sums of the columns that there are."""
        if not self._has(table, "session_id"):
            return {}
        totals = [f"total({column})" for column in columns if self._has(table, column)]
        wanted = ", ".join(["session_id", "count(*)", *more, *totals])
        statement = f"SELECT {wanted} FROM {table} GROUP BY session_id"  # noqa: S608 - as above
        return {row[0]: tuple(row)[1:] for row in self._connection.execute(statement)}

    def _has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, set())


@contextmanager
def _opened(log: LogFile, busy_timeout_s: float) -> Iterator[_Database]:
    """The database as it is at this moment, whatever Hermes writes meanwhile. Raises NotALog when
    it is another program's and LogUnreadable when it is locked or broken.
    """
    connection = None
    try:
        at_rest = _is_at_rest(log)
        connection = _connect(log, busy_timeout_s, immutable=at_rest)
        database = _Database(connection, log)
        connection.execute("BEGIN")
        yield database
        if at_rest and not (_is_at_rest(log) and LogFile(log.path).mtime_ns == log.mtime_ns):
            raise LogUnreadable(f"{log.path} was opened by Hermes meanwhile. Import it again.")
    except sqlite3.Error as error:
        advice = "Check that the file is a whole SQLite database."
        if "locked" in str(error) or "busy" in str(error):
            advice = "Another program has locked it: close that program or try again later."
        raise LogUnreadable(f"{log.path}: {error}. {advice}") from error
    finally:
        if connection is not None:
            connection.close()


def _is_at_rest(log: LogFile) -> bool:
    """Whether nobody has the database open: it is in WAL mode and has no log beside it."""
    in_wal_mode = log.head[18:20] == b"\x02\x02"
    return in_wal_mode and not log.path.with_name(log.path.name + "-wal").exists()


def _connect(
    log: LogFile, busy_timeout_s: float, *, immutable: bool, tries: int = 3
) -> sqlite3.Connection:
    """Hermes' checkpoints can disturb a reader for a moment; Hermes itself tries three times."""
    path = log.path.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Of a database at rest, even a reader would put files beside it that were not there.
    uri = f"file:{path}?mode=ro{'&immutable=1' if immutable else ''}"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if tries == 1 or "disk I/O error" not in str(error):
            raise
        time.sleep(_PAUSE_S)
        return _connect(log, busy_timeout_s, immutable=immutable, tries=tries - 1)
    return connection
