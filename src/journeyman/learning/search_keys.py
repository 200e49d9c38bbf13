"""What requests are found by: the stemmed words of a text as numbers, and the text that stands for
the calls of an episode.
"""

import re
import zlib
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from journeyman.learning.agent_tools import parse_arguments, shell_command
from journeyman.records import Episode

Words = NDArray[np.uint32]

_MAX_PARTS = 40

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS = ("ings", "ing", "ies", "ied", "ed", "es", "s")

_STOP_WORDS_LIST = """a an and are as at be been but by can could did do does for from had has have
hello help hi how i if in into is it its just like me my need not of on or our
out please so some that the their them then there these they this to up us want
was we were what when which who will with would you your"""
STOP_WORDS = frozenset(_STOP_WORDS_LIST.split())

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


def is_small_talk(text: str) -> bool:
    """Whether a text contains nothing but stop words and small talk, such as a greeting."""
    spoken = _WORD.findall(text.casefold().replace("'", ""))
    return all(word in STOP_WORDS or word in _SMALL_TALK for word in spoken)


def words(text: str) -> Words:
    """Return the stemmed words of a text, in order, as numbers."""
    return _numbered(word for word in map(_stem, _split(text)) if word not in STOP_WORDS)


def task_words(task: str) -> Words:
    """Return a task's words and its joined neighbouring words: "time stamp" finds "timestamp"."""
    joined = (_stem(first + second) for first, second in pairwise(_split(task)))
    return np.concatenate([words(task), _numbered(joined)])


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


def call_text(episode: Episode) -> str:
    """Return the calls of an episode in words: commands, tools, arguments, files."""
    parts: list[str] = []
    for command in episode.observed.commands:
        parts += (command.name,) if command.worked else ()
    for step in episode.steps:
        if not shell_command(step.tool, step.arguments):
            parts.append(" ".join((step.tool, *parse_arguments(step.arguments))).replace("_", " "))
    parts += (file.path.rpartition("/")[2] for file in episode.observed.files)
    return ". ".join(list(dict.fromkeys(parts))[:_MAX_PARTS])
