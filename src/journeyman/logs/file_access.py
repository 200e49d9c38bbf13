"""Opens other programs' files without harm: only regular files, never waiting for one, and
databases only as databases.

Closing any descriptor of a file drops the POSIX locks that this process holds on it. Journeyman can
run inside the program that has the database open, so a plain `open` would cost that program its
locks. SQLite takes care of this; therefore SQLite is asked whether a file is a database.
"""

import os
import sqlite3
import stat
from pathlib import Path
from typing import BinaryIO

_NEVER_WAIT = getattr(os, "O_NONBLOCK", 0)


class NotARegularFile(OSError):
    """The path leads to something other than a file."""


def check_regular(mode: int) -> None:
    """Raise NotARegularFile unless a file of this mode is a regular one."""
    if not stat.S_ISREG(mode):
        raise NotARegularFile(0, "it is not a regular file")


def open_regular(path: Path, *, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading. Raises NotARegularFile, and never waits: opening a pipe
    would block until another program writes to it.
    """
    check_regular(path.stat().st_mode)  # first, because opening a device can have effects
    descriptor = os.open(path, os.O_RDONLY | _NEVER_WAIT)
    try:
        # Again, because the path may lead to something else by now.
        check_regular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return open(descriptor, "rb", buffering=buffering)  # noqa: PTH123 - the caller closes it


def sqlite_uri(path: Path, parameters: str) -> str:
    """Return the URI with which SQLite opens a file."""
    name = path.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{name}?{parameters}"


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database, whatever its name. It is not locked, and no
    files are created next to it. Raises OSError.
    """
    check_regular(path.stat().st_mode)  # SQLite would wait for a pipe
    connection = None
    try:
        connection = sqlite3.connect(sqlite_uri(path, "mode=ro&immutable=1"), uri=True)
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        # A damaged database is still one; what cannot be opened at all is reported by reading it.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
    finally:
        if connection is not None:
            connection.close()
    return True
