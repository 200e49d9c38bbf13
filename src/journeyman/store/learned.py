"""Keeping what was learned, so that a session is mined once.

Patterns that are the same are one row, shown as the earliest session had it, so that the order of
learning does not matter. How often each session had it is kept beside, and counted again whenever
a session changes or goes.
"""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from journeyman.records import MinedSession, SearchKeys
from journeyman.store.choosing import conditions
from journeyman.store.counting import bump, mine_again, recount, wait_for_learners
from journeyman.store.engine import explained, writing
from journeyman.store.episodes import EpisodeKey
from journeyman.store.keeping import Keeping
from journeyman.store.tables import episodes, mined, patterns, sessions, sightings
from journeyman.store.values import parts


class Learned:
    """Which sessions were mined, and what they gave."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

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
        with explained(self._engine.url, "looking for new sessions"), self._engine.connect() as one:
            return list(one.execute(asked).scalars())

    def reasons(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Why these sessions teach nothing, empty for those that may; those that were never mined
        are left out.
        """
        asked = sa.select(sessions.c.id, mined.c.reason).join(
            mined, mined.c.session_row == sessions.c.row_id
        )
        found: dict[str, str] = {}
        with explained(self._engine.url, "looking at sessions"), self._engine.connect() as one:
            for some in parts(session_ids):
                rows = one.execute(asked.where(sessions.c.id.in_(some)))
                found |= {row.id: row.reason for row in rows}
        return found

    def save(
        self,
        rules: str,
        found: Sequence[MinedSession],
        keys: Mapping[EpisodeKey, SearchKeys],
    ) -> None:
        """Keep what sessions taught in the place of what they taught before: all of it or none.
        Sessions that changed or went meanwhile are passed over; they stay missing.
        """
        with writing(self._engine, "keeping what was learned") as connection:
            wait_for_learners(connection)
            if connection.dialect.name == "sqlite":
                # What is replaced here quotes sessions, which may be deleted later.
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            Keeping(connection, rules, keys).keep(found)


def forget_session(connection: sa.Connection, session_row: int) -> None:
    """What goes before a session is deleted: other sessions that had patterns in common with it
    are mined again, so that these are shown in their words.
    """
    wait_for_learners(connection)
    gone = connection.execute(episodes.delete().where(episodes.c.session_row == session_row))
    asked = sa.select(sightings.c.pattern_row).where(sightings.c.session_row == session_row)
    seen = set(connection.execute(asked).scalars())
    if not seen:
        if gone.rowcount:
            bump(connection)
        return
    mine_again(connection, patterns.c.origin_row == session_row)
    connection.execute(sightings.delete().where(sightings.c.session_row == session_row))
    connection.execute(patterns.delete().where(patterns.c.origin_row == session_row))
    recount(connection, seen)
    bump(connection)
