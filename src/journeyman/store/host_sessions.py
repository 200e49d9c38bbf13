"""The sessions of hosts: what each started with, and the events that reports on hosts count."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records.host import HostEvent, HostSession
from journeyman.store.engine import Repository
from journeyman.store.rows import dialect_insert, json_text, record_of, storable, values_of
from journeyman.store.tables import host_events, host_sessions

_MAX_AGE_S = 180 * 86_400
"""Events older than this are deleted."""

_PATIENCE_S = 2.0
"""How long a record waits for other writers: a host waits for it."""

_decode_shown = msgspec.json.Decoder(tuple[str, ...]).decode


class HostSessions(Repository):
    """What the sessions of hosts started with, and what happened in them."""

    def find(self, host: str, session_id: str) -> HostSession | None:
        """Return the record of a session, or None if nothing was decided for it yet."""
        columns = host_sessions.c
        query = host_sessions.select().where(
            columns.host == host, columns.session_id == storable(session_id)
        )
        rows = self._read("reading a host's session", query)
        return _session_of(rows[0]) if rows else None

    def add(self, session: HostSession, *, within_s: float = _PATIENCE_S) -> HostSession:
        """Store the record of a session unless it has one, and return the one that it has."""
        values = values_of(session, host_sessions, shown=json_text(session.shown))
        with self._writing("storing a host's session", within_s=within_s) as connection:
            insert = dialect_insert(connection.dialect.name)(host_sessions)
            connection.execute(insert.on_conflict_do_nothing(), values)
        return self.find(session.host, session.session_id) or session

    def save(self, session: HostSession, *, within_s: float = _PATIENCE_S) -> None:
        """Store the record of a session, in the place of an earlier one."""
        values = values_of(session, host_sessions, shown=json_text(session.shown))
        with self._writing("storing a host's session", within_s=within_s) as connection:
            insert = dialect_insert(connection.dialect.name)(host_sessions)
            names = [name for name in values if name not in ("host", "session_id", "at")]
            changed = {name: insert.excluded[name] for name in names}
            statement = insert.on_conflict_do_update(
                index_elements=["host", "session_id"], set_=changed
            )
            connection.execute(statement, values)

    def erase(self, host: str, session_ids: Collection[str]) -> None:
        """Delete the records and the events of some sessions, as if they were never seen."""
        ids = [storable(session_id) for session_id in session_ids]
        with self._writing("deleting sessions of a host", within_s=_PATIENCE_S) as connection:
            for rows in (host_sessions, host_events):
                these = (rows.c.host == host) & rows.c.session_id.in_(ids)
                connection.execute(rows.delete().where(these))

    def named(self, session_id: str) -> list[HostSession]:
        """Return the records of a session, by its id or the beginning of it, in any host."""
        query = host_sessions.select().where(
            host_sessions.c.session_id.startswith(storable(session_id), autoescape=True)
        )
        rows = self._read("reading a host's session", query.order_by(host_sessions.c.at))
        return [_session_of(row) for row in rows]

    def with_reason(self, host: str, reason: str) -> set[str]:
        """Return the sessions of a host about which this was decided."""
        columns = host_sessions.c
        these = (columns.host == host) & (columns.reason == reason)
        query = sa.select(columns.session_id).where(these)
        return {row.session_id for row in self._read("reading sessions of hosts", query)}

    def drop_content(self) -> None:
        """Delete the text of all openings, which may contain what a person wants forgotten."""
        with self._writing("deleting kept openings", erases=True) as connection:
            forgotten = {"state": "cold", "reason": "what it contained was forgotten"}
            statement = host_sessions.update().where(host_sessions.c.content != "[]")
            connection.execute(statement.values(content="[]", shown="[]", **forgotten))
        self._erase_log()

    def add_event(self, event: HostEvent, *, within_s: float | None = None) -> None:
        """Store an event."""
        with self._writing("storing a host's event", within_s=within_s) as connection:
            connection.execute(host_events.insert(), values_of(event, host_events))

    def events(self, *, since: float = 0.0) -> Sequence[HostEvent]:
        """Return the events from a moment on, oldest first."""
        query = host_events.select().where(host_events.c.at >= since).order_by(host_events.c.row_id)
        return [record_of(HostEvent, row) for row in self._read("reading events of hosts", query)]

    def delete_old_events(self, now: float) -> None:
        """Delete events that no report needs any more."""
        with self._writing("deleting old events") as connection:
            connection.execute(host_events.delete().where(host_events.c.at < now - _MAX_AGE_S))


def _session_of(row: sa.Row[Any]) -> HostSession:
    return record_of(HostSession, row, shown=_decode_shown(row.shown))
