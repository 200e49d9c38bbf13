"""How often patterns were seen, and in which sessions: counted, and counted again when a session
changes or goes. What a pattern says is `keeping`'s business.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import Pattern
from journeyman.store.tables import mined, patterns, revisions, sightings
from journeyman.store.values import json_text, parts

_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode

Key = tuple[int, int]
"""The rows of a pattern and of a session."""

_this_pattern: sa.BindParameter[int] = sa.bindparam("this_pattern")
_this_session: sa.BindParameter[int] = sa.bindparam("this_session")
_DELETE = sightings.delete().where(
    sightings.c.pattern_row == _this_pattern, sightings.c.session_row == _this_session
)
_SET_COUNTS = patterns.update().where(patterns.c.row_id == _this_pattern)

_LOCK = sa.text("SELECT pg_advisory_xact_lock(7263503)")


class Seen(NamedTuple):
    """How often a pattern was seen, in one session or in several; `models` is JSON."""

    times: int
    first_seen: float | None
    last_seen: float | None
    models: str

    @classmethod
    def of(cls, pattern: Pattern) -> "Seen":
        return cls(
            pattern.times,
            pattern.first_seen,
            pattern.last_seen,
            json_text(sorted(set(pattern.models))),
        )


def sightings_in(connection: sa.Connection, session_rows: Sequence[int]) -> dict[Key, Seen]:
    """What these sessions have been seen to have."""
    found: dict[Key, Seen] = {}
    for some in parts(session_rows):
        asked = sightings.select().where(sightings.c.session_row.in_(some))
        for row in connection.execute(asked):
            key = (row.pattern_row, row.session_row)
            found[key] = Seen(row.times, row.first_seen, row.last_seen, row.models)
    return found


def replace(
    connection: sa.Connection, before: dict[Key, Seen], after: dict[Key, Seen]
) -> tuple[set[int], dict[int, list[Seen]]]:
    """Bring sightings from what they were to what they are. The rows of the patterns that lost
    any, and what each pattern gained.
    """
    lost = [key for key, seen in before.items() if after.get(key) != seen]
    gained = [(key, seen) for key, seen in after.items() if before.get(key) != seen]
    if lost:
        keys = [{"this_pattern": one, "this_session": other} for one, other in lost]
        connection.execute(_DELETE, keys)
    if gained:
        values = [
            {"pattern_row": pattern, "session_row": session, **seen._asdict()}
            for (pattern, session), seen in gained
        ]
        connection.execute(sightings.insert(), values)
    by_pattern: defaultdict[int, list[Seen]] = defaultdict(list)
    for (pattern, _), seen in gained:
        by_pattern[pattern].append(seen)
    return {pattern for pattern, _ in lost}, by_pattern


def add_counts(connection: sa.Connection, gained: dict[int, list[Seen]]) -> None:
    """Add what patterns gained to what was counted: a pattern that thousands of sessions have is
    then not counted through for each of them.
    """
    columns = patterns.c
    asked = sa.select(
        columns.row_id,
        columns.times,
        columns.session_count,
        columns.first_seen,
        columns.last_seen,
        columns.models,
    )
    changes = []
    for some in parts(list(gained)):
        for row in connection.execute(asked.where(columns.row_id.in_(some))):
            seen = gained[row.row_id]
            known = Seen(row.times, row.first_seen, row.last_seen, row.models)
            counted = _together([known, *seen])
            changes.append(_counts(row.row_id, counted, row.session_count + len(seen)))
    if changes:
        connection.execute(_SET_COUNTS, changes)


def recount(connection: sa.Connection, pattern_rows: Iterable[int]) -> None:
    """Count again how often these patterns were seen."""
    columns = sightings.c
    # By models too: their names can only be put together here, and there are few sets of them.
    asked = sa.select(
        columns.pattern_row,
        columns.models,
        sa.func.sum(columns.times).label("times"),
        sa.func.count().label("sessions"),
        sa.func.min(columns.first_seen).label("first_seen"),
        sa.func.max(columns.last_seen).label("last_seen"),
    ).group_by(columns.pattern_row, columns.models)
    changes = []
    for some in parts(sorted(pattern_rows)):
        found: defaultdict[int, list[sa.Row[Any]]] = defaultdict(list)
        for row in connection.execute(asked.where(columns.pattern_row.in_(some))):
            found[row.pattern_row].append(row)
        for pattern, rows in found.items():
            seen = [Seen(int(one.times), one.first_seen, one.last_seen, one.models) for one in rows]
            sessions = sum(int(one.sessions) for one in rows)
            changes.append(_counts(pattern, _together(seen), sessions))
    if changes:
        connection.execute(_SET_COUNTS, changes)


def mine_again(connection: sa.Connection, which: sa.ColumnElement[bool]) -> None:
    """Mark the sessions that had any of these patterns as not mined."""
    holding = (
        sa.select(sightings.c.session_row)
        .join(patterns, patterns.c.row_id == sightings.c.pattern_row)
        .where(which)
    )
    connection.execute(mined.delete().where(mined.c.session_row.in_(holding)))


def bump(connection: sa.Connection) -> None:
    """Say that patterns or episodes have changed."""
    connection.execute(
        revisions.update()
        .where(revisions.c.name == "patterns")
        .values(number=revisions.c.number + 1)
    )


def wait_for_learners(connection: sa.Connection) -> None:
    """One at a time changes what was learned, also where sessions are deleted; SQLite has one
    writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def _counts(pattern_row: int, seen: Seen, sessions: int) -> dict[str, Any]:
    return {"this_pattern": pattern_row, "session_count": sessions, **seen._asdict()}


def _together(seen: Sequence[Seen]) -> Seen:
    models = {one.models for one in seen}
    names = {name for one in models for name in _decode_names(one)}
    return Seen(
        sum(one.times for one in seen),
        min((one.first_seen for one in seen if one.first_seen is not None), default=None),
        max((one.last_seen for one in seen if one.last_seen is not None), default=None),
        models.pop() if len(models) == 1 else json_text(sorted(names)),
    )
