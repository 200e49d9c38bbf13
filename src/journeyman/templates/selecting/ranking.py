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


_DIGITS = 5
_MOST_EQUAL = 2


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
        # Rounded, because the same vector at another place may come to another last digit.
        similarity = np.round(self._vectors @ vector, _DIGITS)
        score = np.zeros(len(self))
        for values, above in ((self._words.scores(task_words), 0.0), (similarity, -np.inf)):
            places, ranks = _ranked(values, most, above=above)
            score[places] += 1.0 / (_RANK_OFFSET + ranks)
        found = np.flatnonzero(score)
        return [
            Ranked(
                row=int(self._rows[at]), similarity=float(similarity[at]), score=float(score[at])
            )
            for at in found[np.argsort(-score[found], kind="stable")]
        ]


def _ranked(
    values: NDArray[np.float64] | NDArray[np.float32], most: int, *, above: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the largest values stand, and the rank of each: how many are larger. Equal values have
    one rank and are taken together, so that the order of the library does not matter; only of
    very many equal ones some are left out.
    """
    if len(values) > most:
        least = np.partition(values, len(values) - most)[len(values) - most]
        taken = np.flatnonzero((values >= least) & (values > above))
    else:
        taken = np.flatnonzero(values > above)
    taken = taken[np.argsort(-values[taken], kind="stable")][: _MOST_EQUAL * most]
    falling = -values[taken]
    return taken, np.searchsorted(falling, falling)
