"""What sessions used, counted as it happens.

An increment is one answer, known by its key: counting it again changes nothing. A total is all that
a session's task used of a model so far: it takes the place of everything that was counted for them
before, also where it says nothing itself, because the numbers of one report belong together.
"""

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any, Unpack

import sqlalchemy as sa

from journeyman.records import Tokens, Usage
from journeyman.records.errors import UnknownSession
from journeyman.records.usage import IN_TOTAL, checked
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    inserting,
    json_text,
    or_replace,
    storable,
    usage_values,
)
from journeyman.store.session_filters import Chosen, conditions
from journeyman.store.tables import sessions, usage

logger = logging.getLogger(__name__)

_COUNTS = Tokens.__struct_fields__


class Accounts(Repository):
    """What the stored sessions used (`store.accounts`). Counting must never be what keeps an
    answer from a person: what is no count is taken as unknown and logged, and only a session that
    is not there (UnknownSession) or a database that does not work is an error.
    """

    def add(self, session_id: str, increment: Usage) -> None:
        """Count one answer of a model. The same key again with the same numbers changes nothing,
        with others it replaces them; one that a total has taken in stays in the total.
        """
        counted = _checked(session_id, increment)
        with self._writing("counting usage") as connection:
            row = _locked(connection, session_id)
            connection.execute(_put(connection.dialect.name), usage_values(row, counted))

    def set_total(self, session_id: str, total: Usage) -> None:
        """Set what a session's task used of a model so far, in the place of all that was counted
        for these three; what it leaves open is not known. There is one total for them, whatever
        its key. Increments that come later are added to it.
        """
        values = usage_values(0, _checked(session_id, total))
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

    def used(self, **chosen: Unpack[Chosen]) -> Iterator[Any]:
        """What the sessions that were chosen used, with the `session_row`, `source` and `project`
        of each. Usage without a time of its own has that of its session's start.
        """
        columns = usage.c["session_row", "model", "task", "api_calls", "cost_origin", *_COUNTS]
        at = sa.func.coalesce(usage.c.at, sessions.c.started_at).label("at")
        asked: sa.Select[Any] = (
            sa.select(*columns, at, *sessions.c["source", "project"])
            .join(sessions)
            .where(usage.c.cost_origin != IN_TOTAL, *conditions(**chosen))
        )
        with self._reading("reading usage") as one:
            yield from one.execute(asked, execution_options={"yield_per": 1000})

    def session_count(self, **chosen: Unpack[Chosen]) -> int:
        """How many sessions were chosen, with usage or without."""
        asked = sa.select(sa.func.count()).select_from(sessions).where(*conditions(**chosen))
        with self._reading("counting sessions") as one:
            return int(one.execute(asked).scalar_one())


def _checked(session_id: str, given: Usage) -> Usage:
    counted, wrong = checked(given)
    if wrong:
        logger.info("Usage of session %s: no count in %s.", session_id, ", ".join(wrong))
    return counted


def _locked(connection: sa.Connection, session_id: str) -> int:
    """The session's row, where nobody else counts until this transaction ends: SQLite has one
    writer, elsewhere the row is locked. Messages can still be added to the session meanwhile.
    """
    asked = sa.select(sessions.c.row_id).where(sessions.c.id == storable(session_id))
    row = connection.execute(asked.with_for_update(key_share=True)).scalar_one_or_none()
    if row is None:
        raise UnknownSession(
            f"Usage was to be counted for session {session_id!r}, which is not stored. "
            "Record the session first."
        )
    return int(row)


@cache
def _put(dialect_name: str, *, is_total: bool = False) -> Any:
    """Insert, or replace what has the same key, unless a total has taken that in."""
    insert = inserting(dialect_name)(usage)
    new = insert.excluded
    taken_in = sa.and_(
        usage.c.cost_origin == IN_TOTAL, usage.c.model == new.model, usage.c.task == new.task
    )
    where = None if is_total else sa.not_(taken_in)
    return or_replace(insert, "session_row", "key", where=where)
