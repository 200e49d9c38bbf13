"""The stored episodes: their index for search, what they show about projects, and whole ones; and
what all that changes them observes.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import Ending, Episode, Observations, SearchKeys, SessionId
from journeyman.store.engine import Repository
from journeyman.store.rows import batches, decode_steps, json_text, record_of, values_of
from journeyman.store.session_filters import conditions
from journeyman.store.tables import episodes, revisions, sessions

EpisodeKey = tuple[SessionId, int]
"""The session of an episode, and the number of the request in it."""


class EpisodeRow(NamedTuple):
    """An episode without its texts: its search index, and what it shows about its project."""

    row: int
    session: SessionId
    source: str
    project: str
    at: float | None
    ending: Ending
    words: bytes
    call_words: bytes
    vector: bytes
    call_vector: bytes
    observed: Observations
    platform: str = ""
    branch: str = ""
    cwd: str = ""


decode_observed = msgspec.json.Decoder(Observations).decode

_INDEX = sa.select(
    *(episodes.c.row_id, *sessions.c["id", "source", "project"]),
    *episodes.c["at", "ending", "words", "call_words", "vector", "call_vector"],
    *(episodes.c.observed, *sessions.c["platform", "git_branch", "cwd"]),
).join(sessions)
_WHOLE: sa.Select[Any] = sa.select(
    episodes, sessions.c.id.label("session"), sessions.c.source, sessions.c.project
).join(sessions)


class Episodes(Repository):
    """The episodes of a store."""

    def rows(self, project: str = "") -> list[EpisodeRow]:
        """Return the episodes of a project, or all, without their texts, in the order they were
        stored.
        """
        query = _INDEX.where(*conditions(project=project or None)).order_by(episodes.c.row_id)
        rows = self._read("reading episodes", query)
        return [
            EpisodeRow._make((*row[:-4], decode_observed(row.observed), *row[-3:])) for row in rows
        ]

    def by_row(self, rows: Sequence[int]) -> dict[int, Episode]:
        """Return the episodes with these row ids, in this order; missing rows are left out."""
        stored = self._read_in("reading episodes", _WHOLE, episodes.c.row_id, rows)
        by_row = {row.row_id: _episode(row) for row in stored}
        return {row: by_row[row] for row in rows if row in by_row}

    def teaching(self, session_ids: Sequence[str]) -> list[Episode]:
        """Return the episodes of these sessions that teach, the oldest first."""
        stored = self._read_in("reading episodes", _WHOLE, sessions.c.id, session_ids)
        found = (_episode(row) for row in stored if row.ending == "well")
        return sorted(
            (episode for episode in found if episode.teaches),
            key=lambda one: (math.inf if one.at is None else one.at, one.session, one.number),
        )

    def examples(self) -> int:
        """Return how many episodes of the store teach."""
        query = sa.select(sa.func.count()).where(
            episodes.c.ending == "well", episodes.c.steps != "[]"
        )
        return int(self._read("counting what was learned", query)[0][0])

    def revision(self) -> int:
        """Return a number that grows whenever an episode is added, removed or changed."""
        query = sa.select(revisions.c.number)
        return int(self._read("looking at what was learned", query)[0][0])


def episode_values(session_row: int, episode: Episode, keys: SearchKeys) -> dict[str, Any]:
    """Return the column values of an episode."""
    return values_of(
        episode,
        episodes,
        session_row=session_row,
        observed=json_text(episode.observed),
        steps=json_text(episode.steps),
        **msgspec.structs.asdict(keys),
    )


def _episode(row: sa.Row[Any]) -> Episode:
    observed = decode_observed(row.observed)
    return record_of(Episode, row, steps=decode_steps(row.steps), observed=observed)


def remove_learned(connection: sa.Connection, session_rows: Collection[int]) -> int:
    """Remove everything that these sessions taught; return how many episodes there were."""
    removed = 0
    for batch in batches(list(session_rows)):
        statement = episodes.delete().where(episodes.c.session_row.in_(batch))
        removed += connection.execute(statement).rowcount
    bump_revision(connection)
    return removed


def bump_revision(connection: sa.Connection) -> None:
    """Record that episodes or decisions about facts have changed."""
    connection.execute(revisions.update().values(number=revisions.c.number + 1))


def wait_for_learners(connection: sa.Connection) -> None:
    """Wait until no other transaction changes what was learned, which deleting sessions also does.
    SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(7263505)"))
