"""Keeping what was learned, so that a session is mined once.

Patterns that are the same are one row, shown as the earliest session had it, so that the order of
learning does not matter. How often each session had it is kept beside.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from journeyman.records import MinedSession, Pattern, PatternId, SearchKeys, SessionId
from journeyman.store.engine import Repository
from journeyman.store.episodes import EpisodeKey, episode_values
from journeyman.store.forgotten import without_forgotten
from journeyman.store.patterns import bump, recount, sighted, wait_for_learners
from journeyman.store.quarantine import mined_as_decided
from journeyman.store.rows import delete_in, json_text, select_in, values_of
from journeyman.store.session_filters import conditions
from journeyman.store.tables import episodes, kept_out, mined, patterns, sessions, sightings

Taken = Mapping[int, MinedSession]
"""What sessions teach, by their rows."""

_AS_MINED = ("digest", "outcome", "end_reason")


class Learned(Repository):
    """Which sessions were mined, and what they gave."""

    def missing(self, rules: str, project: str | None = None) -> list[str]:
        """The ids of the sessions that were not mined under these rules as they are now, oldest
        first: of all projects, or of one.
        """
        is_mined = sa.and_(
            mined.c.session_row == sessions.c.row_id,
            mined.c.digest == sessions.c.digest,
            mined.c.outcome.is_not_distinct_from(sessions.c.outcome),
            mined.c.end_reason == sessions.c.end_reason,
            mined.c.rules == rules,
        )
        asked = (
            sa.select(sessions.c.id)
            .where(~sa.exists().where(is_mined), *conditions(project=project))
            .order_by(sessions.c.started_at.nulls_last(), sessions.c.row_id)
        )
        with self._reading("looking for new sessions") as one:
            return list(one.execute(asked).scalars())

    def reasons(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Why these sessions teach nothing, empty for those that may; those that were never mined
        are left out.
        """
        asked = sa.select(sessions.c.id, mined.c.reason).join(mined)
        found = self._read_in("looking at sessions", asked, sessions.c.id, session_ids)
        return {row.id: row.reason for row in found}

    def save(
        self, rules: str, found: Sequence[MinedSession], keys: Mapping[EpisodeKey, SearchKeys]
    ) -> None:
        """Keep what sessions taught in the place of what they taught before: all of it or none.
        Passed over, and so still missing, are sessions that changed or went meanwhile, and those in
        which a person has had something forgotten or released since, or no longer releases it.
        """
        with self._writing("keeping what was learned", erases=True) as connection:
            wait_for_learners(connection)
            given = without_forgotten(connection, {one.session: one for one in found})
            taken = _unchanged(connection, mined_as_decided(connection, given))
            if not taken:
                return
            before = sighted(connection, taken)
            pattern_rows = _show(connection, taken)
            told = [
                episode_values(row, episode, keys[episode.session, episode.number])
                for row, one in taken.items()
                for episode in one.episodes
            ]
            held = {
                (row, entry.key): values_of(entry, kept_out, session_row=row)
                for row, one in taken.items()
                for entry in one.kept_out
            }
            marks = [
                values_of(one, mined, session_row=row, rules=rules) for row, one in taken.items()
            ]
            for table, values in (
                (sightings, _sightings(taken, pattern_rows)),
                (episodes, told),
                (kept_out, list(held.values())),
                (mined, marks),
            ):
                delete_in(connection, table.c.session_row, taken)
                if values:
                    connection.execute(table.insert(), values)
            recount(connection, before.union(pattern_rows.values()))
            bump(connection)


def _unchanged(
    connection: sa.Connection, given: Mapping[SessionId, MinedSession]
) -> dict[int, MinedSession]:
    """What sessions teach, by their rows: of those that still are what they were."""
    columns = sessions.c
    asked = (
        sa.select(*columns[("id", "row_id", *_AS_MINED)])
        .order_by(columns.row_id)
        # One that is being deleted: wait until it is gone. SQLite has one writer anyway.
        .with_for_update(read=True, key_share=True)
    )
    rows = {
        row.id: row.row_id
        for row in select_in(connection, asked, columns.id, given)
        if all(getattr(row, name) == getattr(given[row.id], name) for name in _AS_MINED)
    }
    return {rows[id_]: one for id_, one in given.items() if id_ in rows}


class _Offer(NamedTuple):
    """A pattern as the earliest of the sessions has it that were mined now."""

    age: tuple[float, str]
    pattern: Pattern
    session_row: int


_UPDATE_PATTERN = patterns.update().where(patterns.c.row_id == sa.bindparam("this_row"))
_ADD_PATTERN = patterns.insert().returning(patterns.c.id, patterns.c.row_id)
_SHOWN = sa.select(
    *patterns.c["id", "row_id", "origin_row", "shown_at"], sessions.c.id.label("session")
).join(sessions, sessions.c.row_id == patterns.c.origin_row)


def _show(connection: sa.Connection, taken: Taken) -> dict[PatternId, int]:
    """Insert new patterns; show an old one anew if an earlier session has it, or if the session as
    whose it was shown is among these. The row of each.
    """
    offers: dict[PatternId, _Offer] = {}
    for row, one in taken.items():
        for pattern in one.patterns:
            offer = _Offer(_age(pattern.first_seen, one.session), pattern, row)
            if pattern.id not in offers or offer.age < offers[pattern.id].age:
                offers[pattern.id] = offer
    stored = {row.id: row for row in select_in(connection, _SHOWN, patterns.c.id, offers)}
    obsolete = {
        row.row_id: offers.get(row.id)
        for row in select_in(connection, _SHOWN, patterns.c.origin_row, taken)
    }
    updated = [
        {"this_row": old.row_id, **_values(offers[id_])}
        for id_, old in stored.items()
        if old.row_id in obsolete or offers[id_].age < _age(old.shown_at, old.session)
    ]
    if updated:
        connection.execute(_UPDATE_PATTERN, updated)
    _pass_on(connection, obsolete)
    rows = {PatternId(id_): old.row_id for id_, old in stored.items()}
    inserted = [_values(offer) for id_, offer in offers.items() if id_ not in stored]
    if inserted:
        rows |= {row.id: row.row_id for row in connection.execute(_ADD_PATTERN, inserted)}
    return rows


def _pass_on(connection: sa.Connection, shown: Mapping[int, _Offer | None]) -> None:
    """Patterns that were shown as the sessions had them that were mined now. Where these have them
    later than another session, or no more, the others are mined again to show them in their words.
    """
    columns = sightings.c["pattern_row", "session_row", "first_seen"]
    asked = sa.select(*columns, sessions.c.id).join(sessions)
    earlier = {
        row.session_row
        for row in select_in(connection, asked, sightings.c.pattern_row, shown)
        if (offer := shown[row.pattern_row]) is None or _age(row.first_seen, row.id) < offer.age
    }
    delete_in(connection, mined.c.session_row, earlier)
    gone = [row for row, offer in shown.items() if offer is None]
    delete_in(connection, patterns.c.row_id, gone)


def _values(offer: _Offer) -> dict[str, Any]:
    pattern = offer.pattern
    return values_of(
        pattern,
        patterns,
        origin_row=offer.session_row,
        shown_at=pattern.first_seen,
        steps=json_text(pattern.steps),
        models=json_text(pattern.models),
    )


def _sightings(taken: Taken, pattern_rows: Mapping[PatternId, int]) -> list[dict[str, Any]]:
    found = {
        (row, one.id): values_of(
            one,
            sightings,
            pattern_row=pattern_rows[one.id],
            session_row=row,
            models=json_text(sorted(set(one.models))),
        )
        for row, session in taken.items()
        for one in session.patterns
    }
    return list(found.values())


def _age(first_seen: float | None, session_id: str) -> tuple[float, str]:
    """What sorts sightings of one pattern, as `Pattern.age` does."""
    return float("inf") if first_seen is None else first_seen, session_id
