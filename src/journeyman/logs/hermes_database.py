"""Hermes' `state.db`, opened so that nothing in it can change and read by columns that are looked
up first, so that any schema version will do. What the rows mean is not known here.
"""

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from journeyman.logs.hermes_rows import Row
from journeyman.logs.hermes_usage import COUNTERS
from journeyman.logs.logfile import LogFile
from journeyman.records.errors import LogUnreadable, NotALog

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0
"""How long to wait for a lock; Hermes' own readers wait as long."""

_TRIES = 3
_PAUSE_S = 0.05
_READ = ("sessions", "messages", "session_model_usage")
_NEEDED = {
    "sessions": {"id", "source", "started_at"},
    "messages": {"session_id", "role", "content"},
}


class Database:
    """An open state.db and the columns it has."""

    def __init__(self, connection: sqlite3.Connection, log: LogFile) -> None:
        self._connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [row["name"] for row in tables]
        # Only these, because to look at a search index can need what is not installed here.
        self._columns = {name: self._columns_of(name) for name in _READ if name in names}
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
        ends = self._end_reasons()
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

    def _end_reasons(self) -> dict[Any, str]:
        if not self._has("sessions", "end_reason"):
            return {}
        return dict(
            tuple(row)
            for row in self._connection.execute(
                "SELECT id, end_reason FROM sessions WHERE end_reason IS NOT NULL"
            )
        )

    def _columns_of(self, table: str) -> set[str]:
        return {row["name"] for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def _has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, set())


@contextmanager
def opened(log: LogFile, busy_timeout_s: float) -> Iterator[Database]:
    """The database as it is at this moment, whatever Hermes writes meanwhile. Raises NotALog when
    it is another program's and LogUnreadable when it is locked or broken.
    """
    connection = None
    try:
        at_rest = _is_at_rest(log)
        connection = _connected(log, busy_timeout_s)
        database = Database(connection, log)
        connection.execute("BEGIN")
        yield database
        if at_rest and not (_is_at_rest(log) and LogFile(log.path).mtime_ns == log.mtime_ns):
            raise LogUnreadable(f"{log.path} was opened by Hermes meanwhile. Import it again.")
    except sqlite3.Error as error:
        raise LogUnreadable(_reason(log, error)) from error
    finally:
        if connection is not None:
            connection.close()


def _connected(log: LogFile, busy_timeout_s: float) -> sqlite3.Connection:
    path = log.path.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    uri = f"file:{path}?mode=ro"
    if _is_at_rest(log):
        # Even a reader would put files beside it that were not there.
        uri += "&immutable=1"
    return _patiently(lambda: _connect(uri, busy_timeout_s))


def _is_at_rest(log: LogFile) -> bool:
    """Whether nobody has the database open: it is in WAL mode and has no log beside it."""
    in_wal_mode = log.head[18:20] == b"\x02\x02"
    return in_wal_mode and not log.path.with_name(log.path.name + "-wal").exists()


def _connect(uri: str, busy_timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None)
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
