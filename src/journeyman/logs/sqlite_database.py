"""Opens other programs' SQLite databases: read-only, without leaving a file beside them, and only
the named tables, so that a table with credentials cannot be read by mistake.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

from journeyman.logs.log_file import MAX_VALUE_BYTES, LogFile
from journeyman.records import Fragment, LogEvent, LogState, Mark, Skip
from journeyman.records.errors import LogUnreadable, NotALog

RequiredColumns = Mapping[str, Set[str]]
"""The tables that identify a program's database, each with columns that every version has."""

_BUSY_TIMEOUT_S = 5.0
"""How long to wait for a lock, as Hermes' own readers do."""

_SESSIONS_PER_MARK = 200
_HARMLESS_ACTIONS = frozenset(
    (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_TRANSACTION,
    )
)


def has_tables(log: LogFile, required: RequiredColumns) -> bool:
    """Return whether a file is a database with these tables and columns. Raises LogUnreadable."""
    if not log.is_database:
        return False
    with _connected(log) as connection:
        return Database(connection, required).has_all(required)


def foreign_database(log: LogFile) -> NotALog:
    """Return the error for a database of a program that no reader knows."""
    return NotALog(
        f"{log.path} is a SQLite file of another program. Journeyman reads the databases of Hermes "
        "(state.db) and opencode (opencode.db)."
    )


class Database:
    """An open database, of which only `tables` can be read."""

    def __init__(self, connection: sqlite3.Connection, tables: Iterable[str]) -> None:
        self._connection = connection
        # Only these, because inspecting a search index can need an extension that is missing here.
        self._columns: dict[str, set[str]] = {
            name: {row["name"] for row in connection.execute(f"PRAGMA table_info({name})")}
            for name in tables
        }
        readable = {*self._columns, "sqlite_master"}

        def authorize(action: int, name: str | None, *_: str | None) -> int:
            if action in _HARMLESS_ACTIONS or (action == sqlite3.SQLITE_READ and name in readable):
                return sqlite3.SQLITE_OK
            return sqlite3.SQLITE_DENY

        connection.set_authorizer(authorize)

    def has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, set())

    def has_all(self, required: RequiredColumns) -> bool:
        return all(
            columns <= self._columns.get(table, set()) for table, columns in required.items()
        )

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Run a query; its rows have the columns by name."""
        return self._connection.execute(statement, values)

    def select(self, source: str, value: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table; `source` is its name and a condition with the value."""
        for row in self.execute(f"SELECT * FROM {source}", value):  # noqa: S608 - of our readers
            yield dict(row)


@contextmanager
def open_database(
    log: LogFile,
    required: RequiredColumns,
    *,
    optional: Iterable[str] = (),
    busy_timeout_s: float = _BUSY_TIMEOUT_S,
) -> Iterator[Database]:
    """Open a snapshot of a database, which its program may be writing to. Only the required and the
    optional tables can be read. Raises NotALog if a required table or column is missing and
    LogUnreadable if the database is locked or damaged.
    """
    with _connected(log, busy_timeout_s) as connection:
        database = Database(connection, (*required, *optional))
        if not database.has_all(required):
            raise foreign_database(log)
        connection.execute("BEGIN")
        yield database


def read_changed_sessions(
    log: LogFile,
    reader: str,
    since: LogState | None,
    sessions: Iterable[tuple[str, str, Callable[[], Iterator[Fragment | Skip]]]],
) -> Iterator[LogEvent]:
    """Read the sessions that changed, each as a whole, because their programs update rows in place.
    Each comes as its id, a digest of its rows, and a function that reads it.
    """
    before: dict[str, str] = since.memory.get("sessions", {}) if since else {}
    digests: dict[str, str] = {}
    changed = 0
    for session_id, digest, read in sessions:
        digests[session_id] = digest
        if before.get(session_id) == digest:
            continue
        yield from read()
        changed += 1
        if changed % _SESSIONS_PER_MARK == 0:
            yield Mark(state=log.state(reader, memory={"sessions": {**before, **digests}}))
    yield Mark(state=log.state(reader, memory={"sessions": digests}))


def row_digest(*parts: Any) -> str:
    """Return a digest of the rows of a session."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


@contextmanager
def _connected(
    log: LogFile, busy_timeout_s: float = _BUSY_TIMEOUT_S
) -> Iterator[sqlite3.Connection]:
    connection = None
    try:
        at_rest = _is_at_rest(log)
        connection = _connect(log, busy_timeout_s, immutable=at_rest)
        yield connection
        if at_rest and not (_is_at_rest(log) and LogFile(log.path).mtime_ns == log.mtime_ns):
            raise LogUnreadable(
                f"{log.path} was opened by its program while it was being read. Import it again."
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
    """Return whether no program is writing to the database: it has no journal of either kind."""
    beside = (log.path.with_name(log.path.name + ending) for ending in ("-wal", "-journal"))
    return not any(path.exists() for path in beside)


def _connect(log: LogFile, busy_timeout_s: float, *, immutable: bool) -> sqlite3.Connection:
    """Connect read-only. The size of values is limited, because the schema is input like the rows:
    a generated column can make a harmless query build huge ones.
    """
    # Immutable, because otherwise even a reader creates files next to a database at rest.
    uri = f"{log.path.as_uri()}?mode=ro" + ("&immutable=1" if immutable else "")
    connection = sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        # Functions and tables with effects are not called by generated columns.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
