"""Limits on reading another program's database: its schema is input like its rows, and can make a
harmless query build huge values or never end.
"""

import sqlite3
from typing import Any

from journeyman.logs.json_document import MAX_VALUE_BYTES

_STEPS_PER_CHECK = 10_000_000
_MAX_CHECKS = 300
"""Steps of SQLite's virtual machine that may pass without a row: about a minute's work. Counting
the messages of a database of 10 GB takes a tenth of them."""


def limit_statements(connection: sqlite3.Connection) -> None:
    """Limit the values and the work of each statement. Raises sqlite3.Error from the statement that
    exceeds a limit. Rows become sqlite3.Row.
    """
    checks = 0

    def is_endless() -> bool:
        nonlocal checks
        checks += 1
        return checks > _MAX_CHECKS

    def make_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
        nonlocal checks
        checks = 0
        return sqlite3.Row(cursor, values)

    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    # Functions and tables with effects are not called by views, triggers and generated columns.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.set_progress_handler(is_endless, _STEPS_PER_CHECK)
    connection.row_factory = make_row
