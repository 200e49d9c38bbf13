"""Texts as words for matching: small, folded, common endings off, each as a number, so that a
library of many patterns is searched with arrays. Nothing here knows a language well; what words
miss, the vectors find.
"""

import re
import zlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from journeyman.records import Pattern
from journeyman.templates.translation.argument_fields import as_object

Words = NDArray[np.uint32]

NO_WORDS: Words = np.zeros(0, dtype=np.uint32)

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


def says_nothing(text: str) -> bool:
    """Whether a text has no word to go by, as a greeting has none."""
    said = _WORD.findall(text.casefold().replace("'", ""))
    return all(word in _COMMON or word in _SMALL_TALK for word in said)


def words(text: str) -> Words:
    """The words of a text, in order, as numbers."""
    return _numbered(word for word in map(_stem, _split(text)) if word not in _COMMON)


def compounds(text: str) -> Words:
    """What neighbouring words make when they are written as one, as numbers: a task may say "time
    stamp" where the library has "timestamp".
    """
    return _numbered(_stem(first + second) for first, second in pairwise(_split(text)))


def words_of(pattern: Pattern) -> Words:
    """What a pattern is found by: its intent, its tools, and what its arguments are called."""
    return np.concatenate([words(pattern.intent), words_of_calls(pattern)])


def words_of_calls(pattern: Pattern) -> Words:
    """The tools of a pattern, and what its arguments are called."""
    parts = []
    for step in pattern.steps:
        parts += [step.tool, *as_object(step.arguments)]
    return words(" ".join(parts))


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
