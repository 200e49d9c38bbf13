"""The stored episodes: their index for search, their counts for playbooks, and whole episodes."""

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
"""The session of an episode, and the number of the request in it."""


class EpisodeFacts(Struct, frozen=True, array_like=True):
    """The parts of an episode that playbooks count."""

    commands: tuple[CommandUse, ...] = ()
    files: tuple[FileUse, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


class EpisodeRow(NamedTuple):
    """An episode without its texts: its search index, and what playbooks count."""

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
    facts: EpisodeFacts
    platform: str = ""


decode_facts = msgspec.json.Decoder(EpisodeFacts).decode

_INDEX = sa.select(
    *(episodes.c.row_id, *sessions.c["id", "source", "project"]),
    *episodes.c["at", "ending", "quarantined", "words", "call_words", "vector", "call_vector"],
    *(episodes.c.facts, sessions.c.platform),
).join(sessions)
_WHOLE: sa.Select[Any] = sa.select(
    episodes, sessions.c.id.label("session"), sessions.c.source, sessions.c.project
).join(sessions)


class Episodes(Repository):
    """The episodes of a store."""

    def rows(self) -> list[EpisodeRow]:
        """Return all episodes without their texts, in the order they were stored."""
        rows = self._read("reading episodes", _INDEX.order_by(episodes.c.row_id))
        return [
            EpisodeRow._make((*row[:-2], decode_facts(row.facts), row.platform)) for row in rows
        ]

    def by_row(self, rows: Sequence[int]) -> dict[int, Episode]:
        """Return the episodes with these row ids, in this order; missing rows are left out."""
        stored = self._read_in("reading episodes", _WHOLE, episodes.c.row_id, rows)
        by_row = {row.row_id: _episode(row) for row in stored}
        return {row: by_row[row] for row in rows if row in by_row}


def episode_values(session_row: int, episode: Episode, keys: SearchKeys) -> dict[str, Any]:
    """Return the column values of an episode."""
    facts = EpisodeFacts(episode.commands, episode.files, episode.mistakes)
    return values_of(
        episode,
        episodes,
        session_row=session_row,
        facts=json_text(facts),
        steps=json_text(episode.steps),
        **msgspec.structs.asdict(keys),
    )


def _episode(row: sa.Row[Any]) -> Episode:
    facts = msgspec.structs.asdict(decode_facts(row.facts))
    return record_of(Episode, row, steps=decode_steps(row.steps), **facts)
