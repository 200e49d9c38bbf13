"""The usage of sessions, counted as it happens: each answer of a model is identified by its key, so
that counting it again changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Unpack

import sqlalchemy as sa

from journeyman.records import Tokens, Usage
from journeyman.records.errors import UnknownSession
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    dialect_insert,
    storable,
    upsert,
    usage_values,
)
from journeyman.store.session_filters import SessionFilters, conditions
from journeyman.store.tables import sessions, usage

_COUNTS = Tokens.__struct_fields__
_USED: sa.Select[Any] = (
    sa.select(
        *usage.c["session_row", "model", "task", "api_calls", "cost_origin", *_COUNTS],
        sa.func.coalesce(usage.c.at, sessions.c.started_at).label("at"),
        *(sessions.c.id.label("session"), *sessions.c["source", "platform", "project"]),
    )
    .join(sessions)
    .where(~usage.c.copied)
)


class UsageStore(Repository):
    """The usage of the stored sessions (`store.usage`). Counting must never keep an answer from
    a person: an invalid count is treated as unknown. Only a missing session (UnknownSession) or a
    failing database is an error.
    """

    def add(self, session_id: str, increment: Usage) -> None:
        """Count one answer of a model. Repeating a key replaces its numbers."""
        with self._writing("counting usage") as connection:
            row = _locked(connection, session_id)
            insert = dialect_insert(connection.dialect.name)(usage)
            statement = upsert(insert, "session_row", "key")
            connection.execute(statement, usage_values(row, increment))

    def used(self, **filters: Unpack[SessionFilters]) -> Iterator[Any]:
        """Yield the usage of the selected sessions, each row with the `session_row`, `session`,
        `source`, `platform` and `project` of its session. Usage without its own time has the start
        time of its session.
        """
        with self._reading("reading usage") as connection:
            query = _USED.where(*conditions(**filters))
            yield from connection.execute(query, execution_options={"yield_per": 1000})

    def used_by(self, session_ids: Iterable[str]) -> Sequence[Any]:
        """Return the usage of these sessions, in the rows of `used`."""
        return self._read_in("reading usage", _USED, sessions.c.id, session_ids)

    def session_count(self, **filters: Unpack[SessionFilters]) -> int:
        """Return the number of selected sessions, with usage or without."""
        query = sa.select(sa.func.count()).select_from(sessions).where(*conditions(**filters))
        with self._reading("counting sessions") as connection:
            return int(connection.execute(query).scalar_one())


def _locked(connection: sa.Connection, session_id: str) -> int:
    """Lock a session against other counting until this transaction ends, and return its row: SQLite
    has one writer, PostgreSQL locks the row. Messages can still be added to the session meanwhile.
    """
    query = sa.select(sessions.c.row_id).where(sessions.c.id == storable(session_id))
    row = connection.execute(query.with_for_update(key_share=True)).scalar_one_or_none()
    if row is None:
        raise UnknownSession(
            f"Usage cannot be counted for session {session_id!r}: it is not stored. "
            "Record the session first."
        )
    return int(row)
