"""The stored patterns: reading and counting them, recounting their sightings when sessions change,
and removing what sessions taught when they are deleted or forgotten.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Pattern, SessionId
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    decode_names,
    decode_steps,
    delete_in,
    json_text,
    record_of,
    select_in,
)
from journeyman.store.tables import (
    episodes,
    kept_out,
    mined,
    patterns,
    quarantine_decisions,
    revisions,
    sessions,
    sightings,
)

_PATTERN: sa.Select[Any] = sa.select(
    patterns,
    sessions.c.id.label("session"),
    sessions.c.source,
).join(sessions, sessions.c.row_id == patterns.c.origin_row)


class Patterns(Repository):
    """The patterns of a store."""

    def revision(self) -> int:
        """Return a number that grows whenever a pattern or an episode is added, removed or
        changed.
        """
        query = sa.select(revisions.c.number).where(revisions.c.name == "patterns")
        with self._reading("looking at patterns") as connection:
            return int(connection.execute(query).scalar_one_or_none() or 0)

    def get(self, pattern_id: str) -> Pattern | None:
        """Return the pattern with this id, if any, with all sessions that it was seen in."""
        with self._reading("reading a pattern") as connection:
            row = connection.execute(_PATTERN.where(patterns.c.id == pattern_id)).one_or_none()
            if row is None:
                return None
            seen_in = connection.execute(
                sa.select(sightings.c.first_seen, sessions.c.id)
                .join(sessions, sessions.c.row_id == sightings.c.session_row)
                .where(sightings.c.pattern_row == row.row_id)
            ).all()
        # Sorted here: the databases order NULL and capital letters differently.
        seen_in = sorted(seen_in, key=lambda row: (row.first_seen is None, row.first_seen, row.id))
        ids = tuple(SessionId(row.id) for row in seen_in)
        return msgspec.structs.replace(_pattern(row), sessions=ids)

    def of_sessions(self, session_ids: Sequence[str]) -> list[Pattern]:
        """Return the patterns seen in any of these sessions, in the order they were stored."""
        query = sa.select(sightings.c.pattern_row).join(sessions)
        seen = self._read_in("reading patterns", query, sessions.c.id, session_ids)
        ids = sorted({row.pattern_row for row in seen})
        rows = self._read_in("reading patterns", _PATTERN, patterns.c.row_id, ids)
        return [_pattern(row) for row in sorted(rows, key=lambda row: int(row.row_id))]

    def list(self, *, limit: int | None = None) -> Iterator[Pattern]:
        """Yield the patterns that may be used, the most frequent first."""
        query = (
            _PATTERN.where(patterns.c.quarantined == "")
            .order_by(patterns.c.session_count.desc(), patterns.c.times.desc(), patterns.c.row_id)
            .limit(limit)
        )
        with self._reading("listing patterns") as connection:
            yield from map(_pattern, connection.execute(query))

    def counts(self) -> dict[str, int]:
        """Return the number of patterns of each kind, and under `quarantined` the number of
        exclusions that no person has decided on.
        """
        usable = sa.select(patterns.c.kind, sa.func.count()).where(patterns.c.quarantined == "")
        undecided = kept_out.c.key.not_in(sa.select(quarantine_decisions.c.key))
        excluded = sa.select(sa.func.count(kept_out.c.key.distinct())).where(undecided)
        with self._reading("counting what was learned") as connection:
            kinds = {row[0]: row[1] for row in connection.execute(usable.group_by(patterns.c.kind))}
            count = connection.execute(excluded).scalar_one()
        return kinds | {"quarantined": count} if count else kinds

    def reasons(self) -> dict[str, int]:
        """Return the number of mined sessions by the reason why they teach nothing, under "" those
        that teach.
        """
        counted = sa.func.count().label("sessions")
        query = sa.select(mined.c.reason, counted).group_by(mined.c.reason)
        rows = self._read("counting what was learned", query)
        return {row.reason: row.sessions for row in rows}


def _pattern(row: sa.Row[Any]) -> Pattern:
    return record_of(
        Pattern,
        row,
        steps=decode_steps(row.steps),
        sessions=(SessionId(row.session),),
        models=decode_names(row.models),
    )


_SET_COUNTS = patterns.update().where(patterns.c.row_id == sa.bindparam("this_pattern"))
# Grouped by models too: their names can only be merged here, and there are few sets of them.
_COUNTED: sa.Select[Any] = sa.select(
    sightings.c.pattern_row,
    sightings.c.models,
    sa.func.sum(sightings.c.times).label("times"),
    sa.func.count().label("sessions"),
    sa.func.min(sightings.c.first_seen).label("first_seen"),
    sa.func.max(sightings.c.last_seen).label("last_seen"),
).group_by(sightings.c.pattern_row, sightings.c.models)


def recount(connection: sa.Connection, pattern_rows: Iterable[int]) -> None:
    """Update the counts of these patterns from their sightings."""
    by_pattern: defaultdict[int, list[sa.Row[Any]]] = defaultdict(list)
    for row in select_in(connection, _COUNTED, sightings.c.pattern_row, sorted(pattern_rows)):
        by_pattern[row.pattern_row].append(row)
    if by_pattern:
        connection.execute(_SET_COUNTS, [_counts(*group) for group in by_pattern.items()])


def _counts(pattern_row: int, rows: Sequence[sa.Row[Any]]) -> dict[str, Any]:
    first = [row.first_seen for row in rows if row.first_seen is not None]
    last = [row.last_seen for row in rows if row.last_seen is not None]
    names = {name for row in rows for name in decode_names(row.models)}
    return {
        "this_pattern": pattern_row,
        "times": sum(int(row.times) for row in rows),
        "session_count": sum(row.sessions for row in rows),
        "first_seen": min(first, default=None),
        "last_seen": max(last, default=None),
        "models": json_text(sorted(names)),
    }


def pattern_rows_of(connection: sa.Connection, session_rows: Collection[int]) -> set[int]:
    """Return the row ids of the patterns seen in these sessions."""
    query = sa.select(sightings.c.pattern_row)
    return {row[0] for row in select_in(connection, query, sightings.c.session_row, session_rows)}


def remove_learned(
    connection: sa.Connection, session_rows: Collection[int], pattern_rows: Iterable[int] = ()
) -> None:
    """Remove everything that these sessions taught, and these patterns, whichever sessions have
    them. Other sessions with a removed pattern are mined again, so that their version is shown.
    """
    seen, gone = pattern_rows_of(connection, session_rows), set(pattern_rows)
    shown = sa.select(patterns.c.row_id)
    gone |= {row[0] for row in select_in(connection, shown, patterns.c.origin_row, session_rows)}
    for table in (episodes, kept_out, sightings):
        delete_in(connection, table.c.session_row, session_rows)
    session_query = sa.select(sightings.c.session_row).distinct()
    others = [row[0] for row in select_in(connection, session_query, sightings.c.pattern_row, gone)]
    delete_in(connection, mined.c.session_row, others)
    delete_in(connection, patterns.c.row_id, gone)
    recount(connection, seen - gone)
    bump_revision(connection)


def bump_revision(connection: sa.Connection) -> None:
    """Record that patterns or episodes have changed."""
    this = revisions.c.name == "patterns"
    connection.execute(revisions.update().where(this).values(number=revisions.c.number + 1))


def wait_for_learners(connection: sa.Connection) -> None:
    """Wait until no other transaction changes what was learned, which deleting sessions also does.
    SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263505)"))
