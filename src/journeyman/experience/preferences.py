"""What people said against calls, grouped by what they mean: a wish is worth more if it was said
again.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from journeyman.learning.search_keys import STOP_WORDS
from journeyman.records import Remark
from journeyman.records.session import BOT_PLATFORMS
from journeyman.redaction.instructions import find_suspicion
from journeyman.store.episodes import EpisodeRow

_ALIKE = 0.6
"""The share of words from which two remarks say the same."""

_WORD = re.compile(r"[^\W\d_]{3,}")
_WISHES = re.compile(
    r"\b(?:don'?t|do not|never|always|instead|use|prefer|should(?:n'?t)?|must|avoid|rather|only"
    r"|keep|without|no need|stop)\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(r"\b(?:don'?t|never|not|stop|avoid|without|no)\b", re.IGNORECASE)
_EVERYDAY = STOP_WORDS | {"here", "again", "repo", "repository", "project", "told", "said"}
_FEWEST_WORDS, _MOST_WORDS = 4, 40


class Wish(NamedTuple):
    """What a person wants: their first wording, and all episodes in which they said it."""

    remark: Remark
    said: tuple[EpisodeRow, ...]


def find_wishes(rows: Iterable[EpisodeRow]) -> list[Wish]:
    """Return what people want, the first said first, whatever the order of learning."""
    groups: list[tuple[frozenset[str], bool, Remark, list[EpisodeRow]]] = []
    people = [row for row in rows if row.platform.lower() not in BOT_PLATFORMS]
    for row in sorted(people, key=lambda row: (row.at or 0.0, row.session, row.row)):
        for remark in row.observed.remarks:
            text = remark.words
            words = {*_WORD.findall(_WISHES.sub(" ", text.casefold()))}
            about = frozenset(words - _EVERYDAY)
            if not (about and _is_wish(text)):
                continue
            forbids = _FORBIDS.search(text) is not None
            for others, is_ban, _, said in groups:
                if is_ban == forbids and len(about & others) >= _ALIKE * len(about | others):
                    said.append(row)
                    break
            else:
                groups.append((about, forbids, remark, [row]))
    return [Wish(remark, tuple(said)) for *_, remark, said in groups]


def _is_wish(text: str) -> bool:
    is_short = _FEWEST_WORDS <= len(text.split()) <= _MOST_WORDS
    return (
        is_short and _WISHES.search(text) is not None and not find_suspicion((), requests=(text,))
    )
