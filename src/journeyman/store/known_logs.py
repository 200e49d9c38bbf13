"""What the store knows about logs, asked with the bare driver.

Importing again when nothing is new is the commonest call there is: hooks and schedules make it.
Loading the whole store takes twenty times as long as the answer, so SQLite is asked directly, and
the store is opened when something has to be written. PostgreSQL is always asked through it.
"""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from journeyman.records import LogState, SessionId
from journeyman.store.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from journeyman.store.store import Store
    from journeyman.store.writing import Writing

_PREFIX = "sqlite:///"


class KnownLogs:
    """The part of a store that importing needs; `store` opens the whole."""

    def __init__(self, url: str, store: "Callable[[], Store]") -> None:
        self._url = url
        self._store = store

    def log_state(self, path: str) -> LogState | None:
        """How far a log was read, or None if it never was."""
        found = self._ask("SELECT state FROM logs WHERE path = ?", path)
        if found is None:
            return self._store().log_state(path)
        return msgspec.json.decode(found[0][0], type=LogState) if found else None

    def sessions_of_log(self, path: str) -> dict[SessionId, tuple[str, bool]]:
        """The sessions that came from a log: source, and whether it is a subagent's."""
        found = self._ask("SELECT id, source, lineage FROM sessions WHERE log = ?", path)
        if found is None:
            return self._store().sessions_of_log(path)
        return {SessionId(id_): (source, kind == "delegate") for id_, source, kind in found}

    def writing(self) -> "AbstractContextManager[Writing]":
        """A transaction of the store, which is opened for it."""
        return self._store().writing()

    def close(self) -> None:
        """Let go of the connection."""
        if self._driver is not None:
            self._driver.close()
        self._driver = None

    def _ask(self, question: str, path: str) -> list[tuple[Any, ...]] | None:
        """The rows, or None when the store has to be asked instead: it also says in words what is
        wrong with a database.
        """
        try:
            if self._driver is None:
                return None
            return self._driver.execute(question, (path,)).fetchall()
        except sqlite3.Error:
            return None

    @cached_property
    def _driver(self) -> sqlite3.Connection | None:
        """A connection for reading, if there is a database that this program has written."""
        path = Path(self._url.removeprefix(_PREFIX))
        if not self._url.startswith(_PREFIX) or "?" in self._url or not path.is_file():
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
