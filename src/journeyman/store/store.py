"""One database: opened, migrated, and offered as sessions to read, their verdicts, what was learned
from them, what reviews wrote, confirmations, jobs, and a transaction to write.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import sqlalchemy as sa

from journeyman.records import LogState, SessionId
from journeyman.records.errors import JourneymanError
from journeyman.store.confirmations import Confirmations
from journeyman.store.engine import Repository, connect, explained, migrate
from journeyman.store.episodes import Episodes
from journeyman.store.forgotten import ForgottenRequests
from journeyman.store.jobs import Jobs
from journeyman.store.learned import Learned
from journeyman.store.patterns import Patterns
from journeyman.store.quarantine import Quarantine
from journeyman.store.reviews import Reviews
from journeyman.store.sessions import Sessions, Verdicts
from journeyman.store.tables import logs, sessions
from journeyman.store.templates import Templates
from journeyman.store.usage import Accounts
from journeyman.store.writing import Writing


class Store(Repository):
    """Where sessions are kept. Open it once and share it; `close` it when done. Its tables are
    made or brought up to date, unless one is `only_looking`; `is_ready` says whether they are.
    """

    def __init__(
        self, url: str, *, busy_timeout_s: float = 30.0, only_looking: bool = False
    ) -> None:
        # Who only looks reads most pages once.
        cache_mb = 2 if only_looking else 32
        super().__init__(connect(url, busy_timeout_s=busy_timeout_s, cache_mb=cache_mb))
        try:
            with explained(self._engine.url, "opening the database"):
                self.is_ready = migrate(self._engine, only_look=only_looking)
        except JourneymanError:
            self._engine.dispose()
            raise
        self.sessions = Sessions(self._engine)
        self.accounts = Accounts(self._engine)
        self.verdicts = Verdicts(self._engine)
        self.learned = Learned(self._engine)
        self.episodes = Episodes(self._engine)
        self.patterns = Patterns(self._engine)
        self.templates = Templates(self._engine)
        self.quarantine = Quarantine(self._engine)
        self.forgotten = ForgottenRequests(self._engine)
        self.reviews = Reviews(self._engine)
        self.confirmations = Confirmations(self._engine)
        self.jobs = Jobs(self._engine)

    @property
    def url(self) -> str:
        """The database's address, without its password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def writing(self, *, restores: bool = False) -> Iterator[Writing]:
        """A transaction: all of it is kept when the block ends well, none of it otherwise. One
        at a time on either database. What was deleted stays so, unless this one `restores` it.
        """
        with self._writing("writing sessions") as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263502)"))
            yield Writing(connection, restores=restores)

    def log_stamps(self) -> dict[str, tuple[str, int, int]]:
        """Reader, size and age of every log when it was read."""
        asked = sa.select(logs.c.log, logs.c.reader, logs.c.size, logs.c.mtime_ns)
        found = self._read("looking at logs", asked)
        return {row.log: (row.reader, row.size, row.mtime_ns) for row in found}

    def log_state(self, log: str) -> LogState | None:
        """How far a log was read, or None if it never was."""
        found = self._read("looking at a log", sa.select(logs.c.state).where(logs.c.log == log))
        return msgspec.json.decode(found[0][0], type=LogState) if found else None

    def sessions_of_log(self, log: str) -> dict[SessionId, tuple[str, bool]]:
        """The sessions that came from a log: source, and whether it is a subagent's."""
        columns = sessions.c
        asked = sa.select(columns.id, columns.source, columns.lineage).where(columns.log == log)
        found = self._read("looking at a log", asked)
        return {row.id: (row.source, row.lineage == "subagent") for row in found}

    def faults(self) -> list[str]:
        """What the database itself finds wrong with its file; empty when all is well."""
        if self._engine.dialect.name != "sqlite":
            return []
        with self._reading("checking") as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(5)").scalars().all()
        return [fault for fault in found if fault != "ok"]

    def close(self) -> None:
        """Let go of every connection."""
        self._engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
