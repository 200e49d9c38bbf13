"""What people want, by what they said: which remarks are wishes, which of them say the same, and
which forbid something.
"""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from journeyman.learning.search_keys import STOP_WORDS
from journeyman.redaction.instructions import find_suspicion

T = TypeVar("T")

QUOTED_SPEECH = re.compile(
    r"(?<!\w)(?:'[^'\n]*\s[^'\n]*'|\"[^\"\n]*\s[^\"\n]*\"|`[^`\n]*\s[^`\n]*`|“[^”]*”|«[^»]*»)(?!\w)"
)
"""Quoted text of more than a word, which another may have written."""

_ALIKE = 0.6
"""The share of words from which two remarks say the same."""

_WORD = re.compile(r"[^\W\d_]{3,}")
_WISHES = re.compile(
    r"\b(?:don'?t|do not|never|always|instead|use|prefer|should(?:n'?t)?|must|avoid|rather|only"
    r"|keep|without|no need|stop)\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(r"\b(?:don'?t|never|not|stop|avoid|without|no)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<\w+:\d+>")
_EVERYDAY = STOP_WORDS | {"here", "again", "repo", "repository", "project", "told", "said"}
_FEWEST_WORDS, _MOST_WORDS = 4, 40


def grouped(remarks: Iterable[T], words_of: Callable[[T], str]) -> list[list[T]]:
    """Return the remarks that are wishes, each with all that say the same, in their order."""
    groups: list[list[T]] = []
    for remark in remarks:
        words = words_of(remark)
        if not (_about(words) and _is_wish(words)):
            continue
        for group in groups:
            if is_alike(words, words_of(group[0])):
                group.append(remark)
                break
        else:
            groups.append([remark])
    return groups


def is_alike(one: str, other: str) -> bool:
    """Whether two remarks say the same: for or against, about nearly the same words."""
    first, second = _about(one), _about(other)
    is_near = len(first & second) >= max(1, _ALIKE * len(first | second))
    return is_near and forbids(one) == forbids(other)


def forbids(words: str) -> bool:
    """Whether a remark is against something."""
    return _FORBIDS.search(words) is not None


def forbids_by_name(words: str, name: str) -> bool:
    """Whether a remark is against a command or a file: what forbids stands before its name, in the
    same clause. "Never run pytest, use bin/test" is not against `bin/test`.
    """
    clause = rf"{_FORBIDS.pattern}(?: use)?(?:(?!\b(?:but|use|instead|rather|prefer)\b)[^.,;:])*?"
    pattern = rf"{clause}(?<![\w/.-])(?:\./)?{re.escape(name)}(?![\w/-])"
    return re.search(pattern, words, re.IGNORECASE) is not None


def may_be_told(words: str) -> bool:
    """Whether a wish may be told without a person's consent: what quotes someone, or had a secret
    in it, waits.
    """
    return not (QUOTED_SPEECH.search(words) or _PLACEHOLDER.search(words))


def _about(words: str) -> set[str]:
    return {*_WORD.findall(_WISHES.sub(" ", words.casefold()))} - _EVERYDAY


def _is_wish(words: str) -> bool:
    is_short = _FEWEST_WORDS <= len(words.split()) <= _MOST_WORDS
    return (
        is_short and _WISHES.search(words) is not None and not find_suspicion((), requests=(words,))
    )
