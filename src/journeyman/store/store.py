"""One database: opens it, and gives access to sessions, their verdicts, what was
learned from them, reviews, confirmations, jobs and sessions of hosts, and to transactions that
write sessions.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import sqlalchemy as sa

from journeyman.records import LogState, SessionId
from journeyman.records.errors import JourneymanError
from journeyman.store.confirmations import Confirmations
from journeyman.store.engine import Repository, connect, translate_errors
from journeyman.store.episodes import Episodes
from journeyman.store.facts import FactDecisions
from journeyman.store.host_sessions import HostSessions
from journeyman.store.jobs import Jobs
from journeyman.store.mining_state import MiningState
from journeyman.store.removals import ForgottenRequests
from journeyman.store.reviews import Reviews
from journeyman.store.schema import prepare_schema
from journeyman.store.session_writer import SessionWriter
from journeyman.store.sessions import Sessions, Verdicts
from journeyman.store.tables import logs, sessions
from journeyman.store.templates import Templates
from journeyman.store.usage_store import UsageStore


class Store(Repository):
    """Everything that Journeyman stores. Open it once and share it; `close` it when done. Its
    tables are created, unless the store is `only_looking`; `is_ready` says whether they
    are current. `clock` dates decisions.
    """

    def __init__(
        self,
        url: str,
        *,
        busy_timeout_s: float = 30.0,
        only_looking: bool = False,
    ) -> None:
        super().__init__(connect(url, busy_timeout_s=busy_timeout_s))
        try:
            with translate_errors(self._engine.url, "opening the database"):
                self.is_ready = prepare_schema(self._engine, only_look=only_looking)
        except JourneymanError:
            self._engine.dispose()
            raise
        self.sessions = Sessions(self._engine)
        self.usage = UsageStore(self._engine)
        self.verdicts = Verdicts(self._engine)
        self.learned = MiningState(self._engine)
        self.episodes = Episodes(self._engine)
        self.facts = FactDecisions(self._engine)
        self.templates = Templates(self._engine)
        self.forgotten = ForgottenRequests(self._engine)
        self.reviews = Reviews(self._engine)
        self.confirmations = Confirmations(self._engine)
        self.jobs = Jobs(self._engine)
        self.host_sessions = HostSessions(self._engine)

    @property
    def url(self) -> str:
        """The URL of the database, without its password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def writing(self, *, restores: bool = False) -> Iterator[SessionWriter]:
        """Open a transaction: everything is kept if the block succeeds, nothing otherwise. Only
        one is open at a time, on either database. Deleted sessions stay deleted, unless this
        transaction `restores` them.
        """
        with self._writing("writing sessions") as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263502)"))
            yield SessionWriter(connection, restores=restores)

    def log_stamps(self) -> dict[str, tuple[str, int, int]]:
        """Return the reader, size and modification time of every log when it was read."""
        query = sa.select(logs.c.log, logs.c.reader, logs.c.size, logs.c.mtime_ns)
        rows = self._read("reading the states of logs", query)
        return {row.log: (row.reader, row.size, row.mtime_ns) for row in rows}

    def log_state(self, log: str) -> LogState | None:
        """Return how far a log was read, or None if it never was."""
        rows = self._read(
            "reading the state of a log", sa.select(logs.c.state).where(logs.c.log == log)
        )
        return msgspec.json.decode(rows[0][0], type=LogState) if rows else None

    def sessions_of_log(self, log: str) -> dict[SessionId, tuple[str, bool]]:
        """Return the source of each session of a log, and whether it belongs to a subagent."""
        columns = sessions.c
        query = sa.select(columns.id, columns.source, columns.lineage).where(columns.log == log)
        rows = self._read("reading the sessions of a log", query)
        return {row.id: (row.source, row.lineage == "subagent") for row in rows}

    def faults(self) -> list[str]:
        """Return what the database itself finds wrong with its file; empty if nothing is."""
        if self._engine.dialect.name != "sqlite":
            return []
        with self._reading("checking the database") as connection:
            faults = connection.exec_driver_sql("PRAGMA quick_check(5)").scalars().all()
        return [fault for fault in faults if fault != "ok"]

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
