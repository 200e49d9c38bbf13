"""What the store knows about logs, asked with the bare driver.

Importing again when nothing is new is the commonest call there is: hooks and schedules make it. So
SQLite is asked directly, and the store is opened when something has to be written. PostgreSQL is
always asked through it.
"""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from journeyman.records import LogState, SessionId
from journeyman.store.driver import open_bare

if TYPE_CHECKING:
    from journeyman.store.store import Store
    from journeyman.store.writing import Writing


class KnownLogs:
    """The part of a store that importing needs; `store` opens the whole."""

    def __init__(self, url: str, store: "Callable[[], Store]") -> None:
        self._url = url
        self._store = store

    def log_stamps(self) -> dict[str, tuple[str, int, int]]:
        """Reader, size and age of every log when it was read."""
        found = self._ask("SELECT log, reader, size, mtime_ns FROM logs")
        if found is None:
            return self._store().log_stamps()
        return {log: (reader, size, at) for log, reader, size, at in found}

    def log_state(self, log: str) -> LogState | None:
        """How far a log was read, or None if it never was."""
        return self._store().log_state(log)

    def sessions_of_log(self, log: str) -> dict[SessionId, tuple[str, bool]]:
        """The sessions that came from a log: source, and whether it is a subagent's."""
        found = self._ask("SELECT id, source, lineage FROM sessions WHERE log = ?", log)
        if found is None:
            return self._store().sessions_of_log(log)
        return {SessionId(id_): (source, kind == "subagent") for id_, source, kind in found}

    def writing(self, *, restores: bool = False) -> "AbstractContextManager[Writing]":
        """A transaction of the store, which is opened for it."""
        return self._store().writing(restores=restores)

    def close(self) -> None:
        """Let go of the connection, if there is one."""
        driver = self.__dict__.pop("_driver", None)
        if driver is not None:
            driver.close()

    def _ask(self, question: str, *values: str) -> list[tuple[Any, ...]] | None:
        """The rows, or None when the store has to be asked instead: it also says in words what is
        wrong with a database.
        """
        try:
            if self._driver is None:
                return None
            return self._driver.execute(question, values).fetchall()
        except sqlite3.Error:
            return None

    @cached_property
    def _driver(self) -> sqlite3.Connection | None:
        return open_bare(self._url)
