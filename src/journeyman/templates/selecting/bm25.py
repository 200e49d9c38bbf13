"""Matching by words: Okapi BM25 over numbered words, in arrays, with the weights computed when the
library is read and not at each question.

A document may have several fields, such as its request and its calls. Each field is weighted on
its own, with its own rarities and its own average length, and a document's weights are summed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from journeyman.templates.selecting.words import Words

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual k1 and b."""

_Pairs = NDArray[np.uint64]
"""A word in the upper half and a document in the lower one, so that one sort brings equal pairs
together."""


class Bm25:
    """Documents, each a list of numbered words in every field, and how well they match others."""

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

    def known(self, words: Words) -> Words:
        """Those of the words that a document has."""
        if not len(self._terms):
            return words[:0]
        at = np.minimum(np.searchsorted(self._terms, words), len(self._terms) - 1)
        found: Words = words[self._terms[at] == words]
        return found

    def scores(self, task_words: Words) -> NDArray[np.float32]:
        """How well each document matches the words."""
        scores = np.zeros(self._documents, dtype=np.float32)
        for word in np.unique(task_words):
            part = self._postings(word)
            scores[self._holders[part]] += self._weights[part]
        return scores

    def matched(self, task_words: Words, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """Which share of the words the documents at `places` have, from 0 to 1. A rare word counts
        for more than a common one, and a word that no document has counts most.
        """
        total = 0.0
        found = np.zeros(len(places))
        for word in np.unique(task_words):
            holders = self._holders[self._postings(word)]
            rarity = float(_rarity(self._documents, np.array(len(holders))))
            total += rarity
            if len(holders):
                at = np.minimum(np.searchsorted(holders, places), len(holders) - 1)
                found += rarity * (holders[at] == places)
        return found / total if total else found

    def _postings(self, word: np.uint32) -> slice:
        at = int(np.searchsorted(self._terms, word))
        if at < len(self._terms) and self._terms[at] == word:
            return slice(int(self._starts[at]), int(self._ends[at]))
        return slice(0, 0)


def _weighted(field: Sequence[Words]) -> tuple[_Pairs, NDArray[np.float64]]:
    """The pairs of one field in rising order, and what each weighs."""
    lengths = np.fromiter((len(one) for one in field), dtype=np.int64, count=len(field))
    if not lengths.sum():
        return np.zeros(0, dtype=np.uint64), np.zeros(0)
    pairs = np.concatenate(field).astype(np.uint64) << np.uint64(32)
    pairs |= np.repeat(np.arange(len(field), dtype=np.uint64), lengths)
    pairs, counts = np.unique(pairs, return_counts=True)
    _, of_term, holding = np.unique(pairs >> np.uint64(32), return_inverse=True, return_counts=True)
    length = lengths[(pairs & np.uint64(0xFFFFFFFF)).astype(np.intp)] / lengths.mean()
    damped = counts + _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
    rarity = _rarity(len(field), holding)[of_term]
    return pairs, rarity * counts * (_SATURATION + 1) / damped


def _rarity(documents: int, holding: NDArray[np.int64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.log1p((documents - holding + 0.5) / (holding + 0.5))
    return found
