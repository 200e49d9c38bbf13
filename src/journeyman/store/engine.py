"""Connecting to SQLite or PostgreSQL, and saying in words why it did not work.

What the two need differently is here and in `search`; everything else in the room is the same
for both.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.pool import ConnectionPoolEntry

from journeyman.records.errors import BadSetting, StoreUnavailable, Unstorable

_PAUSE_S = 0.02


def connect(url: str, *, busy_timeout_s: float, cache_mb: int = 32) -> sa.Engine:
    """An engine for a database URL; the SQLite file and its folder are made if need be. So much of
    the file each connection to it keeps in memory.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise BadSetting(
            f"The database URL {url!r} cannot be read. "
            "Use sqlite:////absolute/path.db or postgresql://user@host/name."
        ) from error
    if parsed.drivername == "sqlite":
        return _sqlite(parsed, busy_timeout_s, cache_mb)
    if parsed.get_backend_name() == "postgresql":
        return _postgresql(parsed)
    raise BadSetting(
        f"The database {parsed.drivername!r} is not supported. "
        "Use sqlite:////absolute/path.db or postgresql://user@host/name."
    )


@contextmanager
def explained(url: sa.URL, doing: str) -> Iterator[None]:
    """Turns what the database driver raises into an error that a person can act on."""
    shown = url.render_as_string(hide_password=True)
    try:
        yield
    except sa.exc.OperationalError as error:
        reason = _reason(error)
        advice = "Check that it is running and that the URL in JOURNEYMAN_DATABASE is right."
        if "locked" in reason:
            advice = "Another process is writing to it: wait for it to end, then try again."
        elif url.get_backend_name() == "sqlite":
            advice = "Check that the folder can be written to and that the disk is not full."
        raise StoreUnavailable(f"While {doing}: {shown}: {reason}. {advice}") from error
    except (sa.exc.DataError, sa.exc.IntegrityError) as error:
        raise Unstorable(f"While {doing}: {_reason(error)}. Please report this log.") from error
    except sa.exc.DBAPIError as error:
        raise StoreUnavailable(
            f"While {doing}: {shown}: {_reason(error)}. "
            "If the file is damaged, move it away and import again: the logs are untouched."
        ) from error


@contextmanager
def writing(engine: sa.Engine, doing: str, *, durable: bool = False) -> Iterator[sa.Connection]:
    """A transaction that writes: all of it is kept when the block ends well, none otherwise. What
    is `durable` also outlives a loss of power from then on.
    """
    with (
        explained(engine.url, doing),
        engine.connect().execution_options(writes=True, durable=durable) as connection,
        connection.begin(),
    ):
        yield connection


def _reason(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if error.orig else str(error)


def _sqlite(url: sa.URL, busy_timeout_s: float, cache_mb: int) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise BadSetting("The SQLite database needs a path: sqlite:////absolute/path.db.")
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made here, with these rights, because SQLite would make it readable for everyone.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"The database {path} cannot be opened: {error.strerror}. "
            "Set JOURNEYMAN_HOME to a folder that can be written to."
        ) from error
    # No limit to connections: each iterator that a program holds open has one.
    engine = sa.create_engine(url, connect_args={"timeout": busy_timeout_s}, max_overflow=-1)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # Without this the driver begins transactions by itself, and only before some statements.
        connection.isolation_level = None
        cursor = connection.cursor()
        _use_wal(cursor, busy_timeout_s)
        for pragma in (
            "synchronous=NORMAL",
            "foreign_keys=ON",
            f"cache_size=-{cache_mb}000",
            "temp_store=MEMORY",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A writer takes its lock at once: two that begin as readers could only deadlock.
        options = connection.get_execution_options()
        writes = options.get("writes", False)
        if writes:
            level = "FULL" if options.get("durable", False) else "NORMAL"
            connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _use_wal(cursor: DBAPICursor, busy_timeout_s: float) -> None:
    """Readers then do not wait for writers. Two that switch a new database at once do not wait
    for each other by themselves, as they do for everything else.
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
            "PostgreSQL needs the driver psycopg: pip install 'journeyman[postgres]'."
        ) from error
