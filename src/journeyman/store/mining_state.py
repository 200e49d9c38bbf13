"""The store of what was learned, so that each session is mined once.

Equal patterns share one row, shown as in the earliest session with it, so that the order of
learning does not matter. How often each session had a pattern is stored separately, as sightings.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from journeyman.records import MinedSession, Pattern, PatternId, SearchKeys, SessionId
from journeyman.store.engine import Repository
from journeyman.store.episodes import EpisodeKey, episode_values
from journeyman.store.patterns import bump_revision, pattern_rows_of, recount, wait_for_learners
from journeyman.store.quarantine import without_stale_decisions
from journeyman.store.removals import without_forgotten
from journeyman.store.rows import delete_in, json_text, select_in, values_of
from journeyman.store.session_filters import conditions
from journeyman.store.tables import episodes, kept_out, mined, patterns, sessions, sightings

MinedByRow = Mapping[int, MinedSession]
"""What sessions teach, by the row id of the session."""

_MINED_STATE = ("digest", "outcome", "end_reason")


class MiningState(Repository):
    """Which sessions were mined, and the results."""

    def missing(self, rules: str, project: str | None = None) -> list[str]:
        """Return the ids of the sessions that were not mined with these rules in their current
        state, oldest first; of all projects, or of one.
        """
        is_mined = sa.and_(
            mined.c.session_row == sessions.c.row_id,
            mined.c.digest == sessions.c.digest,
            mined.c.outcome.is_not_distinct_from(sessions.c.outcome),
            mined.c.end_reason == sessions.c.end_reason,
            mined.c.rules == rules,
        )
        query = (
            sa.select(sessions.c.id)
            .where(~sa.exists().where(is_mined), *conditions(project=project))
            .order_by(sessions.c.started_at.nulls_last(), sessions.c.row_id)
        )
        with self._reading("looking for new sessions") as connection:
            return list(connection.execute(query).scalars())

    def reasons(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Return why these sessions teach nothing, "" for those that teach. Sessions that were
        never mined are left out.
        """
        query = sa.select(sessions.c.id, mined.c.reason).join(mined)
        rows = self._read_in("reading sessions", query, sessions.c.id, session_ids)
        return {row.id: row.reason for row in rows}

    def save(
        self, rules: str, results: Sequence[MinedSession], keys: Mapping[EpisodeKey, SearchKeys]
    ) -> None:
        """Replace what these sessions taught before, completely or not at all. Left out, and so
        still missing, are sessions that changed or were deleted in the meantime, and those in which
        a person has since forgotten or released something, or withdrawn a release.
        """
        with self._writing("storing what was learned", erases=True) as connection:
            wait_for_learners(connection)
            remembered = without_forgotten(connection, {each.session: each for each in results})
            mined_by_row = _unchanged(connection, without_stale_decisions(connection, remembered))
            if not mined_by_row:
                return
            before = pattern_rows_of(connection, mined_by_row)
            pattern_rows = _upsert_patterns(connection, mined_by_row)
            episode_rows = [
                episode_values(row, episode, keys[episode.session, episode.number])
                for row, session in mined_by_row.items()
                for episode in session.episodes
            ]
            excluded = {
                (row, entry.key): values_of(entry, kept_out, session_row=row)
                for row, session in mined_by_row.items()
                for entry in session.kept_out
            }
            mined_rows = [
                values_of(session, mined, session_row=row, rules=rules)
                for row, session in mined_by_row.items()
            ]
            for table, values in (
                (sightings, _sightings(mined_by_row, pattern_rows)),
                (episodes, episode_rows),
                (kept_out, list(excluded.values())),
                (mined, mined_rows),
            ):
                delete_in(connection, table.c.session_row, mined_by_row)
                if values:
                    connection.execute(table.insert(), values)
            recount(connection, before.union(pattern_rows.values()))
            bump_revision(connection)


def _unchanged(
    connection: sa.Connection, results: Mapping[SessionId, MinedSession]
) -> dict[int, MinedSession]:
    """Return the results by row id, without those of sessions that changed in the meantime."""
    columns = sessions.c
    query = (
        sa.select(*columns[("id", "row_id", *_MINED_STATE)])
        .order_by(columns.row_id)
        # Wait until a session that is being deleted is gone. SQLite has one writer anyway.
        .with_for_update(read=True, key_share=True)
    )
    rows = {
        row.id: row.row_id
        for row in select_in(connection, query, columns.id, results)
        if all(getattr(row, name) == getattr(results[row.id], name) for name in _MINED_STATE)
    }
    return {rows[id_]: session for id_, session in results.items() if id_ in rows}


class _Candidate(NamedTuple):
    """A pattern as in the earliest of the sessions that are being stored."""

    age: tuple[float, str]
    pattern: Pattern
    session_row: int


_UPDATE_PATTERN = patterns.update().where(patterns.c.row_id == sa.bindparam("this_row"))
_ADD_PATTERN = patterns.insert().returning(patterns.c.id, patterns.c.row_id)
_ORIGIN = sa.select(
    *patterns.c["id", "row_id", "origin_row", "shown_at"], sessions.c.id.label("session")
).join(sessions, sessions.c.row_id == patterns.c.origin_row)


def _upsert_patterns(connection: sa.Connection, mined_by_row: MinedByRow) -> dict[PatternId, int]:
    """Insert new patterns, and update a stored one if an earlier session has it or if the session
    whose version is shown is being replaced. Return the row id of each.
    """
    candidates: dict[PatternId, _Candidate] = {}
    for row, session in mined_by_row.items():
        for pattern in session.patterns:
            candidate = _Candidate(_age(pattern.first_seen, session.session), pattern, row)
            if pattern.id not in candidates or candidate.age < candidates[pattern.id].age:
                candidates[pattern.id] = candidate
    stored = {row.id: row for row in select_in(connection, _ORIGIN, patterns.c.id, candidates)}
    obsolete = {
        row.row_id: candidates.get(row.id)
        for row in select_in(connection, _ORIGIN, patterns.c.origin_row, mined_by_row)
    }
    updated = [
        {"this_row": old.row_id, **_values(candidates[id_])}
        for id_, old in stored.items()
        if old.row_id in obsolete or candidates[id_].age < _age(old.shown_at, old.session)
    ]
    if updated:
        connection.execute(_UPDATE_PATTERN, updated)
    _release_origins(connection, obsolete)
    rows = {PatternId(id_): old.row_id for id_, old in stored.items()}
    inserted = [_values(candidate) for id_, candidate in candidates.items() if id_ not in stored]
    if inserted:
        rows |= {row.id: row.row_id for row in connection.execute(_ADD_PATTERN, inserted)}
    return rows


def _release_origins(connection: sa.Connection, shown: Mapping[int, _Candidate | None]) -> None:
    """Handle patterns whose shown version comes from a session that is being replaced. If another
    session has the pattern earlier, or the new version no longer has it, the other sessions are
    mined again, so that their version is shown.
    """
    columns = sightings.c["pattern_row", "session_row", "first_seen"]
    query = sa.select(*columns, sessions.c.id).join(sessions)
    earlier = {
        row.session_row
        for row in select_in(connection, query, sightings.c.pattern_row, shown)
        if (candidate := shown[row.pattern_row]) is None
        or _age(row.first_seen, row.id) < candidate.age
    }
    delete_in(connection, mined.c.session_row, earlier)
    gone = [row for row, candidate in shown.items() if candidate is None]
    delete_in(connection, patterns.c.row_id, gone)


def _values(candidate: _Candidate) -> dict[str, Any]:
    pattern = candidate.pattern
    return values_of(
        pattern,
        patterns,
        origin_row=candidate.session_row,
        shown_at=pattern.first_seen,
        steps=json_text(pattern.steps),
        models=json_text(pattern.models),
    )


def _sightings(
    mined_by_row: MinedByRow, pattern_rows: Mapping[PatternId, int]
) -> list[dict[str, Any]]:
    values = {
        (row, pattern.id): values_of(
            pattern,
            sightings,
            pattern_row=pattern_rows[pattern.id],
            session_row=row,
            models=json_text(sorted(set(pattern.models))),
        )
        for row, session in mined_by_row.items()
        for pattern in session.patterns
    }
    return list(values.values())


def _age(first_seen: float | None, session_id: str) -> tuple[float, str]:
    """The sort key of sightings of one pattern, like `Pattern.age`."""
    return float("inf") if first_seen is None else first_seen, session_id
