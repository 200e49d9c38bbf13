"""Which documents of a library are nearest to a task: by words (Okapi BM25) and by meaning
(vectors). Each measure is divided by its largest value, and the two are added. Where documents have
the calls that served a request, there is a second round: the vectors of the nearest are added to
the task's, and the nearest few hundred are ranked again (relevance feedback after Rocchio).
"""

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.embeddings.embedder import Vectors
from journeyman.records import Pattern
from journeyman.templates.translation.argument_fields import as_object

Words = NDArray[np.uint32]

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s")

_EVERYWHERE = """a an and are as at be been but by can could did do does for from had has have
hello help hi how i if in into is it its just like me my need not of on or our
out please so some that the their them then there these they this to up us want
was we were what when which who will with would you your"""
_COMMON = frozenset(_EVERYWHERE.split())

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
"""What people say when they ask for nothing."""

_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75
"""The usual k1 and b."""

_Pairs = NDArray[np.uint64]
"""A word in the upper half and a document in the lower one, so that one sort brings equal pairs
together."""

_FEEDBACK = 20
_FEEDBACK_SHARE = 0.1
"""How many of the nearest documents tell what the task is about: this many, and of a small library
no more than this share."""

_RANKED_AGAIN, _DIGITS, _MOST_EQUAL = 200, 5, 2

_Numbers = NDArray[np.float32]


def says_nothing(text: str) -> bool:
    """Whether a text has no word to go by, as a greeting has none."""
    said = _WORD.findall(text.casefold().replace("'", ""))
    return all(word in _COMMON or word in _SMALL_TALK for word in said)


def words(text: str) -> Words:
    """The words of a text, in order, as numbers."""
    return _numbered(word for word in map(_stem, _split(text)) if word not in _COMMON)


def task_words(task: str) -> Words:
    """The words of a task, and neighbouring ones as one: "time stamp" finds "timestamp"."""
    joined = (_stem(first + second) for first, second in pairwise(_split(task)))
    return np.concatenate([words(task), _numbered(joined)])


def words_of(pattern: Pattern) -> Words:
    """What a pattern is found by: its intent, its tools, and what its arguments are called."""
    calls = [name for step in pattern.steps for name in (step.tool, *as_object(step.arguments))]
    return np.concatenate([words(pattern.intent), words(" ".join(calls))])


def _split(text: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(" ", text).casefold())


def _numbered(found: Iterable[str]) -> Words:
    numbers = [zlib.crc32(word.encode("utf-8", "replace")) for word in found]
    return np.array(numbers, dtype=np.uint32)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            return stem[:-1] if stem[-1] == stem[-2] else stem  # cancelled, stopping
    return word


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

    def scores(self, task_words: Words) -> NDArray[np.float32]:
        """How well each document matches the words."""
        scores = np.zeros(self._documents, dtype=np.float32)
        for at in np.flatnonzero(np.isin(self._terms, task_words)).tolist():
            part = slice(self._starts[at], self._ends[at])
            scores[self._holders[part]] += self._weights[part]
        return scores


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
    rarity = np.log1p((len(field) - holding + 0.5) / (holding + 0.5))[of_term]
    return pairs, rarity * counts * (_SATURATION + 1) / damped


class Ranked(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the index and how near it is. `score` orders the answers to one question, from 1 for
    the nearest down to 0, and says nothing across questions. `similarity` (the cosine between the
    two requests) and `matched` (whether the document has a word of the task) do: a task for which
    no answer has both has no neighbour.
    """

    row: int
    similarity: float
    score: float
    matched: bool = False


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
            joined = self._requests + call_vectors.astype(np.float32)
            lengths = np.linalg.norm(joined, axis=1, keepdims=True)
            self._documents = (joined / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def nearest(
        self, vector: NDArray[np.float32], task_words: Words, *, most: int, widened: bool = True
    ) -> list[Ranked]:
        """The `most` nearest documents, the nearest first and equal ones by row. Equal ones at the
        end are taken together, so that the order of the library does not matter; only of very many
        some are left out. Without the second round the task is not `widened`.
        """
        if not len(self):
            return []
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
        columns = (self._rows[places], similarity, score, by_words[places] > 0)
        return [
            Ranked(row=row, similarity=near, score=joined, matched=matched)
            for row, near, joined, matched in zip(*(one.tolist() for one in columns), strict=True)
        ]


def _similarity(vectors: Vectors, vector: NDArray[np.float32]) -> _Numbers:
    # Rounded, because the same vector at another place may come to another last digit.
    return np.round(vectors @ vector, _DIGITS)


def _scaled(values: _Numbers) -> _Numbers:
    """The values as shares of the largest; what is below zero counts as zero."""
    above = np.maximum(values, np.float32(0.0))
    largest = above.max()
    return above / largest if largest > 0 else above


def _largest(values: _Numbers, most: int) -> NDArray[np.intp]:
    """Where the largest values stand, the largest first, equal ones in their order."""
    taken = np.arange(len(values))
    if len(values) > most:
        taken = np.flatnonzero(values >= np.partition(values, -most)[-most])
    return taken[np.argsort(-values[taken], kind="stable")][: _MOST_EQUAL * most]
