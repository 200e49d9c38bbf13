"""The words of a shell command as values: what a word says after unquoting, and what in it cannot
be known before the command runs. Expanding braces and splitting at blanks happen here; what a
variable or a substitution stands for is left to `expansion`.

While a word is being put together, every character that quotes protect is moved to a private place
of its own, so that what is still in its ordinary place is what the shell would act upon.
"""

import re
from typing import NamedTuple

UNKNOWN = "\x00"
"""Stands in a word for a value that only the running shell knows."""

OUTPUT = "\x01"
"""Stands in a word for what a command will print."""

PARENT = "%parent"
"""Stands for the number of the process that started the shell."""

PLACEHOLDER = "${__unknown__}"
"""The form that an unknown value takes where a script is parsed again."""

_PROTECTED = 0xE000
_EMPTY = chr(_PROTECTED)
_ACTIVE = "*?[]{},~ \t\n."
_PROTECT = {ord(one): chr(_PROTECTED + ord(one)) for one in _ACTIVE}
_RELEASE = {_PROTECTED: "", **{_PROTECTED + ord(one): one for one in _ACTIVE}}
_FROM_VALUE = {_PROTECTED + ord(one): one for one in "*?[] \t\n"}
_FROM_PATTERN = {_PROTECTED + ord(one): one for one in "*?[]"}
_PATTERN = re.compile(r"[*?\[]")
_BLANKS = re.compile(r"[ \t\n]+")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?")

MOST_WORDS = 64
"""How many words braces may make; what makes more is not followed."""


def names(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


class Word(NamedTuple):
    """A word as the program gets it, `pattern` when the shell makes names of files out of it."""

    text: str
    pattern: bool = False

    @property
    def known(self) -> bool:
        return not (UNKNOWN in self.text or OUTPUT in self.text)


def protect(text: str) -> str:
    """Text as it is inside quotes; empty quotes still make a word."""
    return text.translate(_PROTECT) or _EMPTY


def as_value(word: Word) -> str:
    """A word in the form in which variables are kept; a pattern stays one."""
    text = protect(word.text)
    return text.translate(_FROM_PATTERN) if word.pattern else text


def release(text: str) -> str:
    """The text that a program gets."""
    return text.translate(_RELEASE)


def unprotect_value(text: str) -> str:
    """A variable's value outside quotes: blanks split it and patterns work, braces do not."""
    return text.translate(_FROM_VALUE)


def protect_value(text: str) -> str:
    """A variable's value inside quotes. A pattern stays one: a loop may have put it there."""
    return text.replace(" ", chr(_PROTECTED + 32)).translate({9: _PROTECT[9], 10: _PROTECT[10]})


def split(text: str) -> list[Word]:
    """The words that a piece of a command line becomes: braces first, then blanks."""
    return [
        Word(release(piece), _PATTERN.search(piece) is not None)
        for each in (_braces(text) if "{" in text else (text,))
        for piece in _BLANKS.split(each)
        if piece
    ]


def _braces(text: str) -> list[str]:
    done: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop()
        for found in _BRACES.finditer(one):
            choices = _choices(found[1])
            if choices is not None:
                break
        else:
            done.append(one)
            continue
        waiting.extend(one[: found.start()] + each + one[found.end() :] for each in choices[::-1])
        if len(done) + len(waiting) > MOST_WORDS:
            return [UNKNOWN]
    return done


def _choices(inside: str) -> list[str] | None:
    if "," in inside:
        return inside.split(",")
    if _RANGE.fullmatch(inside):
        first, last = inside.split("..")[:2]
        if first.isalpha() and last.isalpha() and len(first) == len(last) == 1:
            low, high = sorted((ord(first), ord(last)))
            return [chr(each) for each in range(low, high + 1)]
        return [UNKNOWN]
    return None
