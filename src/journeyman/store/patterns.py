"""Patterns: found by id, listed and counted; and which sessions had them, counted again when
sessions change, and taken out with all else that they taught when they are deleted or forgotten.
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
        """A number that grows whenever a pattern or an episode comes, goes or changes."""
        asked = sa.select(revisions.c.number).where(revisions.c.name == "patterns")
        with self._reading("looking at patterns") as one:
            return int(one.execute(asked).scalar_one_or_none() or 0)

    def get(self, pattern_id: str) -> Pattern | None:
        """The pattern with this id, if there is one, with all sessions that it was seen in."""
        with self._reading("reading a pattern") as one:
            row = one.execute(_PATTERN.where(patterns.c.id == pattern_id)).one_or_none()
            if row is None:
                return None
            seen = one.execute(
                sa.select(sightings.c.first_seen, sessions.c.id)
                .join(sessions, sessions.c.row_id == sightings.c.session_row)
                .where(sightings.c.pattern_row == row.row_id)
            ).all()
        # Sorted here: the databases disagree on where nothing and capital letters belong.
        seen = sorted(seen, key=lambda one: (one.first_seen is None, one.first_seen, one.id))
        named = tuple(SessionId(one.id) for one in seen)
        return msgspec.structs.replace(_pattern(row), sessions=named)

    def of_sessions(self, session_ids: Sequence[str]) -> list[Pattern]:
        """The patterns that were seen in any of these sessions, in the order they came."""
        asked = sa.select(sightings.c.pattern_row).join(sessions)
        found = self._read_in("reading patterns", asked, sessions.c.id, session_ids)
        rows = {row.pattern_row for row in found}
        whole = self._read_in("reading patterns", _PATTERN, patterns.c.row_id, sorted(rows))
        return [_pattern(row) for row in sorted(whole, key=lambda one: int(one.row_id))]

    def list(self, *, limit: int | None = None) -> Iterator[Pattern]:
        """The patterns that may be used, those seen most often first."""
        asked = (
            _PATTERN.where(patterns.c.quarantined == "")
            .order_by(patterns.c.session_count.desc(), patterns.c.times.desc(), patterns.c.row_id)
            .limit(limit)
        )
        with self._reading("listing patterns") as one:
            yield from map(_pattern, one.execute(asked))

    def counts(self) -> dict[str, int]:
        """How many patterns there are of each kind, and under `quarantined` how much was kept out
        that nobody has decided about.
        """
        usable = sa.select(patterns.c.kind, sa.func.count()).where(patterns.c.quarantined == "")
        undecided = kept_out.c.key.not_in(sa.select(quarantine_decisions.c.key))
        held = sa.select(sa.func.count(kept_out.c.key.distinct())).where(undecided)
        with self._reading("counting what was learned") as one:
            found = {row[0]: row[1] for row in one.execute(usable.group_by(patterns.c.kind))}
            count = one.execute(held).scalar_one()
        return found | {"quarantined": count} if count else found

    def reasons(self) -> dict[str, int]:
        """How many mined sessions teach (under the empty reason), and why the others do not."""
        counted = sa.func.count().label("sessions")
        asked = sa.select(mined.c.reason, counted).group_by(mined.c.reason)
        found = self._read("counting what was learned", asked)
        return {row.reason: row.sessions for row in found}


def _pattern(row: sa.Row[Any]) -> Pattern:
    return record_of(
        Pattern,
        row,
        steps=decode_steps(row.steps),
        sessions=(SessionId(row.session),),
        models=decode_names(row.models),
    )


_SET_COUNTS = patterns.update().where(patterns.c.row_id == sa.bindparam("this_pattern"))
# By models too: their names can only be put together here, and there are few sets of them.
_COUNTED: sa.Select[Any] = sa.select(
    sightings.c.pattern_row,
    sightings.c.models,
    sa.func.sum(sightings.c.times).label("times"),
    sa.func.count().label("sessions"),
    sa.func.min(sightings.c.first_seen).label("first_seen"),
    sa.func.max(sightings.c.last_seen).label("last_seen"),
).group_by(sightings.c.pattern_row, sightings.c.models)


def recount(connection: sa.Connection, pattern_rows: Iterable[int]) -> None:
    """Count again how often these patterns were seen."""
    found: defaultdict[int, list[sa.Row[Any]]] = defaultdict(list)
    for row in select_in(connection, _COUNTED, sightings.c.pattern_row, sorted(pattern_rows)):
        found[row.pattern_row].append(row)
    if found:
        connection.execute(_SET_COUNTS, [_counts(*one) for one in found.items()])


def _counts(pattern_row: int, rows: Sequence[sa.Row[Any]]) -> dict[str, Any]:
    first = [one.first_seen for one in rows if one.first_seen is not None]
    last = [one.last_seen for one in rows if one.last_seen is not None]
    names = {name for one in rows for name in decode_names(one.models)}
    return {
        "this_pattern": pattern_row,
        "times": sum(int(one.times) for one in rows),
        "session_count": sum(one.sessions for one in rows),
        "first_seen": min(first, default=None),
        "last_seen": max(last, default=None),
        "models": json_text(sorted(names)),
    }


def sighted(connection: sa.Connection, session_rows: Collection[int]) -> set[int]:
    """The rows of the patterns that these sessions had."""
    asked = sa.select(sightings.c.pattern_row)
    return {row[0] for row in select_in(connection, asked, sightings.c.session_row, session_rows)}


def take_out(
    connection: sa.Connection, session_rows: Collection[int], pattern_rows: Iterable[int] = ()
) -> None:
    """Remove all that these sessions taught, and these patterns whoever had them. Other sessions
    that had a pattern that goes are mined again, to show it in their words.
    """
    seen, gone = sighted(connection, session_rows), set(pattern_rows)
    shown = sa.select(patterns.c.row_id)
    gone |= {row[0] for row in select_in(connection, shown, patterns.c.origin_row, session_rows)}
    for table in (episodes, kept_out, sightings):
        delete_in(connection, table.c.session_row, session_rows)
    having = sa.select(sightings.c.session_row).distinct()
    others = [row[0] for row in select_in(connection, having, sightings.c.pattern_row, gone)]
    delete_in(connection, mined.c.session_row, others)
    delete_in(connection, patterns.c.row_id, gone)
    recount(connection, seen - gone)
    bump(connection)


def bump(connection: sa.Connection) -> None:
    """Say that patterns or episodes have changed."""
    this = revisions.c.name == "patterns"
    connection.execute(revisions.update().where(this).values(number=revisions.c.number + 1))


def wait_for_learners(connection: sa.Connection) -> None:
    """One at a time changes what was learned, also where sessions are deleted; SQLite has one
    writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263503)"))
