"""What a rule is: a row with an id, the words to look for, what they mean, an example and a reason.

Every table of rules is a tuple of rows, and every row is a test case: its example must be judged
by this row.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from journeyman.records import Kind, Status

EVIDENCE_LIMIT = 240
"""How much of what a rule saw goes into the verdict."""


class Rule(NamedTuple):
    """Words that decide, as patterns of which one must fit; a pattern is one, with no choice at
    its top level. The kind is empty where the message itself tells it better.
    """

    id: str
    status: Status
    kind: Kind
    patterns: tuple[str, ...]
    example: str
    reason: str


class Found(NamedTuple):
    """A row that fits, and from where on."""

    rule: Rule
    start: int


Find = Callable[[str], Found | None]


class _Gate:
    """Whether any of many patterns fits at a place, found out fast: nearly all texts fit none. A
    pattern that begins with a letter is tried only where that letter stands.
    """

    def __init__(self, rows: Sequence[Rule]) -> None:
        by_letter: defaultdict[str, list[str]] = defaultdict(list)
        for row in rows:
            for pattern in row.patterns:
                for letter in _first_letters(pattern) or [""]:
                    by_letter[letter].append(pattern)
        self._others = _one_of(by_letter.pop("", [r"(?!)"])).match
        self._by_letter = {letter: _one_of(some).match for letter, some in by_letter.items()}

    def passes(self, text: str, at: int = 0) -> bool:
        tried = self._by_letter.get(text[at : at + 1])
        return (tried is not None and tried(text, at) is not None) or (
            self._others(text, at) is not None
        )


def at_the_start(rules: Iterable[Rule]) -> Find:
    """A search for all rows at once, at the start of a text. Of rows that fit the first wins."""
    rows = tuple(rules)
    passes, which = _Gate(rows).passes, _which(rows)

    def find(text: str) -> Found | None:
        return which(text, 0) if passes(text) else None

    return find


def on_any_line(rules: Iterable[Rule]) -> Find:
    """The same at the start of any line, the first such line first."""
    rows = tuple(rules)
    passes, which = _Gate(rows).passes, _which(rows)

    def find(text: str) -> Found | None:
        at = 0
        while True:
            if passes(text, at):
                return which(text, at)
            at = text.find("\n", at) + 1
            if not at:
                return None

    return find


def anywhere(rules: Iterable[Rule]) -> Find:
    """The same anywhere in a text."""
    rows = tuple(rules)
    search = _one_of(pattern for row in rows for pattern in row.patterns).search
    which = _which(rows)

    def find(text: str) -> Found | None:
        found = search(text)
        return found and which(text, found.start())

    return find


def _which(rows: Sequence[Rule]) -> Callable[[str, int], Found]:
    """Which row it is that fits at a place where one does."""
    grouped = re.compile("|".join(f"({'|'.join(row.patterns)})" for row in rows), re.MULTILINE)

    def which(text: str, at: int) -> Found:
        found = grouped.match(text, at)
        row = found.lastindex if found else None
        assert row is not None, "made of the same patterns as what let the text pass"
        return Found(rows[row - 1], at)

    return which


def _one_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE)


# How a pattern can begin so that its first character is known: with a choice of words, with one of
# two letters, or with a plain or escaped character; none of them optional.
_CHOICE = re.compile(r"\(\?:([^()]*)\)(?![?*{])")
_EITHER = re.compile(r"\[([A-Za-z]{2})\](?![?*{])")
_PLAIN = re.compile(r"(?:\\(?=[\[(]))?([^.^$*+?{}\]\\|)]|(?<=\\)[\[(])(?![?*{])")


def _first_letters(pattern: str) -> str:
    """The characters that what fits a pattern can begin with; empty if that is not so simple."""
    if chosen := _CHOICE.match(pattern):
        each = [_first_letters(one) for one in chosen[1].split("|")]
        return "".join(each) if all(each) else ""
    if pattern.startswith(("(", "[")):
        either = _EITHER.match(pattern)
        return either[1] if either else ""
    plain = _PLAIN.match(pattern)
    return plain[1] if plain else ""


def excerpt(text: str) -> str:
    """The beginning of what a rule saw, on one line."""
    piece = " ".join(text[: 2 * EVIDENCE_LIMIT].split())
    return piece if len(piece) <= EVIDENCE_LIMIT else piece[: EVIDENCE_LIMIT - 1] + "…"
