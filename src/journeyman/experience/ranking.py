"""Ranks the requests of a library by their nearness to a task: by words (Okapi BM25) and by meaning
(vectors), of requests and of the calls that served them. Each measure is divided by its largest
value, and the two are added. In a second round the vectors of the nearest are added to the task's,
and the nearest few hundred are ranked again (Rocchio relevance feedback).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from journeyman.learning.search_keys import Words
from journeyman.models.embedder import Vectors

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual k1 and b of BM25."""

_Pairs = NDArray[np.uint64]
"""A word in the upper half and a document in the lower half, so that one sort groups equal
pairs."""

_FEEDBACK, _FEEDBACK_SHARE = 40, 0.1
"""How many of the nearest documents are used as feedback: this many, but no more than this share of
a small library."""

_RANKED_AGAIN, _DIGITS, _MOST_EQUAL = 200, 5, 2

_Numbers = NDArray[np.float32]


class Bm25:
    """Documents, each a list of numbered words in every field, and how well they match a query."""

    def __init__(self, *fields: Sequence[Words]) -> None:
        self._documents = len(fields[0])
        weighted = [_weighted(field) for field in fields]
        pairs = np.concatenate([pairs for pairs, _ in weighted])
        weights = np.concatenate([weights for _, weights in weighted])
        if len(fields) > 1:
            pairs, place = np.unique(pairs, return_inverse=True)
            weights = np.bincount(place, weights, minlength=len(pairs))
        self._weights = weights.astype(np.float32)
        self._holders = (pairs & np.uint64(0xFFFFFFFF)).astype(np.intp)
        terms = (pairs >> np.uint64(32)).astype(np.uint32)
        self._terms, self._starts = np.unique(terms, return_index=True)
        self._ends = np.append(self._starts[1:], len(terms))

    def scores(self, task_words: Words) -> NDArray[np.float32]:
        """Return how well each document matches the words."""
        scores = np.zeros(self._documents, dtype=np.float32)
        for at in np.flatnonzero(np.isin(self._terms, task_words)).tolist():
            part = slice(self._starts[at], self._ends[at])
            scores[self._holders[part]] += self._weights[part]
        return scores


def _weighted(field: Sequence[Words]) -> tuple[_Pairs, NDArray[np.float64]]:
    """Return the pairs of one field in ascending order, and their weights."""
    lengths = np.fromiter((len(document) for document in field), dtype=np.int64, count=len(field))
    if not lengths.sum():
        return np.zeros(0, dtype=np.uint64), np.zeros(0)
    pairs = np.concatenate(field).astype(np.uint64) << np.uint64(32)
    pairs |= np.repeat(np.arange(len(field), dtype=np.uint64), lengths)
    pairs, counts = np.unique(pairs, return_counts=True)
    _, of_term, holding = np.unique(pairs >> np.uint64(32), return_inverse=True, return_counts=True)
    length = lengths[(pairs & np.uint64(0xFFFFFFFF)).astype(np.intp)] / lengths.mean()
    damped = counts + _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
    rarity = np.log1p((len(field) - holding + 0.5) / (holding + 0.5))[of_term]
    return pairs, rarity * counts * (_SATURATION + 1) / damped


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
        self._rows = np.asarray(rows, dtype=np.int64)
        self._requests = np.ascontiguousarray(vectors, dtype=np.float32)
        self._words = Bm25(words, call_words)
        joined = self._requests + call_vectors.astype(np.float32)
        lengths = np.linalg.norm(joined, axis=1, keepdims=True)
        self._documents = (joined / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def nearest(self, vector: NDArray[np.float32], task_words: Words, *, most: int) -> list[Ranked]:
        """Return the `most` nearest documents, nearest first, equal ones by row. Ties at the end
        are included, so that the order of the library does not matter, unless there are very many.
        """
        if not len(self):
            return []
        by_words = _scaled(self._words.scores(task_words))
        score = by_words + _scaled(_similarity(self._documents, vector))
        positions = _largest(score, max(most, _RANKED_AGAIN))
        score = score[positions]
        if feedback := min(_FEEDBACK, int(len(self) * _FEEDBACK_SHARE)):
            nearest = self._documents[positions]
            wider = vector + nearest[:feedback].mean(axis=0)
            score = by_words[positions] + _scaled(_similarity(nearest, wider))
        positions = positions[_largest(score, most)]
        similarity = _similarity(self._requests[positions], vector)
        rows = self._rows[positions].tolist()
        return [*map(Ranked, rows, similarity.tolist())]


def _similarity(vectors: Vectors, vector: NDArray[np.float32]) -> _Numbers:
    # Rounded, because the same vector in another position may give another last digit.
    return np.round(vectors @ vector, _DIGITS)


def _scaled(values: _Numbers) -> _Numbers:
    """Return the values as shares of the largest; negative ones count as zero."""
    above = np.maximum(values, np.float32(0.0))
    largest = above.max()
    return above / largest if largest > 0 else above


def _largest(values: _Numbers, most: int) -> NDArray[np.intp]:
    """Return the positions of the largest values, largest first, equal ones in their order."""
    positions = np.arange(len(values))
    if len(values) > most:
        positions = np.flatnonzero(values >= np.partition(values, -most)[-most])
    return positions[np.argsort(-values[positions], kind="stable")][: _MOST_EQUAL * most]
