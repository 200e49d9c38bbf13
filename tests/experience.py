"""Experience for tests, made of one-line episodes."""

import numpy as np

from journeyman.models.embedder import Embedder
from journeyman.records import CommandUse, FileUse, Mistake, SessionId
from journeyman.store.episodes import EpisodeFacts, EpisodeRow
from journeyman.templates.experience import Experience
from journeyman.templates.ranking import words

EMBEDDER = Embedder()


def episode(
    session: str, request: str, *facts: CommandUse | FileUse | Mistake, at: float = 1.0
) -> EpisodeRow:
    """An episode; `experience` sets its row number."""

    commands = tuple(one for one in facts if isinstance(one, CommandUse))
    files = tuple(one for one in facts if isinstance(one, FileUse))
    mistakes = tuple(one for one in facts if isinstance(one, Mistake))
    calls = ". ".join(one.name for one in commands)
    vector, call_vector = EMBEDDER.embed([request, calls]).astype(np.float16)
    return EpisodeRow(
        row=0,
        session=SessionId(session),
        source="test",
        project="app",
        at=at,
        ending="well",
        quarantined="",
        words=words(request).tobytes(),
        call_words=words(calls).tobytes(),
        vector=vector.tobytes(),
        call_vector=call_vector.tobytes(),
        facts=EpisodeFacts(commands, files, mistakes),
    )


def experience(*episodes: EpisodeRow) -> Experience:
    """The episodes as experience of the project `app`; their rows are 10, 13, 16 and so on."""
    rows = [one._replace(row=10 + 3 * number) for number, one in enumerate(episodes)]
    return Experience("app", rows, EMBEDDER)
