"""The stored patterns. Each session has its own sighting of a pattern; equal patterns are merged
when they are read, and shown as in the earliest session, so that the order of learning does not
matter.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import Pattern, SessionId
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    batches,
    decode_names,
    decode_steps,
    json_text,
    record_of,
    select_in,
    values_of,
)
from journeyman.store.tables import (
    episodes,
    kept_out,
    mined,
    patterns,
    quarantine_decisions,
    revisions,
    sessions,
)

_SIGHTINGS: sa.Select[Any] = sa.select(
    patterns, sessions.c.id.label("session"), sessions.c.source
).join(sessions)


class Patterns(Repository):
    """The patterns of a store."""

    def revision(self) -> int:
        """Return a number that grows whenever a pattern or an episode is added, removed or
        changed.
        """
        query = sa.select(revisions.c.number).where(revisions.c.name == "patterns")
        return int(self._read("looking at patterns", query)[0][0])

    def of_sessions(self, session_ids: Sequence[str]) -> list[Pattern]:
        """Return the patterns seen in any of these sessions, each with all its sightings."""
        query = sa.select(patterns.c.id).join(sessions).distinct()
        with self._reading("reading patterns") as connection:
            ids = sorted(
                {row.id for row in select_in(connection, query, sessions.c.id, session_ids)}
            )
            return list(_merged(connection, ids))

    def list(self, *, limit: int | None = None) -> Iterator[Pattern]:
        """Yield the patterns that may be used, the most frequent first."""
        query = (
            sa.select(patterns.c.id)
            .where(patterns.c.quarantined == "")
            .group_by(patterns.c.id)
            .order_by(
                sa.func.count().desc(),
                sa.func.sum(patterns.c.times).desc(),
                sa.func.min(patterns.c.row_id),
            )
            .limit(limit)
        )
        with self._reading("listing patterns") as connection:
            yield from _merged(connection, connection.execute(query).scalars().all())

    def counts(self) -> dict[str, int]:
        """Return the number of patterns of each kind, and under `quarantined` the number of
        exclusions that no person has decided on.
        """
        usable = sa.select(patterns.c.kind, sa.func.count(patterns.c.id.distinct())).where(
            patterns.c.quarantined == ""
        )
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


def _merged(connection: sa.Connection, ids: Sequence[str]) -> Iterator[Pattern]:
    """Yield the patterns with these ids, in their order, each naming only the session shown."""
    for batch in batches(ids):
        stored = connection.execute(_SIGHTINGS.where(patterns.c.id.in_(batch)))
        merged: dict[str, Pattern] = {
            pattern.id: pattern for pattern in merged_by_id(map(_pattern, stored))
        }
        for pattern in (merged[id_] for id_ in batch if id_ in merged):
            yield msgspec.structs.replace(pattern, sessions=pattern.sessions[:1])


def _pattern(row: sa.Row[Any]) -> Pattern:
    return record_of(
        Pattern,
        row,
        steps=decode_steps(row.steps),
        session_count=1,
        sessions=(SessionId(row.session),),
        models=decode_names(row.models),
    )


def pattern_values(session_row: int, pattern: Pattern) -> dict[str, Any]:
    """Return the column values of a pattern as one session has it."""
    return values_of(
        pattern,
        patterns,
        session_row=session_row,
        steps=json_text(pattern.steps),
        models=json_text(sorted(set(pattern.models))),
    )


def merged_by_id(sightings: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Return each pattern once, with all its sightings; the earliest one is shown."""
    by_id: dict[str, list[Pattern]] = {}
    for pattern in sightings:
        by_id.setdefault(pattern.id, []).append(pattern)
    return tuple(_merge(same) if len(same) > 1 else same[0] for same in by_id.values())


def _merge(same: Sequence[Pattern]) -> Pattern:
    ordered = sorted(same, key=lambda sighting: sighting.age)
    names = tuple(dict.fromkeys(id_ for sighting in ordered for id_ in sighting.sessions))
    all_named = all(sighting.session_count == len(sighting.sessions) for sighting in ordered)
    first = [sighting.first_seen for sighting in ordered if sighting.first_seen is not None]
    last = [sighting.last_seen for sighting in ordered if sighting.last_seen is not None]
    return msgspec.structs.replace(
        ordered[0],
        times=sum(sighting.times for sighting in ordered),
        session_count=len(names) if all_named else sum(one.session_count for one in ordered),
        sessions=names,
        models=tuple(sorted({model for sighting in ordered for model in sighting.models})),
        first_seen=min(first, default=None),
        last_seen=max(last, default=None),
        quarantined=next((one.quarantined for one in ordered if one.quarantined), ""),
    )


def remove_learned(connection: sa.Connection, session_rows: Collection[int]) -> Counter[str]:
    """Remove everything that these sessions taught; return how many rows there were by table."""
    removed: Counter[str] = Counter()
    for table in (episodes, kept_out, patterns):
        for batch in batches(list(session_rows)):
            statement = table.delete().where(table.c.session_row.in_(batch))
            removed[table.name] += connection.execute(statement).rowcount
    bump_revision(connection)
    return removed


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
