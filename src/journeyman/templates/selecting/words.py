"""Texts as words for matching: small, folded, common endings off, each as a number, so that a
library of many patterns is searched with arrays. Nothing here knows a language well; what words
miss, the vectors find.
"""

import json
import re
import zlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from journeyman.records import Pattern

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


_SMALL_TALK_LIST = """afternoon again ahead all alright am any awesome bye chat cheers continue
cool day doing done evening fine friend go good goodbye great greetings hello hey hi how i'm
morning much name nice night nope ok okay perfect please proceed ready right sure test testing
thank thanks there today welcome well who whats what's yeah yep yes yo"""
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
        parts += [step.tool, *_keys(step.arguments)]
    return words(" ".join(parts))


def _split(text: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(" ", text).casefold())


def _numbered(found: Iterable[str]) -> Words:
    numbers = [zlib.crc32(word.encode("utf-8", "replace")) for word in found]
    return np.array(numbers, dtype=np.uint32)


def _keys(arguments: str) -> list[str]:
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return []
    return [str(key) for key in found] if isinstance(found, dict) else []


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            stem = word[: -len(ending)]
            return stem[:-1] if stem[-1] == stem[-2] else stem  # cancelled, stopping
    return word
