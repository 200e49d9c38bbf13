"""Connecting to SQLite or PostgreSQL, and explaining in words why a connection failed."""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.pool import ConnectionPoolEntry

from journeyman.records.errors import BadSetting, StoreUnavailable, Unstorable
from journeyman.store.rows import select_in

_PAUSE_S = 0.02


def connect(url: str, *, busy_timeout_s: float) -> sa.Engine:
    """Return an engine for a database URL, creating the SQLite file and its folder if necessary."""
    advice = "Use sqlite:////absolute/path.db or postgresql://user@host/name."
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise BadSetting(f"The database URL {url!r} cannot be read. {advice}") from error
    if parsed.drivername == "sqlite":
        return _sqlite(parsed, busy_timeout_s)
    if parsed.get_backend_name() == "postgresql":
        return _postgresql(parsed)
    raise BadSetting(f"The database {parsed.drivername!r} is not supported. {advice}")


@contextmanager
def translate_errors(url: sa.URL, activity: str) -> Iterator[None]:
    """Turn what the database driver raises into an error that a person can act on."""
    shown = url.render_as_string(hide_password=True)
    try:
        yield
    except sa.exc.OperationalError as error:
        reason = _reason(error)
        advice = "Check that it is running and that the URL in JOURNEYMAN_DATABASE is right."
        if "locked" in reason or "lock timeout" in reason:
            advice = "Another process is writing to it: wait until it has finished, then try again."
        elif url.get_backend_name() == "sqlite":
            advice = "Check that the folder is writable and that the disk is not full."
        raise StoreUnavailable(f"While {activity}: {shown}: {reason}. {advice}") from error
    except (sa.exc.DataError, sa.exc.IntegrityError) as error:
        raise Unstorable(f"While {activity}: {_reason(error)}. Please report this log.") from error
    except sa.exc.DBAPIError as error:
        raise StoreUnavailable(
            f"While {activity}: {shown}: {_reason(error)}. "
            "If the file is damaged, move it away and import again: the logs are not affected."
        ) from error


class Repository:
    """The base class of everything that reads and writes one kind of record in a database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @contextmanager
    def _reading(self, activity: str) -> Iterator[sa.Connection]:
        with translate_errors(self._engine.url, activity), self._engine.connect() as connection:
            yield connection

    def _read(self, activity: str, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self._reading(activity) as connection:
            return connection.execute(query).all()

    def _read_in(
        self,
        activity: str,
        query: sa.Select[Any],
        column: sa.ColumnElement[Any],
        values: Iterable[Any],
    ) -> list[sa.Row[Any]]:
        """Return the rows of a query in which a column has one of these values."""
        with self._reading(activity) as connection:
            return list(select_in(connection, query, column, values))

    @contextmanager
    def _writing(
        self,
        activity: str,
        *,
        durable: bool = False,
        erases: bool = False,
        within_s: float | None = None,
    ) -> Iterator[sa.Connection]:
        """Open a write transaction: everything is kept if the block succeeds, nothing otherwise. A
        `durable` transaction also survives a power failure from then on. If it `erases`, what it
        deletes or replaces does not remain readable in the free pages of the SQLite file. Raise
        StoreUnavailable if other writers do not finish `within_s`, by default the store's limit.
        """
        options = {} if within_s is None else {"busy_timeout_s": max(within_s, 0.0)}
        with (
            translate_errors(self._engine.url, activity),
            self._engine.connect().execution_options(
                writes=True, durable=durable, **options
            ) as connection,
            connection.begin(),
        ):
            if erases and connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            if options and connection.dialect.name == "postgresql":
                limit_ms = max(int(options["busy_timeout_s"] * 1_000), 1)  # 0 would mean no limit
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {limit_ms}")
            yield connection

    def _erase_log(self) -> None:
        """Empty SQLite's write-ahead log, which still contains deleted data."""
        if self._engine.dialect.name == "sqlite":
            # On the driver's connection, because a checkpoint fails inside a transaction.
            with closing(self._engine.raw_connection()) as driver:
                driver.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _reason(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if error.orig else str(error)


def _sqlite(url: sa.URL, busy_timeout_s: float) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise BadSetting("The SQLite database needs a path: use sqlite:////absolute/path.db.")
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Created here, with these permissions, because SQLite would make it readable by everyone.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"The database {path} cannot be opened: {error.strerror}. "
            "Set JOURNEYMAN_HOME to a writable folder."
        ) from error
    # No limit on connections: each iterator that a program holds open needs its own.
    engine = sa.create_engine(url, connect_args={"timeout": busy_timeout_s}, max_overflow=-1)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # Otherwise the driver begins transactions on its own, and only before some statements.
        connection.isolation_level = None
        cursor = connection.cursor()
        _use_wal(cursor, busy_timeout_s)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA cache_size=-32000")
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A writer takes its lock immediately: two that begin as readers could only deadlock.
        options = connection.get_execution_options()
        writes = options.get("writes", False)
        limit_s = options.get("busy_timeout_s", busy_timeout_s)
        if connection.info.get("busy_timeout_s", busy_timeout_s) != limit_s:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={int(limit_s * 1_000)}")
            connection.info["busy_timeout_s"] = limit_s
        if writes:
            level = "FULL" if options.get("durable", False) else "NORMAL"
            connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _use_wal(cursor: DBAPICursor, busy_timeout_s: float) -> None:
    """Switch to write-ahead logging, in which readers do not wait for writers. SQLite's busy
    timeout does not cover this switch: two processes that open a new database at once have to
    retry.
    """
    until = time.monotonic() + busy_timeout_s
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _postgresql(url: sa.URL) -> sa.Engine:
    url = url.set(drivername="postgresql+psycopg")
    try:
        return sa.create_engine(url, pool_pre_ping=True, max_overflow=-1)
    except ModuleNotFoundError as error:
        raise StoreUnavailable(
            "PostgreSQL needs the driver psycopg. Install it: pip install 'journeyman[postgres]'."
        ) from error
