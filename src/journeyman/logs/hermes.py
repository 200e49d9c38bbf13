"""Hermes' `state.db` and its JSONL export. The database is only ever read, and by columns that
are looked up first, so that any schema version will do.

A compaction in place keeps the session and copies its last messages: the copies are left out, and
what follows the summary is the next generation. Rows the user took back are left out too.
"""

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from journeyman.logs import hermes_rows
from journeyman.logs.documents import read_whole
from journeyman.logs.hermes_rows import Row
from journeyman.logs.lines import BadLine, Line, LineDecoder, Lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.reader import FRAGMENT_MESSAGES
from journeyman.records import Fragment, LogEvent, LogState, Mark, Message, Session, Skip
from journeyman.records.errors import LogUnreadable, NotALog

T = TypeVar("T")

_BUSY_TIMEOUT_S = 5.0
_TRIES = 3
_PAUSE_S = 0.05
_SESSIONS_A_MARK = 200
_NEEDED = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"session_id", "role", "content"},
}


class HermesReader:
    """Hermes' database of sessions."""

    name = "hermes"
    about = "Hermes Agent database (state.db), any schema version"

    def recognises(self, log: LogFile) -> bool:
        return log.is_sqlite

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        before: dict[str, str] = since.memory.get("sessions", {}) if since else {}
        known: dict[str, str] = {}
        with _opened(log) as database:
            changed = 0
            for session_id, mark in database.fingerprints():
                known[session_id] = mark
                if before.get(session_id) == mark:
                    continue
                yield from database.read_session(session_id)
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
        return (
            any(
                isinstance(line, dict) and {"id", "source", "started_at", "messages"} <= line.keys()
                for line in log.first_lines[:3]
            )
            or {"id", "source", "started_at", "messages"} <= log.keys
        )

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        lines = Lines(log, since)
        decoder: LineDecoder[dict[str, Any]] = LineDecoder(dict[str, Any])
        for line in lines:
            if isinstance(line, Skip):
                yield line
                continue
            try:
                yield from _exported(decoder.decode(line), log, line)
            except BadLine as reason:
                yield Skip(line=line.number, reason=str(reason))
        yield Mark(state=lines.state(self.name))


def _exported(row: Row, log: LogFile, line: Line) -> Iterator[LogEvent]:
    if not row.get("id"):
        raise BadLine("a session without an id")
    session = hermes_rows.session_of(row, None, str(log.path))
    messages = row.get("messages")
    if not isinstance(messages, list):
        raise BadLine("a session whose messages are not a list")
    usage = tuple(hermes_rows.usage_of(row, []))
    yield Fragment(session=session, usage=usage, replaces=True, read_bytes=line.offset)
    wanted = (one for one in messages if isinstance(one, dict))
    for event in _conversation(session, wanted):
        yield msgspec.structs.replace(event, line=line.number) if isinstance(event, Skip) else event


@contextmanager
def _opened(log: LogFile) -> Iterator["_Database"]:
    path = log.path.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    wal = log.path.with_name(log.path.name + "-wal")
    try:
        connection = _patiently(lambda: _connect(f"file:{path}?mode=ro"))
    except sqlite3.OperationalError as error:
        if "unable to open" not in str(error) or wal.exists():
            raise LogUnreadable(_reason(log, error)) from error
        # A read-only folder without a log beside the file: nothing can be changing it.
        connection = _connect(f"file:{path}?mode=ro&immutable=1")
    except sqlite3.DatabaseError as error:
        raise LogUnreadable(_reason(log, error)) from error
    try:
        database = _Database(connection, log)
        connection.execute("BEGIN")
        yield database
    except sqlite3.DatabaseError as error:
        raise LogUnreadable(_reason(log, error)) from error
    finally:
        connection.close()


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _patiently(action: Callable[[], T]) -> T:
    """Hermes' checkpoints can disturb a reader for a moment; Hermes itself tries three times."""
    for _ in range(_TRIES - 1):
        try:
            return action()
        except sqlite3.OperationalError as error:
            if "disk I/O error" not in str(error):
                raise
            time.sleep(_PAUSE_S)
    return action()


def _reason(log: LogFile, error: sqlite3.Error) -> str:
    advice = "Check that the file is a whole SQLite database."
    if "locked" in str(error) or "busy" in str(error):
        advice = "Another program has locked it: close that program or try again later."
    return f"{log.path}: {error}. {advice}"


class _Database:
    """An open state.db and the columns it has."""

    def __init__(self, connection: sqlite3.Connection, log: LogFile) -> None:
        self._connection = connection
        self._log = str(log.path)
        names = [
            row["name"]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        self._columns = {name: self._columns_of(name) for name in names if name.isidentifier()}
        for table, needed in _NEEDED.items():
            if not needed <= self._columns.get(table, set()):
                found = ", ".join(sorted(names)[:6]) or "no tables"
                raise NotALog(
                    f"{self._log} is a SQLite file, but not Hermes': it has {found}. "
                    "Hermes' database is called state.db and has the tables sessions and messages."
                )

    def fingerprints(self) -> Iterator[tuple[str, str]]:
        """Each session with a mark that changes when the session does."""
        self._usage_by_session = self._by_session("session_model_usage")
        sums = [
            f"total({column})"
            for column in ("active", "compacted")
            if self._has("messages", column)
        ]
        newest = "max(id)" if self._has("messages", "id") else "max(rowid)"
        statement = (
            f"SELECT session_id, {', '.join(['count(*)', newest, *sums])} "  # noqa: S608
            "FROM messages GROUP BY session_id"
        )
        marks = {str(row[0]): tuple(row)[1:] for row in self._connection.execute(statement)}
        for row in self._connection.execute("SELECT * FROM sessions ORDER BY started_at, id"):
            session_id = str(row["id"])
            parts = (tuple(row), marks.get(session_id), self._usage_by_session.get(session_id))
            yield session_id, hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()

    def read_session(self, session_id: str) -> Iterator[LogEvent]:
        """One session, whole: Hermes changes rows in place, so parts would not do."""
        row = dict(
            self._connection.execute(
                "SELECT * FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
        )
        parent = self._connection.execute(
            "SELECT * FROM sessions WHERE id = ?", (row.get("parent_session_id"),)
        ).fetchone()
        parent_end = dict(parent).get("end_reason") if parent is not None else None
        session = hermes_rows.session_of(row, parent_end, self._log)
        by_model = self._usage_rows(session_id)
        usage = tuple(hermes_rows.usage_of(row, by_model))
        yield Fragment(session=session, usage=usage, replaces=True)
        order = "id" if self._has("messages", "id") else "rowid"
        rows = self._connection.execute(
            f"SELECT * FROM messages WHERE session_id = ? ORDER BY {order}",  # noqa: S608
            (session_id,),
        )
        yield from _conversation(session, (dict(one) for one in rows))

    def _session(self, session_id: str | None) -> Row:
        found = self._connection.execute("SELECT * FROM sessions WHERE id = ?", (session_id,))
        row = found.fetchone()
        return {} if row is None else dict(row)

    def _columns_of(self, table: str) -> set[str]:
        return {row["name"] for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def _has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, set())

    def _by_session(self, table: str) -> dict[str, Any]:
        if not self._has(table, "session_id") or not self._has(table, "input_tokens"):
            return {}
        statement = (
            "SELECT session_id, count(*), total(input_tokens), total(output_tokens) "  # noqa: S608
            f"FROM {table} GROUP BY session_id"
        )
        return {str(row[0]): tuple(row)[1:] for row in self._connection.execute(statement)}

    def _usage_rows(self, session_id: str) -> list[Row]:
        if session_id not in self._usage_by_session:
            return []
        found = self._connection.execute(
            "SELECT * FROM session_model_usage WHERE session_id = ?", (session_id,)
        )
        return [dict(row) for row in found]


def _conversation(session: Session, rows: Iterable[Row]) -> Iterator[Fragment | Skip]:
    """Rows in order as messages: undone ones and copies left out, generations counted."""
    seen: set[int] = set()
    gathered: list[Message] = []
    generation, spoken, in_review = 0, False, False
    for index, row in enumerate(rows):
        if hermes_rows.was_undone(row):
            continue
        copy = hash(tuple(str(row.get(name)) for name in _SAME))
        if copy in seen and row.get("timestamp") is not None:
            continue
        seen.add(copy)
        if hermes_rows.starts_review(row):
            in_review = True
            continue
        if in_review and row.get("role") in ("assistant", "tool"):
            in_review = row.get("role") == "tool" or bool(row.get("tool_calls"))
            continue
        in_review = False
        if hermes_rows.is_summary(row) and spoken:
            generation += 1
        position = row["id"] if isinstance(row.get("id"), int) else index
        try:
            message = hermes_rows.message_of(row, position, generation)
        except ValueError as error:
            yield Skip(line=position, reason=f"message {position} of {session.id}: {error}")
            continue
        if message is None:
            continue
        spoken = spoken or message.role != "system"
        gathered.append(message)
        if len(gathered) >= FRAGMENT_MESSAGES:
            yield Fragment(session=session, messages=tuple(gathered))
            gathered = []
    if gathered:
        yield Fragment(session=session, messages=tuple(gathered))


# A compaction copies the last rows, with these equal and a new id.
_SAME = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "tool_name")
