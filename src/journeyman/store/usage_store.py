"""The usage of sessions, counted as it happens.

An increment is one answer, identified by its key: counting it again changes nothing. A total is
everything that a session's task has used of a model so far: it replaces everything counted for them
before, including fields it leaves out, because the numbers of one report belong together.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Unpack

import sqlalchemy as sa

from journeyman.records import Tokens, Usage
from journeyman.records.errors import UnknownSession
from journeyman.records.usage import IN_TOTAL
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    dialect_insert,
    json_text,
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
    .where(usage.c.cost_origin != IN_TOTAL, ~usage.c.copied)
)


class UsageStore(Repository):
    """The usage of the stored sessions (`store.usage`). Counting must never keep an answer from
    a person: an invalid count is treated as unknown. Only a missing session (UnknownSession) or a
    failing database is an error.
    """

    def add(self, session_id: str, increment: Usage) -> None:
        """Count one answer of a model. Repeating a key replaces its numbers; if a total includes
        that key already, nothing changes.
        """
        with self._writing("counting usage") as connection:
            row = _locked(connection, session_id)
            connection.execute(_put(connection.dialect.name), usage_values(row, increment))

    def set_total(self, session_id: str, total: Usage) -> None:
        """Set what a session's task has used of a model so far. This replaces everything counted
        for the three; fields that the total leaves out become unknown. The three have one total,
        whatever its key. Later increments are added to it.
        """
        values = usage_values(0, total)
        model, task = values["model"], values["task"]
        values["key"] = "total:" + json_text([model, task])
        with self._writing("counting usage") as connection:
            row = values["session_row"] = _locked(connection, session_id)
            connection.execute(
                usage.update()
                .where(usage.c.session_row == row, usage.c.model == model, usage.c.task == task)
                .values(api_calls=0, cost_origin=IN_TOTAL, **dict.fromkeys(_COUNTS))
            )
            connection.execute(_put(connection.dialect.name, is_total=True), values)

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


@cache
def _put(dialect_name: str, *, is_total: bool = False) -> Any:
    """An insert that replaces a row with the same key, unless a total includes that row."""
    insert = dialect_insert(dialect_name)(usage)
    new = insert.excluded
    taken_in = sa.and_(
        usage.c.cost_origin == IN_TOTAL, usage.c.model == new.model, usage.c.task == new.task
    )
    where = None if is_total else sa.not_(taken_in)
    return upsert(insert, "session_row", "key", where=where)
