"""What sessions used, counted as it happens and added up by the database. What it cost where
nobody recorded a cost, and how days are named, is decided above.

There are two ways to count, and they can be mixed. An increment is one answer, known by its key:
counting it again changes nothing. A total is all that a session's task used of a model so far: it
takes the place of everything that was counted for them before, column by column, also where it
says nothing itself. Numbers of one report belong together: the tokens of a total beside a cost of
increments, or its input beside their cache reads, would add up to something that never was.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Unpack

import sqlalchemy as sa

from journeyman.records import Tokens, Usage
from journeyman.records.errors import UnknownSession
from journeyman.records.usage import IN_TOTAL, UsageBy, checked
from journeyman.store import rows
from journeyman.store.choosing import Chosen
from journeyman.store.engine import explained, writing
from journeyman.store.tables import sessions, usage
from journeyman.store.usage_sums import Shift, UsageSums, add_up
from journeyman.store.values import inserting, json_text

logger = logging.getLogger(__name__)

_COUNTS = Tokens.__struct_fields__


class Accounts:
    """What the stored sessions used (`store.accounts`). Counting must never be what keeps an
    answer from a person: what is no count is taken as unknown and logged, and only a session that
    is not there (UnknownSession) or a database that does not work is an error.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def add(self, session_id: str, increment: Usage) -> None:
        """Count one answer of a model. The same key again with the same numbers changes nothing,
        with others it replaces them; one that a total has taken in stays in the total.
        """
        counted = _checked(session_id, increment)
        with writing(self._engine, "counting usage") as connection:
            row = _locked(connection, session_id)
            connection.execute(_put(connection.dialect.name), _values(row, counted))

    def set_total(self, session_id: str, total: Usage) -> None:
        """Set what a session's task used of a model so far, in the place of all that was counted
        for these three; what it leaves open is not known. There is one total for them, whatever
        its key. Increments that come later are added to it.
        """
        values = _values(0, _checked(session_id, total))
        model, task = values["model"], values["task"]
        values["key"] = "total:" + json_text([model, task])
        with writing(self._engine, "counting usage") as connection:
            row = values["session_row"] = _locked(connection, session_id)
            connection.execute(
                usage.update()
                .where(usage.c.session_row == row, usage.c.model == model, usage.c.task == task)
                .values(api_calls=0, cost_origin=IN_TOTAL, **dict.fromkeys(_COUNTS))
            )
            connection.execute(_put(connection.dialect.name, is_total=True), values)

    def sums(
        self,
        by: UsageBy,
        shifts: Callable[[float, float], Sequence[Shift]],
        **chosen: Unpack[Chosen],
    ) -> UsageSums:
        """Usage added up by something, for the sessions that were chosen. `shifts` tells, for the
        span of time it is asked about, when local time changed; days are counted from 1970-01-01.
        Usage without a time of its own has that of its session's start.
        """
        with (
            explained(self._engine.url, "adding up usage"),
            self._engine.connect() as connection,
        ):
            return add_up(connection, by, shifts, **chosen)


def _checked(session_id: str, given: Usage) -> Usage:
    counted, wrong = checked(given)
    if wrong:
        logger.info("Usage of session %s: no count in %s.", session_id, ", ".join(wrong))
    return counted


def _locked(connection: sa.Connection, session_id: str) -> int:
    """The session's row, where nobody else counts until this transaction ends: SQLite has one
    writer, elsewhere the row is locked. Messages can still be added to the session meanwhile.
    """
    asked = sa.select(sessions.c.row_id).where(sessions.c.id == rows.storable(session_id))
    row = connection.execute(asked.with_for_update(key_share=True)).scalar_one_or_none()
    if row is None:
        raise UnknownSession(
            f"Usage was to be counted for session {session_id!r}, which is not stored. "
            "Record the session first."
        )
    return int(row)


def _values(session_row: int, counted: Usage) -> dict[str, Any]:
    names = [column.name for column in usage.columns]
    return dict(zip(names, rows.usage_values(session_row, counted), strict=True))


@cache
def _put(dialect_name: str, *, is_total: bool = False) -> Any:
    """Insert, or replace what has the same key, unless a total has taken that in."""
    insert = inserting(dialect_name)(usage)
    new = insert.excluded
    others = [column.name for column in usage.columns if not column.primary_key]
    taken_in = sa.and_(
        usage.c.cost_origin == IN_TOTAL, usage.c.model == new.model, usage.c.task == new.task
    )
    return insert.on_conflict_do_update(
        index_elements=["session_row", "key"],
        set_={name: new[name] for name in others},
        where=None if is_total else sa.not_(taken_in),
    )
