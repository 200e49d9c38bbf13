"""What was learned in a project, in memory: its facts, and the index that ranks its requests by
their nearness to a task. Nearness by words (Okapi BM25) and by meaning (vectors), of requests and
of the calls that served them, are each divided by the largest value and added. In a second round
the vectors of the nearest are added to the task's, and the nearest are ranked again (Rocchio
relevance feedback).
"""

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from journeyman.experience.facts import ProjectFacts, of_project
from journeyman.learning.search_keys import Words, task_words
from journeyman.models.embedder import DIMENSIONS, Embedder, Vectors
from journeyman.records.fact import FactDecision
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual k1 and b of BM25."""

_FEEDBACK, _FEEDBACK_SHARE = 40, 0.1
"""How many of the nearest documents are used as feedback: this many, but no more than this share of
a small library."""

_NEIGHBOURS, _DIGITS = 200, 5

_Numbers = NDArray[np.float32]


class Bm25:
    """Documents, each a list of numbered words, and how well they match a query."""

    def __init__(self, documents: Sequence[Words]) -> None:
        self._count = len(documents)
        lengths = np.array([len(document) for document in documents], dtype=np.int64)
        joined = np.concatenate([np.zeros(0, np.uint32), *documents])
        # A word in the upper half and a document in the lower half: one sort groups equal pairs.
        pairs = joined.astype(np.uint64) << np.uint64(32)
        pairs |= np.repeat(np.arange(self._count, dtype=np.uint64), lengths)
        pairs, counts = np.unique(pairs, return_counts=True)
        self._holders = (pairs & np.uint64(0xFFFFFFFF)).astype(np.intp)
        self._terms, self._starts, of_term, holding = np.unique(
            pairs >> np.uint64(32), return_index=True, return_inverse=True, return_counts=True
        )
        self._ends = self._starts + holding
        length = lengths[self._holders] / max(lengths.mean(), 1e-9)
        damped = counts + _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
        rarity = np.log1p((self._count - holding + 0.5) / (holding + 0.5))[of_term]
        self._weights = rarity * counts * (_SATURATION + 1) / damped

    def scores(self, task_words: Words) -> _Numbers:
        """Return how well each document matches the words."""
        scores = np.zeros(self._count)
        for at in np.flatnonzero(np.isin(self._terms, task_words)).tolist():
            part = slice(self._starts[at], self._ends[at])
            scores[self._holders[part]] += self._weights[part]
        return scores.astype(np.float32)


class Ranked(NamedTuple):
    """A row of the index, and the cosine between its request and the task."""

    row: int
    similarity: float


class Index:
    """The documents of a library as arrays. `rows` are their ids in ascending order, and the other
    arrays have one entry for each: the vectors and the words of its request and of its calls.
    """

    def __init__(
        self,
        rows: Sequence[int],
        vectors: Vectors,
        words: Sequence[Words],
        call_vectors: Vectors,
        call_words: Sequence[Words],
    ) -> None:
        self._rows = rows
        self._requests = vectors
        self._words, self._call_words = Bm25(words), Bm25(call_words)
        joined = vectors + call_vectors
        lengths = np.linalg.norm(joined, axis=1, keepdims=True)
        self._documents = (joined / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def nearest(self, vector: _Numbers, task_words: Words, *, most: int) -> list[Ranked]:
        """Return the `most` nearest documents, nearest first, equal ones by row."""
        by_words = self._words.scores(task_words) + self._call_words.scores(task_words)
        by_words = _scaled(by_words)
        score = by_words + _scaled(_similarity(self._documents, vector))
        nearest = np.argsort(-score, kind="stable")[: max(most, _FEEDBACK)]
        if feedback := min(_FEEDBACK, int(len(self._rows) * _FEEDBACK_SHARE)):
            wider = vector + self._documents[nearest[:feedback]].mean(axis=0)
            again = by_words[nearest] + _scaled(_similarity(self._documents[nearest], wider))
            nearest = nearest[np.argsort(-again, kind="stable")]
        nearest = nearest[:most]
        similarity = _similarity(self._requests[nearest], vector).tolist()
        return [Ranked(self._rows[at], one) for at, one in zip(nearest, similarity, strict=True)]


def _similarity(vectors: Vectors, vector: _Numbers) -> _Numbers:
    # Rounded, because the same vector in another position may give another last digit.
    return np.round(vectors @ vector, _DIGITS)


def _scaled(values: _Numbers) -> _Numbers:
    """Return the values as shares of the largest; negative ones count as zero."""
    above = np.maximum(values, np.float32(0.0))
    largest = above.max()
    return above / largest if largest > 0 else above


class Experience:
    """The episodes of a project, or of the whole library, with their facts and their index."""

    def __init__(
        self,
        project: str,
        rows: Iterable[EpisodeRow],
        embedder: Embedder,
        decisions: Iterable[FactDecision] = (),
        *,
        bots: bool = False,
    ) -> None:
        self.rows, self.bots = of_project(rows, bots=bots)
        self._embedder = embedder
        # What sessions of several projects show, or of none, is no fact of a project.
        self.facts = ProjectFacts(self.rows if project else (), decisions)

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
    """The experience of each project of a store, which is read again only when something new was
    learned. Threads may share it.
    """

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


def _vectors(stored: Sequence[bytes]) -> Vectors:
    vectors = np.frombuffer(b"".join(stored), dtype=np.float16)
    return vectors.astype(np.float32).reshape(-1, DIMENSIONS)
