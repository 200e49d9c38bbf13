"""The stored episodes: their index for search, what they show about projects, and whole ones."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import Ending, Episode, Observations, SearchKeys, SessionId
from journeyman.store.engine import Repository
from journeyman.store.rows import decode_steps, json_text, record_of, values_of
from journeyman.store.session_filters import conditions
from journeyman.store.tables import episodes, sessions

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
    quarantined: str
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
    *episodes.c["at", "ending", "quarantined", "words", "call_words", "vector", "call_vector"],
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
