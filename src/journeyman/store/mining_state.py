"""The store of what was learned, so that each session is mined once."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from journeyman.records import MinedSession, SearchKeys, SessionId
from journeyman.store.engine import Repository
from journeyman.store.episodes import (
    EpisodeKey,
    bump_revision,
    episode_values,
    wait_for_learners,
)
from journeyman.store.removals import without_forgotten
from journeyman.store.rows import delete_in, select_in, values_of
from journeyman.store.session_filters import conditions
from journeyman.store.tables import episodes, mined, sessions

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

    def counts(self) -> dict[str, int]:
        """Return the number of mined sessions by the reason why they teach nothing, under "" those
        that teach.
        """
        query = sa.select(mined.c.reason, sa.func.count().label("sessions")).group_by(
            mined.c.reason
        )
        rows = self._read("counting what was learned", query)
        return {row.reason: row.sessions for row in rows}

    def save(
        self, rules: str, results: Sequence[MinedSession], keys: Mapping[EpisodeKey, SearchKeys]
    ) -> None:
        """Replace what these sessions taught before, completely or not at all. Left out, and so
        still missing, are sessions that changed or were deleted in the meantime, and those in which
        a person has since forgotten something.
        """
        with self._writing("storing what was learned", erases=True) as connection:
            wait_for_learners(connection)
            remembered = without_forgotten(connection, {each.session: each for each in results})
            mined_by_row = _unchanged(connection, remembered)
            if not mined_by_row:
                return
            by_table = {
                episodes: [
                    episode_values(row, episode, keys[episode.session, episode.number])
                    for row, session in mined_by_row.items()
                    for episode in session.episodes
                ],
                mined: [
                    values_of(session, mined, session_row=row, rules=rules)
                    for row, session in mined_by_row.items()
                ],
            }
            for table, values in by_table.items():
                delete_in(connection, table.c.session_row, mined_by_row)
                if values:
                    connection.execute(table.insert(), values)
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
