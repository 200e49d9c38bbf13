"""What a rule is: a row with an id, the words to look for, what they mean, an example and a reason.

Every table of rules is a tuple of rows, and every row is a test case: its example must be judged
by this row.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from journeyman.records import Kind, Status

EVIDENCE_LIMIT = 240
"""How much of what a rule saw goes into the verdict."""


class Rule(NamedTuple):
    """Words that decide, as patterns of which one must fit. The kind is empty where the message
    itself tells it better.
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


def finder(
    rules: Iterable[Rule], where: Literal["at the start", "on any line", "anywhere"]
) -> Callable[[str], Found | None]:
    """A search for all rows at once: at the start of a text, of any of its lines, or anywhere. Of
    rows that fit at one place the first wins.
    """
    rows = tuple(rules)
    start = "^" if where == "on any line" else ""
    # Nearly all texts fit no row. Patterns that begin with a letter and stand in no group are
    # passed over at their first letter, so a text is tried against them first.
    gate = _compiled(f"{start}(?:{'|'.join(pattern for row in rows for pattern in row.patterns)})")
    rest = _compiled("|".join(f"({start}(?:{'|'.join(row.patterns)}))" for row in rows))
    look = gate.match if where == "at the start" else gate.search

    def find(text: str) -> Found | None:
        passed = look(text)
        if passed is None:
            return None
        found = rest.match(text, passed.start())
        row = found.lastindex if found else None
        assert row is not None, "the gate and the rows are made of the same patterns"
        return Found(rows[row - 1], passed.start())

    return find


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def excerpt(text: str) -> str:
    """The beginning of what a rule saw, on one line."""
    piece = " ".join(text[: 2 * EVIDENCE_LIMIT].split())
    return piece if len(piece) <= EVIDENCE_LIMIT else piece[: EVIDENCE_LIMIT - 1] + "…"
