"""Ranks the documents of a library by their nearness to a task: by words (Okapi BM25) and by
meaning (vectors). Each measure is divided by its largest value, and the two are added. If documents
include the calls that served a request, there is a second round: the vectors of the nearest are
added to the task's, and the nearest few hundred are ranked again (Rocchio relevance feedback).
"""

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.models.embedder import Vectors
from journeyman.records import Pattern
from journeyman.templates.agent_tools import parse_arguments

Words = NDArray[np.uint32]

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s")

_STOP_WORDS_LIST = """a an and are as at be been but by can could did do does for from had has have
hello help hi how i if in into is it its just like me my need not of on or our
out please so some that the their them then there these they this to up us want
was we were what when which who will with would you your"""
_STOP_WORDS = frozenset(_STOP_WORDS_LIST.split())

_SMALL_TALK_LIST = """afternoon again ah ahead all alright am amazing any appreciate appreciated
awesome bitte bonjour brilliant buddy buenas buenos buongiorno bye chat cheers ciao continue cool
danke day dear dias doing done evening everything excellent fantastic fine folks friend go good
goodbye gracias great greetings guten guys hallo hello help helpful hey hi hm hmm hola how howdy
i'm is job later lgtm lol look looking looks love mate merci moin moment morning much name nice
night nope nothing obrigado oh ok okay ola one perfect please proceed ready right salut see soon
sounds sup sure tag talk test testing thank thanks thats there thx today welcome well what's
whats who wonderful worked works yeah yep yes yo
olá tschüss привет спасибо ありがとう こんにちは 你好 谢谢"""
_SMALL_TALK = frozenset(_SMALL_TALK_LIST.split())
"""What people say when they do not ask for anything."""

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual k1 and b of BM25."""

_Pairs = NDArray[np.uint64]
"""A word in the upper half and a document in the lower half, so that one sort groups equal
pairs."""

_FEEDBACK = 20
_FEEDBACK_SHARE = 0.1
"""How many of the nearest documents are used as feedback: this many, but no more than this share of
a small library."""

_RANKED_AGAIN, _DIGITS, _MOST_EQUAL = 200, 5, 2

_Numbers = NDArray[np.float32]


def is_small_talk(text: str) -> bool:
    """Whether a text contains nothing but stop words and small talk, such as a greeting."""
    spoken = _WORD.findall(text.casefold().replace("'", ""))
    return all(word in _STOP_WORDS or word in _SMALL_TALK for word in spoken)


def words(text: str) -> Words:
    """Return the stemmed words of a text, in order, as numbers."""
    return _numbered(word for word in map(_stem, _split(text)) if word not in _STOP_WORDS)


def task_words(task: str) -> Words:
    """Return a task's words and its joined neighbouring words: "time stamp" finds "timestamp"."""
    joined = (_stem(first + second) for first, second in pairwise(_split(task)))
    return np.concatenate([words(task), _numbered(joined)])


def pattern_words(pattern: Pattern) -> Words:
    """Return the words by which a pattern is found: its intent, its tools, its argument names."""
    calls = [
        name for step in pattern.steps for name in (step.tool, *parse_arguments(step.arguments))
    ]
    return np.concatenate([words(pattern.intent), words(" ".join(calls))])


def _split(text: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(" ", text).casefold())


def _numbered(texts: Iterable[str]) -> Words:
    numbers = [zlib.crc32(word.encode("utf-8", "replace")) for word in texts]
    return np.array(numbers, dtype=np.uint32)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            return stem[:-1] if stem[-1] == stem[-2] else stem  # cancelled, stopping
    return word


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


class Ranked(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the index and how near it is. `score` orders the answers to one query, from 1 for
    the nearest down to 0, and is not comparable across queries. `similarity` (the cosine between
    the two requests) and `matched` (whether the document has a word of the task) are: a task for
    which no answer has both has no neighbour.
    """

    row: int
    similarity: float
    score: float
    matched: bool = False


class Index:
    """The documents of a library as arrays. `rows` are their ids in ascending order, and the other
    arrays have one entry for each: the vector and the words of its request and, unless the library
    has none, of its calls.
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
            joined = self._requests + call_vectors.astype(np.float32)
            lengths = np.linalg.norm(joined, axis=1, keepdims=True)
            self._documents = (joined / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def nearest(
        self, vector: NDArray[np.float32], task_words: Words, *, most: int, widened: bool = True
    ) -> list[Ranked]:
        """Return the `most` nearest documents, nearest first, equal ones by row. Ties at the end
        are included, so that the order of the library does not matter, unless there are very many.
        `widened` adds the second round.
        """
        if not len(self):
            return []
        by_words = _scaled(self._words.scores(task_words))
        score = by_words + _scaled(_similarity(self._documents, vector))
        positions = _largest(score, max(most, _RANKED_AGAIN))
        score = score[positions]
        feedback = min(_FEEDBACK, int(len(self) * _FEEDBACK_SHARE))
        if self._has_calls and feedback and widened:
            nearest = self._documents[positions]
            wider = vector + nearest[:feedback].mean(axis=0)
            score = by_words[positions] + _scaled(_similarity(nearest, wider))
        first = _largest(score, most)
        positions, score = positions[first], score[first]
        score = score / score[0] if score[0] > 0 else np.ones_like(score)
        similarity = _similarity(self._requests[positions], vector)
        columns = (self._rows[positions], similarity, score, by_words[positions] > 0)
        return [
            Ranked(row=row, similarity=near, score=combined, matched=matched)
            for row, near, combined, matched in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]


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
