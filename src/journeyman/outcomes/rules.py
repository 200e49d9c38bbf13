"""The rules of `rules.toml`, and functions that search for many of them at once."""

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import NamedTuple

import msgspec
from msgspec import Struct

from journeyman.records import Refuser, VerdictKind, VerdictStatus
from journeyman.text.truncation import one_line

EVIDENCE_LIMIT = 240
"""The longest evidence in a verdict, in characters."""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of the judge. `rules.toml` explains the fields."""

    id: str
    status: VerdictStatus = "failed"
    kind: VerdictKind = ""
    by: Refuser = ""
    general: bool = False
    patterns: tuple[str, ...] = ()
    in_runs: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    silent: bool = False
    end: str = ""
    is_error: bool = False
    example: str = ""
    examples: tuple[str, ...] = ()
    reason: str


RULES = msgspec.toml.decode(
    files(__package__).joinpath("rules.toml").read_bytes(), type=dict[str, tuple[Rule, ...]]
)
"""The rules of each table."""


class RuleMatch(NamedTuple):
    """A rule that matches, and where."""

    rule: Rule
    start: int = 0
    end: int = 0


def finder(
    rows: Sequence[Rule], *, at_start: bool = False, on_lines: bool = False
) -> Callable[[str], RuleMatch | None]:
    """Return a function that searches for all these rules at once: anywhere in a text, at its
    start, or at the start of each line, in order. The first rule that matches wins.
    """
    alternatives = "|".join(f"({'|'.join(row.patterns)})" for row in rows)
    pattern = re.compile(f"^(?:{alternatives})" if on_lines else alternatives, re.MULTILINE)
    search = pattern.match if at_start else pattern.search

    def find(text: str) -> RuleMatch | None:
        match = search(text)
        return match and RuleMatch(rows[(match.lastindex or 1) - 1], *match.span())

    return find


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line, as evidence."""
    return one_line(text[: 2 * EVIDENCE_LIMIT], EVIDENCE_LIMIT)
