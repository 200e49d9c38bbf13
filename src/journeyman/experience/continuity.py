"""What the sessions of a project worked on, and which files the next one is likely to need."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from journeyman.learning.commands import check_kind
from journeyman.records import Check, SessionId
from journeyman.records.session import BOT_PLATFORMS
from journeyman.store.episodes import EpisodeRow

MAIN_BRANCHES = frozenset(("", "main", "master", "trunk", "develop", "HEAD"))

_RECENT = 15
_SAME_BRANCH, _SAME_PERSON, _SAME_WORD = 5.0, 3.0, 1.0
"""After how many later sessions a session counts half, and how much more a file counts that was
used on the same branch or by the same person, or has a word of the branch's name in its path (times
how rare the word is). On 87 real sessions any value near these is as good.
"""

_PERSON = re.compile(r"(?:/home|(?:[A-Za-z]:)?[/\\]Users)[/\\]([^/\\]+)")
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
    check: Check | None
    is_bot: bool


def person_of(folder: str) -> str:
    """Return whose home a folder is in; empty if that cannot be told."""
    match = _PERSON.match(folder)
    return match[1] if match else ""


def work_of_sessions(rows: Iterable[EpisodeRow]) -> tuple[WorkedOn, ...]:
    """Return what each session worked on, the oldest first."""
    by_session: defaultdict[SessionId, list[EpisodeRow]] = defaultdict(list)
    for row in rows:
        by_session[row.session].append(row)
    found = []
    for session, own in by_session.items():
        files: Counter[str] = Counter()
        for row in own:
            for file in row.observed.files:
                files[file.path] += file.read + file.changed
        observed = [row.observed for row in own if not row.observed.tainted]
        last = own[-1]
        found.append(
            WorkedOn(
                session=session,
                branch=last.branch,
                person=person_of(last.cwd),
                at=last.at,
                row=max(own, key=_substance).row,
                files=files,
                check=_open_check(one.check for one in observed if one.check),
                is_bot=last.platform.lower() in BOT_PLATFORMS,
            )
        )
    found.sort(key=lambda one: (-math.inf if one.at is None else one.at, one.row))
    return tuple(found)


def _substance(row: EpisodeRow) -> tuple[bool, int]:
    """Return how much a request says about what a session did: one that changed no file, such as
    to commit, says little.
    """
    changed = any(file.changed for file in row.observed.files)
    return changed and bool(row.words), len(row.words)


def _open_check(checks: Iterable[Check]) -> Check | None:
    """Return the check that failed and did not work later, else the last one."""
    last: dict[str | None, Check] = {}
    for check in checks:
        last[check_kind(check.command)] = check
    failed = (one for one in last.values() if not one.worked)
    return next(failed, next(reversed(last.values()), None))


def words_in(name: str) -> set[str]:
    """Return the words that a name in code, a path or a branch is made of."""
    return {part.casefold() for part in _PARTS.findall(name)}


def likely_files(sessions: Sequence[WorkedOn], branch: str, person: str) -> list[str]:
    """Return the files of earlier sessions, which come the oldest first: the likeliest to be needed
    next before others. Those of this branch and this person count more, older ones less.
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
    return sorted(scores, key=lambda path: (-scores[path], path))
