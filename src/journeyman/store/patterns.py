"""Patterns as they are read: found by id, and listed. How they come into the store is `learned`'s
business.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import Pattern, PatternId, SessionId, Step
from journeyman.store.engine import explained
from journeyman.store.tables import (
    kept_out,
    mined,
    patterns,
    quarantine_decisions,
    revisions,
    sessions,
    sightings,
)
from journeyman.store.values import parts

_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode

_PATTERN: sa.Select[Any] = sa.select(
    patterns,
    sessions.c.id.label("session"),
    sessions.c.source,
).join(sessions, sessions.c.row_id == patterns.c.origin_row)


class StoredPattern(NamedTuple):
    """A pattern and its row."""

    row: int
    pattern: Pattern


class Patterns:
    """The patterns of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def revision(self) -> int:
        """A number that grows whenever a pattern or an episode comes, goes or changes."""
        asked = sa.select(revisions.c.number).where(revisions.c.name == "patterns")
        with explained(self._engine.url, "looking at patterns"), self._engine.connect() as one:
            return int(one.execute(asked).scalar_one_or_none() or 0)

    def at(self, rows: Sequence[int]) -> list[StoredPattern]:
        """The patterns at these rows, in this order; rows that have gone are left out."""
        found: dict[int, StoredPattern] = {}
        with explained(self._engine.url, "reading patterns"), self._engine.connect() as one:
            for some in parts(rows):
                asked = _PATTERN.where(patterns.c.row_id.in_(some))
                found |= {row.row_id: _stored(row) for row in one.execute(asked)}
        return [found[row] for row in rows if row in found]

    def get(self, pattern_id: str) -> StoredPattern | None:
        """The pattern with this id, if there is one, with all sessions that it was seen in."""
        with explained(self._engine.url, "reading a pattern"), self._engine.connect() as one:
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
        found = _stored(row)
        return found._replace(pattern=msgspec.structs.replace(found.pattern, sessions=named))

    def of_sessions(self, session_ids: Sequence[str]) -> list[StoredPattern]:
        """The patterns that were seen in any of these sessions, in the order they came."""
        rows: set[int] = set()
        with explained(self._engine.url, "reading patterns"), self._engine.connect() as one:
            for some in parts(session_ids):
                asked = (
                    sa.select(sightings.c.pattern_row)
                    .join(sessions, sessions.c.row_id == sightings.c.session_row)
                    .where(sessions.c.id.in_(some))
                )
                rows.update(one.execute(asked).scalars())
        return self.at(sorted(rows))

    def list(
        self, *, quarantined: bool = False, limit: int | None = None
    ) -> Iterator[StoredPattern]:
        """Patterns, those seen most often first; either those that may be used or those that a
        person should look at.
        """
        is_held = patterns.c.quarantined != ""
        asked = (
            _PATTERN.where(is_held if quarantined else ~is_held)
            .order_by(patterns.c.session_count.desc(), patterns.c.times.desc(), patterns.c.row_id)
            .limit(limit)
        )
        with explained(self._engine.url, "listing patterns"), self._engine.connect() as one:
            yield from map(_stored, one.execute(asked))

    def counts(self) -> dict[str, int]:
        """How many patterns there are of each kind, and under `quarantined` how much was kept out
        that nobody has decided about.
        """
        each = (
            sa.select(patterns.c.kind, sa.func.count())
            .where(patterns.c.quarantined == "")
            .group_by(patterns.c.kind)
        )
        decided = sa.select(quarantine_decisions.c.key)
        held = sa.select(sa.func.count(kept_out.c.key.distinct())).where(
            kept_out.c.key.not_in(decided)
        )
        with explained(self._engine.url, "counting patterns"), self._engine.connect() as one:
            found = {str(kind): int(number) for kind, number in one.execute(each)}
            number = int(one.execute(held).scalar_one())
        return found | ({"quarantined": number} if number else {})

    def reasons(self) -> dict[str, int]:
        """How many mined sessions teach (under the empty reason), and why the others do not."""
        asked = sa.select(mined.c.reason, sa.func.count()).group_by(mined.c.reason)
        with explained(self._engine.url, "counting sessions"), self._engine.connect() as one:
            return {str(reason): int(number) for reason, number in one.execute(asked)}


def _stored(row: sa.Row[Any]) -> StoredPattern:
    pattern = Pattern(
        id=PatternId(row.id),
        kind=row.kind,
        intent=row.intent,
        steps=_decode_steps(row.steps),
        task_type=row.task_type,
        source=row.source,
        times=row.times,
        session_count=row.session_count,
        sessions=(SessionId(row.session),),
        models=_decode_names(row.models),
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        tokens=row.tokens,
        quarantined=row.quarantined,
    )
    return StoredPattern(row.row_id, pattern)
