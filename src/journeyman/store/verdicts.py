"""Verdicts that were made before, kept so that a session is judged once. Who judges, and when, is
decided above.

They are derived data: read whole, and made anew whenever the session or the rules change. So a
session's verdicts are one value and not a row for each call: a hundred thousand of them are then
read in well under a second, and what cannot be read is simply not known.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import JudgedCall, SessionId
from journeyman.store.engine import explained, writing
from journeyman.store.tables import sessions, verdicts
from journeyman.store.values import inserting

_IDS = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[JudgedCall, ...]).decode


class Verdicts:
    """The verdicts on the calls of stored sessions. They go when their session goes, and are not
    known any more when it changes.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def known(
        self, rules: str, session_ids: Sequence[str] | None = None
    ) -> dict[SessionId, tuple[JudgedCall, ...]]:
        """What these rules said of the sessions as they are now, of all sessions if none are
        named. A session that was never judged so is not in it.
        """
        found: dict[SessionId, tuple[JudgedCall, ...]] = {}
        with explained(self._engine.url, "reading verdicts"), self._engine.connect() as connection:
            for statement in _asked(rules, session_ids):
                rows = connection.execute(statement, execution_options={"yield_per": 200})
                for session_id, written in rows:
                    try:
                        found[SessionId(session_id)] = _decode(written)
                    except ValueError:  # damaged, or with words that this program does not know
                        continue
        return found

    def save(self, rules: str, judged: Iterable[tuple[str, str, Sequence[JudgedCall]]]) -> None:
        """Keep verdicts, each with the session's id and the digest it was judged at, in the place
        of earlier ones. All are kept or none, but for sessions that have changed or gone since.
        """
        # In one order, so that two who save the same sessions at once wait and do not deadlock.
        values = [
            {"this_id": session_id, "digest": digest, "rules": rules, "calls": _encode(calls)}
            for session_id, digest, calls in sorted(judged, key=lambda one: one[0])
        ]
        if not values:
            return
        with writing(self._engine, "keeping verdicts") as connection:
            if connection.dialect.name == "sqlite":
                # Evidence quotes the session. What is replaced here could otherwise stay readable
                # in the file's free pages after the session is deleted.
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            connection.execute(_upsert(connection.dialect.name), values)


def _asked(rules: str, session_ids: Sequence[str] | None) -> Iterator[sa.Select[Any]]:
    """The question, in parts, because databases take only so many values at once."""
    is_current = sa.and_(
        verdicts.c.session_row == sessions.c.row_id, verdicts.c.digest == sessions.c.digest
    )
    wanted = (
        sa.select(sessions.c.id, verdicts.c.calls)
        .join_from(sessions, verdicts, is_current)
        .where(verdicts.c.rules == rules)
    )
    if session_ids is None:
        yield wanted
        return
    for start in range(0, len(session_ids), _IDS):
        yield wanted.where(sessions.c.id.in_(session_ids[start : start + _IDS]))


@cache
def _upsert(dialect_name: str) -> Any:
    """Insert or replace, if the session still is what was judged."""
    insert = inserting(dialect_name)
    given = [
        sa.bindparam(name, type_=verdicts.c[name].type) for name in ("digest", "rules", "calls")
    ]
    judged = (
        sa.select(sessions.c.row_id, *given)
        .where(sessions.c.id == sa.bindparam("this_id"), sessions.c.digest == given[0])
        # A session that is being deleted: wait until it is gone. SQLite has one writer anyway.
        .with_for_update(read=True, key_share=True)
    )
    statement = insert(verdicts).from_select([column.name for column in verdicts.columns], judged)
    replaced = {name: statement.excluded[name] for name in ("digest", "rules", "calls")}
    return statement.on_conflict_do_update(index_elements=["session_row"], set_=replaced)
