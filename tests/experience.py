"""Experience for tests, made of one-line episodes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from journeyman.experience.experience import Experience
from journeyman.experience.facts import ProjectFacts
from journeyman.learning.search_keys import words
from journeyman.models.embedder import Embedder
from journeyman.records import (
    Check,
    CommandUse,
    FileUse,
    Finding,
    Observations,
    Remark,
    SessionId,
    Trap,
)
from journeyman.records.fact import FactDecision
from journeyman.store.episodes import EpisodeRow

EMBEDDER = Embedder()

Seen = CommandUse | FileUse | Trap | Finding | Check | Remark


def episode(
    session: str,
    request: str = "",
    *seen: Seen,
    at: float | None = 1.0,
    tainted: bool = False,
    **fields: Any,
) -> EpisodeRow:
    """An episode in which this was seen; `fields` are others of its row."""

    def of(kind: type[Any]) -> tuple[Any, ...]:
        return tuple(one for one in seen if isinstance(one, kind))

    calls = ". ".join(one.name for one in of(CommandUse))
    vector, call_vector = EMBEDDER.embed([request, calls]).astype(np.float16)
    row = EpisodeRow(
        row=0,
        session=SessionId(session),
        source="test",
        project="app",
        at=at,
        ending="well",
        words=words(request).tobytes(),
        call_words=words(calls).tobytes(),
        vector=vector.tobytes(),
        call_vector=call_vector.tobytes(),
        observed=Observations(
            commands=of(CommandUse),
            files=of(FileUse),
            traps=of(Trap),
            findings=of(Finding),
            check=next(iter(of(Check)), None),
            remarks=of(Remark),
            tainted=tainted,
        ),
    )
    return row._replace(**fields)


def numbered(episodes: Iterable[EpisodeRow]) -> Sequence[EpisodeRow]:
    """The episodes with the rows 10, 13, 16 and so on."""
    return [one._replace(row=10 + 3 * number) for number, one in enumerate(episodes)]


def experience(
    *episodes: EpisodeRow, decisions: Iterable[FactDecision] = (), bots: bool = False
) -> Experience:
    """The episodes as experience of the project `app`."""
    return Experience("app", numbered(episodes), EMBEDDER, decisions, bots=bots)


def project_facts(*episodes: EpisodeRow, **options: Any) -> ProjectFacts:
    """The facts that the episodes show of the project `app`."""
    return experience(*episodes, **options).facts
