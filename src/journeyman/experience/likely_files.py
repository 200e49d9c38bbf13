"""Which files the next session of a project is likely to need."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from journeyman.records import SessionId

MAIN_BRANCHES = frozenset(("", "main", "master", "trunk", "develop", "HEAD"))

_RECENT = 15
_SAME_BRANCH, _SAME_PERSON, _SAME_WORD = 5.0, 3.0, 1.0
"""After how many later sessions a session counts half, and how much more a file counts that was
used on the same branch or by the same person, or has a word of the branch's name in its path (times
how rare the word is). On 87 real sessions any value near these is as good.
"""

_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


class WorkedOn(NamedTuple):
    """What a session worked on: the row of its longest request, its files by use, and its last
    check.
    """

    session: SessionId
    branch: str
    person: str
    at: float | None
    row: int
    files: Mapping[str, int]
    check: str
    check_worked: bool
    is_bot: bool = False


def words_in(name: str) -> set[str]:
    """Return the words that a name in code, a path or a branch is made of."""
    return {part.casefold() for part in _PARTS.findall(name)}


def likely_files(sessions: Sequence[WorkedOn], branch: str, person: str) -> dict[str, float]:
    """Return the files of earlier sessions, the oldest first, with how likely the next one needs
    them, up to 1: those of this branch and this person count more, older ones less.
    """
    own_branch = branch not in MAIN_BRANCHES
    scores: defaultdict[str, float] = defaultdict(float)
    for number, one in enumerate(reversed(sessions)):
        weight = 0.5 ** (number / _RECENT)
        if own_branch and branch == one.branch:
            weight *= _SAME_BRANCH
        if person and person == one.person:
            weight *= _SAME_PERSON
        for path, uses in one.files.items():
            scores[path] += weight * math.log1p(uses)
    if own_branch:
        named, words = words_in(branch), {path: words_in(path) for path in scores}
        paths_with = Counter(word for found in words.values() for word in found)
        for path, found in words.items():
            shared = sorted(found & named)
            rarity = sum(math.log(len(words) / paths_with[word]) for word in shared)
            scores[path] *= 1 + _SAME_WORD * rarity
    most = max(scores.values(), default=1.0)
    ordered = sorted(scores, key=lambda path: (-scores[path], path))
    return {path: scores[path] / most for path in ordered}
