"""Episodes as they are kept and read: as arrays for a search, counted for playbooks, and whole by
their rows.
"""

from collections.abc import Mapping, Sequence
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
    Step,
)
from journeyman.store.engine import explained
from journeyman.store.rows import storable
from journeyman.store.tables import episodes, sessions
from journeyman.store.values import json_text, parts

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


_decode_facts = msgspec.json.Decoder(Facts).decode
_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode

_FOUND_BY = sa.select(
    *(episodes.c.row_id, sessions.c.id, sessions.c.source, sessions.c.project, episodes.c.at),
    *(episodes.c.ending, episodes.c.quarantined, episodes.c.words, episodes.c.call_words),
    *(episodes.c.vector, episodes.c.call_vector, episodes.c.facts),
).join(sessions, sessions.c.row_id == episodes.c.session_row)
_WHOLE: sa.Select[Any] = sa.select(
    episodes, sessions.c.id, sessions.c.source, sessions.c.project
).join(sessions, sessions.c.row_id == episodes.c.session_row)


class Episodes:
    """The episodes of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def rows(self) -> list[EpisodeRow]:
        """All episodes without their texts, in the order they came."""
        asked = _FOUND_BY.order_by(episodes.c.row_id)
        with explained(self._engine.url, "reading episodes"), self._engine.connect() as one:
            return [
                EpisodeRow._make((*row[:-1], _decode_facts(row[-1]))) for row in one.execute(asked)
            ]

    def at(self, rows: Sequence[int]) -> list[Episode]:
        """The episodes at these rows, in this order; rows that have gone are left out."""
        found = self.by_row(rows)
        return [found[row] for row in rows if row in found]

    def by_row(self, rows: Sequence[int]) -> dict[int, Episode]:
        """The episodes at these rows; rows that have gone are left out."""
        found: dict[int, Episode] = {}
        with explained(self._engine.url, "reading episodes"), self._engine.connect() as one:
            for some in parts(rows):
                asked = _WHOLE.where(episodes.c.row_id.in_(some))
                found |= {row.row_id: _episode(row) for row in one.execute(asked)}
        return found

    def requests(self, rows: Sequence[int]) -> dict[int, str]:
        """What was asked for, by row."""
        found: dict[int, str] = {}
        asked = sa.select(episodes.c.row_id, episodes.c.request)
        with explained(self._engine.url, "reading episodes"), self._engine.connect() as one:
            for some in parts(rows):
                answered = one.execute(asked.where(episodes.c.row_id.in_(some)))
                found |= {int(row): str(request) for row, request in answered}
        return found


def episode_values(episode: Episode, keys: Mapping[EpisodeKey, SearchKeys]) -> dict[str, Any]:
    """The columns of an episode, apart from its session."""
    found_by = keys[episode.session, episode.number]
    facts = Facts(episode.commands, episode.files, episode.mistakes)
    return {
        "number": episode.number,
        "at": episode.at,
        "ending": episode.ending,
        "quarantined": episode.quarantined,
        "tokens": episode.tokens,
        **msgspec.structs.asdict(found_by),
        "facts": json_text(facts),
        "request": storable(episode.request),
        "steps": json_text(episode.steps),
    }


def _episode(row: sa.Row[Any]) -> Episode:
    facts = _decode_facts(row.facts)
    return Episode(
        session=SessionId(row.id),
        number=row.number,
        request=row.request,
        ending=row.ending,
        at=row.at,
        source=row.source,
        project=row.project,
        steps=_decode_steps(row.steps),
        commands=facts.commands,
        files=facts.files,
        mistakes=facts.mistakes,
        tokens=row.tokens,
        quarantined=row.quarantined,
    )
