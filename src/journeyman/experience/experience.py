"""What was learned in a project, in memory: its facts, and the index that finds its requests. It is
read again only when something new was learned.
"""

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from journeyman.experience.facts import ProjectFacts, of_project
from journeyman.experience.ranking import Index, Ranked
from journeyman.learning.search_keys import task_words
from journeyman.models.embedder import DIMENSIONS, Embedder
from journeyman.records.fact import FactDecision
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store

_NEIGHBOURS = 200


class Experience:
    """The episodes of a project, or of the whole library, with their facts and their index."""

    def __init__(
        self,
        project: str,
        rows: Sequence[EpisodeRow],
        embedder: Embedder,
        decisions: Iterable[FactDecision] = (),
        *,
        bots: bool = False,
    ) -> None:
        self.project = project
        self.rows, self.bots = of_project(rows, bots=bots)
        self._embedder = embedder
        self._decisions = tuple(decisions)

    @cached_property
    def facts(self) -> ProjectFacts:
        # What sessions of several projects show, or of none, is no fact of a project.
        rows = self.rows if self.project else ()
        return ProjectFacts(self.project, rows, self._decisions, bots=True)

    @cached_property
    def index(self) -> Index:
        return Index(
            [row.row for row in self.rows],
            _vectors([row.vector for row in self.rows]),
            [np.frombuffer(row.words, dtype=np.uint32) for row in self.rows],
            _vectors([row.call_vector for row in self.rows]),
            [np.frombuffer(row.call_words, dtype=np.uint32) for row in self.rows],
        )

    @cached_property
    def well_ended(self) -> frozenset[int]:
        """The rows of the episodes that may be examples."""
        return frozenset(row.row for row in self.rows if row.ending == "well")

    def nearest(self, task: str) -> list[Ranked]:
        """Return the nearest requests, the nearest first."""
        if not self.rows:
            return []
        vector = self._embedder.embed([task])[0]
        return self.index.nearest(vector, task_words(task), most=_NEIGHBOURS)


class Experiences:
    """The experience of each project of a store. Threads may share it."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._loading = threading.RLock()
        self._revision = -1
        self._found: dict[tuple[str, bool], Experience] = {}

    def of(self, project: str = "", *, bots: bool = False) -> Experience:
        """Return what was learned in a project; without a name, in the whole library. Unless
        `bots`, people's sessions teach, and those of bots only where there are no others.
        """
        key = (project, bots)
        with self._loading:
            revision = self._store.episodes.revision()
            if revision != self._revision:
                self._found, self._revision = {}, revision
            if key not in self._found:
                rows = self._store.episodes.rows(project)
                decisions = self._store.facts.decisions(project) if project else ()
                self._found[key] = Experience(project, rows, self._embedder, decisions, bots=bots)
            return self._found[key]


def _vectors(stored: Sequence[bytes]) -> NDArray[np.float32]:
    vectors = np.frombuffer(b"".join(stored), dtype=np.float16)
    return vectors.astype(np.float32).reshape(-1, DIMENSIONS)
