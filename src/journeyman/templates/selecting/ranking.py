"""Which patterns of a library are nearest to a task: by meaning (vectors) and by words (BM25),
joined by rank. The two measures have no common scale, but their orders can be joined: a pattern
that stands high in both comes first.

An index is made once for a library and asked many times; it holds arrays and row numbers only.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.embeddings.embedder import Vectors
from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.words import Words

_RANK_OFFSET = 60
"""What is added to a rank before it is inverted: the usual constant, which keeps the first place
of one order from outweighing good places in both."""


class Ranked(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the index and how near it is: by meaning, and by the joined order."""

    row: int
    similarity: float
    score: float


class Index:
    """The patterns of a library as arrays: `rows` names them, in rising order, and the row of
    `vectors` and the entry of `words` with the same number belong to each.
    """

    def __init__(self, rows: Sequence[int], vectors: Vectors, words: Sequence[Words]) -> None:
        self._rows = np.asarray(rows, dtype=np.int64)
        self._vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self._words = Bm25(words)

    def __len__(self) -> int:
        return len(self._rows)

    def vectors_of(self, rows: Sequence[int]) -> Vectors:
        """The vectors of these rows."""
        found: Vectors = self._vectors[np.searchsorted(self._rows, rows)]
        return found

    def nearest(
        self,
        vector: NDArray[np.float32],
        task_words: Words,
        *,
        most: int,
    ) -> list[Ranked]:
        """The `most` nearest patterns by each measure, the nearest by both first."""
        if not len(self):
            return []
        similarity = self._vectors @ vector
        by_words = self._words.scores(task_words)
        score = np.zeros(len(self))
        for order in (_order(by_words, most, above=0.0), _order(similarity, most, above=-np.inf)):
            score[order] += 1.0 / (_RANK_OFFSET + np.arange(len(order)))
        found = np.flatnonzero(score)
        # Equal scores in the order of the library, so that the same question has one answer.
        found = found[np.lexsort((found, -score[found]))]
        return [
            Ranked(
                row=int(self._rows[at]), similarity=float(similarity[at]), score=float(score[at])
            )
            for at in found
        ]


def _order(
    values: NDArray[np.float64] | NDArray[np.float32], most: int, *, above: float
) -> NDArray[np.intp]:
    """Where the largest values stand, the largest first."""
    if len(values) > most:
        # All that are as large as the last one taken, so that ties are broken by place below.
        least = np.partition(values, len(values) - most)[len(values) - most]
        taken = np.flatnonzero((values >= least) & (values > above))
    else:
        taken = np.flatnonzero(values > above)
    return taken[np.lexsort((taken, -values[taken]))][:most]
