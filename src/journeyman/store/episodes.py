"""Episodes as they are kept and read: as arrays for a search, counted for playbooks, and whole by
their rows.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from journeyman.records import (
    CommandUse,
    Ending,
    Episode,
    FileUse,
    Mistake,
    SearchKeys,
    SessionId,
)
from journeyman.store.engine import Repository
from journeyman.store.rows import decode_steps, json_text, record_of, values_of
from journeyman.store.tables import episodes, sessions

EpisodeKey = tuple[SessionId, int]
"""The session of an episode, and its number there."""


class Facts(Struct, frozen=True, array_like=True):
    """What playbooks count of an episode."""

    commands: tuple[CommandUse, ...] = ()
    files: tuple[FileUse, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


class EpisodeRow(NamedTuple):
    """An episode without its texts: what it is found by, and what playbooks count."""

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
    facts: Facts


decode_facts = msgspec.json.Decoder(Facts).decode

_FOUND_BY = sa.select(
    *(episodes.c.row_id, *sessions.c["id", "source", "project"]),
    *episodes.c["at", "ending", "quarantined", "words", "call_words", "vector", "call_vector"],
    episodes.c.facts,
).join(sessions)
_WHOLE: sa.Select[Any] = sa.select(
    episodes, sessions.c.id.label("session"), sessions.c.source, sessions.c.project
).join(sessions)


class Episodes(Repository):
    """The episodes of a store."""

    def rows(self) -> list[EpisodeRow]:
        """All episodes without their texts, in the order they came."""
        found = self._read("reading episodes", _FOUND_BY.order_by(episodes.c.row_id))
        return [EpisodeRow._make((*row[:-1], decode_facts(row[-1]))) for row in found]

    def by_row(self, rows: Sequence[int]) -> dict[int, Episode]:
        """The episodes at these rows, in this order; rows that have gone are left out."""
        found = self._read_in("reading episodes", _WHOLE, episodes.c.row_id, rows)
        whole = {row.row_id: _episode(row) for row in found}
        return {row: whole[row] for row in rows if row in whole}

    def requests(self, rows: Sequence[int]) -> dict[int, str]:
        """What was asked for, by row."""
        asked = sa.select(episodes.c.row_id, episodes.c.request)
        found = self._read_in("reading episodes", asked, episodes.c.row_id, rows)
        return {row.row_id: row.request for row in found}


def episode_values(session_row: int, episode: Episode, found_by: SearchKeys) -> dict[str, Any]:
    """The columns of an episode."""
    facts = Facts(episode.commands, episode.files, episode.mistakes)
    return values_of(
        episode,
        episodes,
        session_row=session_row,
        facts=json_text(facts),
        steps=json_text(episode.steps),
        **msgspec.structs.asdict(found_by),
    )


def _episode(row: sa.Row[Any]) -> Episode:
    facts = msgspec.structs.asdict(decode_facts(row.facts))
    return record_of(Episode, row, steps=decode_steps(row.steps), **facts)
