"""Which documents of a library are nearest to a task: by words (BM25) and by meaning (vectors).
Each measure is divided by its largest value, and the two are added.

A document is a request and, where they are given, the calls that served it. A task says what is
wanted and not how to do it, so with calls there is a second round: the vectors of the nearest
documents are added to the task's, and the nearest few hundred are ranked again (relevance
feedback after Rocchio). That brings up documents with calls like those that served similar
requests.

An index is made once for a library and asked many times; it holds arrays and row numbers only.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.embeddings.embedder import Vectors
from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.words import NO_WORDS, Words

_FEEDBACK = 20
_FEEDBACK_SHARE = 0.1
"""How many of the nearest documents tell what the task is about: this many, and of a small library
no more than this share."""

_RANKED_AGAIN = 200

_DIGITS = 5
_MOST_EQUAL = 2

_Numbers = NDArray[np.float32]


class Ranked(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the index and how near it is. `score` orders the answers to one question, from 1 for
    the nearest down to 0, and says nothing across questions. `similarity` (the cosine between the
    two requests) and `matched` (the share of the task's words that the document has, rare words
    counting for more) do: a task for which no answer has both has no neighbour.
    """

    row: int
    similarity: float
    score: float
    matched: float = 0.0


class Index:
    """The documents of a library as arrays: `rows` names them, in rising order, and the entries of
    the others with the same number belong to each: the vector and the words of its request and,
    unless the library has none, of its calls.
    """

    def __init__(
        self,
        rows: Sequence[int],
        vectors: Vectors,
        words: Sequence[Words],
        *,
        call_vectors: Vectors | None = None,
        call_words: Sequence[Words] | None = None,
    ) -> None:
        self._rows = np.asarray(rows, dtype=np.int64)
        self._requests = np.ascontiguousarray(vectors, dtype=np.float32)
        self._words = Bm25(words) if call_words is None else Bm25(words, call_words)
        self._has_calls = call_vectors is not None
        self._documents = self._requests
        if call_vectors is not None:
            self._documents = _unit(self._requests + call_vectors.astype(np.float32))

    def __len__(self) -> int:
        return len(self._rows)

    def vectors_of(self, rows: Sequence[int]) -> Vectors:
        """The vectors of the requests of these rows."""
        found: Vectors = self._requests[np.searchsorted(self._rows, rows)]
        return found

    def nearest(
        self,
        vector: NDArray[np.float32],
        task_words: Words,
        compounds: Words = NO_WORDS,
        *,
        most: int,
        widened: bool = True,
    ) -> list[Ranked]:
        """The `most` nearest documents, the nearest first and equal ones by row. Equal ones at the
        end are taken together, so that the order of the library does not matter; only of very many
        some are left out. `compounds` are further words of the task, which count only if the
        library has them. Without the second round the task is not `widened`.
        """
        if not len(self):
            return []
        task_words = np.concatenate([task_words, self._words.known(compounds)])
        by_words = _scaled(self._words.scores(task_words))
        score = by_words + _scaled(_similarity(self._documents, vector))
        places = _largest(score, max(most, _RANKED_AGAIN))
        score = score[places]
        feedback = min(_FEEDBACK, int(len(self) * _FEEDBACK_SHARE))
        if self._has_calls and feedback and widened:
            nearest = self._documents[places]
            wider = vector + nearest[:feedback].mean(axis=0)
            score = by_words[places] + _scaled(_similarity(nearest, wider))
        first = _largest(score, most)
        places, score = places[first], score[first]
        score = score / score[0] if score[0] > 0 else np.ones_like(score)
        similarity = _similarity(self._requests[places], vector)
        matched = self._words.matched(task_words, places)
        return [
            Ranked(row=row, similarity=near, score=joined, matched=share)
            for row, near, joined, share in zip(
                self._rows[places].tolist(),
                similarity.tolist(),
                score.tolist(),
                matched.tolist(),
                strict=True,
            )
        ]


def _similarity(vectors: Vectors, vector: NDArray[np.float32]) -> _Numbers:
    # Rounded, because the same vector at another place may come to another last digit.
    found: _Numbers = np.round(vectors @ vector, _DIGITS)
    return found


def _scaled(values: _Numbers) -> _Numbers:
    """The values as shares of the largest; what is below zero counts as zero."""
    above = np.maximum(values, np.float32(0.0))
    largest = above.max()
    return above / largest if largest > 0 else above


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _largest(values: _Numbers, most: int) -> NDArray[np.intp]:
    """Where the largest values stand, the largest first, equal ones in their order."""
    if len(values) > most:
        least = np.partition(values, len(values) - most)[len(values) - most]
        taken = np.flatnonzero(values >= least)
    else:
        taken = np.arange(len(values))
    return taken[np.argsort(-values[taken], kind="stable")][: _MOST_EQUAL * most]
