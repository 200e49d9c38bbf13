"""SQLite asked with the bare driver: for the questions that are asked most often and answered "no
news", because loading the whole store takes twenty times as long as the answer.
"""

import sqlite3

from journeyman.store.address import sqlite_path
from journeyman.store.version import SCHEMA_VERSION


def open_bare(url: str) -> sqlite3.Connection | None:
    """A connection for reading, if there is a database that this program has written."""
    path = sqlite_path(url)
    if path is None or not path.is_file():
        return None
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        version = None
    if version != (SCHEMA_VERSION,):
        connection.close()
        return None
    return connection
