"""Readers for Hermes' `state.db`, any schema version, opened read-only, and for its JSONL export.
Copies made by an in-place compaction, rows that the user undid, and background reviews that older
versions left in the conversation are omitted.
"""

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any

from journeyman.logs import hermes_rows
from journeyman.logs.fields import whole_number
from journeyman.logs.fragments import Part, in_fragments, read_session_lines
from journeyman.logs.hermes_rows import COUNTERS, Row, usage_of_session
from journeyman.logs.line_reader import BadLine
from journeyman.logs.log_file import LogFile
from journeyman.logs.sqlite_limits import limit_statements
from journeyman.records import LogEvent, LogState, Mark, Message, Session, Skip
from journeyman.records.errors import LogUnreadable, NotALog

_SESSIONS_PER_MARK = 200
_EXPORT_FIELDS = {"id", "source", "started_at", "messages"}
BUSY_TIMEOUT_S = 5.0
"""How long to wait for a lock, as Hermes' own readers do."""

_RETRY_PAUSE_S = 0.05
_TABLES = ("sessions", "messages", "session_model_usage")
_REQUIRED_COLUMNS = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"session_id", "role", "content"},
}


class HermesReader:
    """Reads Hermes' database of sessions."""

    name = "hermes"
    about = "Hermes Agent database (state.db), any schema version"

    def __init__(self, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._busy_timeout_s = busy_timeout_s

    def recognises(self, log: LogFile) -> bool:
        return log.head.startswith(b"SQLite format 3\x00")

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Read the sessions that changed, each as a whole, because Hermes updates rows in place."""
        old_digests: dict[str, str] = since.memory.get("sessions", {}) if since else {}
        digests: dict[str, str] = {}
        with _open_database(log, self._busy_timeout_s) as database:
            changed = 0
            for row, parent_end, digest in database.sessions():
                session_id = str(row["id"])
                digests[session_id] = digest
                if old_digests.get(session_id) == digest:
                    continue
                session = hermes_rows.parse_session(row, parent_end, log.name)
                undone: Set[int] = set()
                if database.has_undone(row["id"]):
                    undone = _undone_keys(database.messages(row["id"]))
                messages = _conversation(session.id, database.messages(row["id"]), undone)
                usage = usage_of_session(row, database.model_usage(row["id"]))
                yield from in_fragments(session, chain(usage, messages))
                changed += 1
                if changed % _SESSIONS_PER_MARK == 0:
                    memory = {"sessions": {**old_digests, **digests}}
                    yield Mark(state=log.state(self.name, memory=memory))
        yield Mark(state=log.state(self.name, memory={"sessions": digests}))


class HermesExportReader:
    """Reads the output of `hermes sessions export`: one session with its messages per line."""

    name = "hermes_export"
    about = "Hermes Agent session export (JSONL)"

    def recognises(self, log: LogFile) -> bool:
        lines = (line.keys() for line in log.first_lines[:3] if isinstance(line, dict))
        return any(keys >= _EXPORT_FIELDS for keys in (*lines, log.keys))

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        def read(row: Any, _: int) -> tuple[Session, Iterable[Part]]:
            if not isinstance(row, dict) or not row.get("id"):
                raise BadLine("a session has no id")
            if not isinstance(row.get("messages"), list):
                raise BadLine("the messages of a session are not a list")
            session = hermes_rows.parse_session(row, None, log.name)
            rows = [message if isinstance(message, dict) else {} for message in row["messages"]]
            messages = _conversation(session.id, rows, _undone_keys(rows))
            return session, chain(usage_of_session(row, []), messages)

        return read_session_lines(log, since, self.name, read, unique_ids=False)


def _undone_keys(rows: Iterable[Row]) -> Set[int]:
    """Return the copy keys of messages that the user undid. Among the copies of a message, the live
    one decides, otherwise the last: undoing a copy undoes the message.
    """
    last: dict[int, tuple[bool, bool]] = {}
    for row in rows:
        live = bool(row.get("active", True))
        key = hermes_rows.copy_key(row)
        if key is not None and live >= last.get(key, (False, False))[0]:
            last[key] = (live, hermes_rows.is_undone(row))
    return {key for key, (_, undone) in last.items() if undone}


def _conversation(
    session_id: str, rows: Iterable[Row], undone_keys: Set[int]
) -> Iterator[Message | Skip]:
    """Yield rows as messages, in order, without undone rows, copies and reviews, and with their
    generations counted.
    """
    used_keys: set[int | None] = {None, *undone_keys}
    generation, has_messages, in_review = 0, False, False
    for index, recorded in enumerate(rows):
        key = hermes_rows.copy_key(recorded)
        if hermes_rows.is_undone(recorded) or (key is not None and key in used_keys):
            continue
        used_keys.add(key)
        row = {**recorded, "content": hermes_rows.content_text(recorded.get("content"))}
        if hermes_rows.starts_review(row):
            in_review = True
            continue
        if in_review and row.get("role") in ("assistant", "tool"):
            in_review = row.get("role") == "tool" or hermes_rows.has_tool_calls(row)
            continue
        in_review = False
        recorded_id = whole_number(row["id"]) if isinstance(row.get("id"), int) else None
        position = index if recorded_id is None else recorded_id
        generation += hermes_rows.is_summary(row) and has_messages
        where = f"message {position} of {session_id}"
        try:
            calls = hermes_rows.parse_tool_calls(row.get("tool_calls"))
        except ValueError as error:
            # The text of the message is kept.
            calls = ()
            yield Skip(line=0, reason=f"{where}: {error}")
        try:
            message = hermes_rows.parse_message(row, position, generation, calls)
        except ValueError as error:
            yield Skip(line=0, reason=f"{where}: {error}")
            continue
        if message is not None:
            has_messages = has_messages or message.role != "system"
            yield message


class _Database:
    """An open state.db and the columns it has."""

    def __init__(self, connection: sqlite3.Connection, log: LogFile) -> None:
        self._connection = connection
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [row["name"] for row in rows]
        # Only these, because inspecting a search index can need an extension that is missing here.
        self._columns: dict[str, set[str]] = {
            name: {row["name"] for row in connection.execute(f"PRAGMA table_info({name})")}
            for name in _TABLES
            if name in names
        }
        for table, required in _REQUIRED_COLUMNS.items():
            if not required <= self._columns.get(table, set()):
                tables = ", ".join(sorted(names)[:6]) or "no tables"
                raise NotALog(
                    f"{log.path} is a SQLite file, but not Hermes': it has {tables}. "
                    "Hermes' database is called state.db and has the tables sessions and messages."
                )
        self._row_id = "id" if self._has("messages", "id") else "rowid"

    def sessions(self) -> Iterator[tuple[Row, str | None, str]]:
        """Yield each session's row, why its parent ended, and a digest that changes whenever the
        session does.
        """
        messages = self._sums("messages", ("active", "compacted"), f"max({self._row_id})")
        usage = self._sums("session_model_usage", COUNTERS)
        ends: dict[Any, str] = {}
        if self._has("sessions", "end_reason"):
            ended = "SELECT id, end_reason FROM sessions WHERE end_reason IS NOT NULL"
            ends = {row[0]: row[1] for row in self._connection.execute(ended)}
        for record in self._connection.execute(
            "SELECT * FROM sessions WHERE id IS NOT NULL ORDER BY started_at, id"
        ):
            row = dict(record)
            parent_end = ends.get(row.get("parent_session_id"))
            parts = (row, parent_end, messages.get(row["id"]), usage.get(row["id"]))
            digest = hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8)
            yield row, parent_end, digest.hexdigest()

    def messages(self, session_id: Any) -> Iterator[Row]:
        """Yield all messages of a session, in the order they were written."""
        return self._select(f"messages WHERE session_id = ? ORDER BY {self._row_id}", session_id)

    def has_undone(self, session_id: Any) -> bool:
        """Return whether the user undid any message of a session."""
        if not self._has("messages", "active"):
            return False
        archived = "coalesce(compacted, 0)" if self._has("messages", "compacted") else "0"
        undone = f"messages WHERE session_id = ? AND active = 0 AND {archived} = 0 LIMIT 1"
        return any(self._select(undone, session_id))

    def model_usage(self, session_id: Any) -> list[Row]:
        """Return a session's token counts by model and task, if the database has them."""
        if not self._has("session_model_usage", "session_id"):
            return []
        return list(self._select("session_model_usage WHERE session_id = ?", session_id))

    def _select(self, source: str, session_id: Any) -> Iterator[Row]:
        statement = f"SELECT * FROM {source}"  # noqa: S608 - built from constants of this module
        for row in self._connection.execute(statement, (session_id,)):
            yield dict(row)

    def _sums(self, table: str, columns: Iterable[str], *more: str) -> dict[Any, Any]:
        """Return, by session, the number of its rows and the totals of those columns that exist."""
        if not self._has(table, "session_id"):
            return {}
        totals = [f"total({column})" for column in columns if self._has(table, column)]
        selected = ", ".join(["session_id", "count(*)", *more, *totals])
        statement = f"SELECT {selected} FROM {table} GROUP BY session_id"  # noqa: S608 - as above
        return {row[0]: tuple(row)[1:] for row in self._connection.execute(statement)}

    def _has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, set())


@contextmanager
def _open_database(log: LogFile, busy_timeout_s: float) -> Iterator[_Database]:
    """Open a snapshot of the database, which Hermes may be writing to. Raises NotALog if it belongs
    to another program and LogUnreadable if it is locked or damaged.
    """
    connection = None
    try:
        at_rest = _is_at_rest(log)
        connection = _connect(log, busy_timeout_s, immutable=at_rest)
        database = _Database(connection, log)
        connection.execute("BEGIN")
        yield database
        if at_rest and not (_is_at_rest(log) and LogFile(log.path).mtime_ns == log.mtime_ns):
            raise LogUnreadable(
                f"{log.path} was opened by Hermes while it was being read. Import it again."
            )
    except sqlite3.Error as error:
        advice = "Check that the file is a complete SQLite database."
        if "locked" in str(error) or "busy" in str(error):
            advice = "Another program has locked it: close that program or try again later."
        raise LogUnreadable(f"{log.path}: {error}. {advice}") from error
    finally:
        if connection is not None:
            connection.close()


def _is_at_rest(log: LogFile) -> bool:
    """Return whether no program has the database open: it is in WAL mode without a -wal file."""
    in_wal_mode = log.head[18:20] == b"\x02\x02"
    return in_wal_mode and not log.path.with_name(log.path.name + "-wal").exists()


def _connect(
    log: LogFile, busy_timeout_s: float, *, immutable: bool, tries: int = 3
) -> sqlite3.Connection:
    """Connect read-only. A checkpoint by Hermes can briefly disturb a reader, so this tries three
    times, as Hermes itself does.
    """
    path = log.path.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Immutable, because otherwise even a reader creates files next to a database at rest.
    uri = f"file:{path}?mode=ro{'&immutable=1' if immutable else ''}"
    connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None)
    try:
        limit_statements(connection)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        connection.close()
        if tries == 1 or "disk I/O error" not in str(error):
            raise
        time.sleep(_RETRY_PAUSE_S)
        return _connect(log, busy_timeout_s, immutable=immutable, tries=tries - 1)
    return connection
