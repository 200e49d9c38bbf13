"""Matching by words: Okapi BM25 over numbered words, in arrays, with the weights worked out when
the library is read and not when it is asked.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from journeyman.templates.selecting.words import Words

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual k1 and b."""


class Bm25:
    """Documents, each a list of numbered words, and how well they match others."""

    def __init__(self, documents: Sequence[Words]) -> None:
        self._documents = len(documents)
        lengths = np.fromiter((len(one) for one in documents), dtype=np.int64, count=len(documents))
        if not lengths.sum():
            self._terms = np.zeros(0, dtype=np.uint32)
            return
        # One number for word and document, so that one sort brings equal pairs together.
        pairs = np.concatenate(documents).astype(np.uint64) << np.uint64(32)
        pairs |= np.repeat(np.arange(len(documents), dtype=np.uint64), lengths)
        pairs, counts = np.unique(pairs, return_counts=True)
        terms = (pairs >> np.uint64(32)).astype(np.uint32)
        self._holders = (pairs & np.uint64(0xFFFFFFFF)).astype(np.intp)
        self._terms, self._starts = np.unique(terms, return_index=True)
        self._ends = np.append(self._starts[1:], len(terms))
        holding = self._ends - self._starts
        rarity = np.log1p((len(documents) - holding + 0.5) / (holding + 0.5))
        length = lengths[self._holders] / lengths.mean()
        damped = counts + _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
        self._weights = np.repeat(rarity, holding) * counts * (_SATURATION + 1) / damped

    def scores(self, task_words: Words) -> NDArray[np.float64]:
        """How well each document matches the words."""
        scores = np.zeros(self._documents)
        for word in np.unique(task_words):
            at = int(np.searchsorted(self._terms, word))
            if at < len(self._terms) and self._terms[at] == word:
                part = slice(self._starts[at], self._ends[at])
                scores[self._holders[part]] += self._weights[part]
        return scores
