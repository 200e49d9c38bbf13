"""The rows of `rules.toml`, and searches for all patterns of some rows at once."""

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import NamedTuple

import msgspec
from msgspec import Struct

from journeyman.records import Kind, Status

EVIDENCE_LIMIT = 240
"""How much of what a rule saw goes into the verdict."""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `rules.toml`, which says what the fields mean."""

    id: str
    status: Status = "failed"
    kind: Kind = ""
    general: bool = False
    patterns: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    silent: bool = False
    end: str = ""
    is_error: bool = False
    example: str = ""
    reason: str


RULES = msgspec.toml.decode(
    files(__package__).joinpath("rules.toml").read_bytes(), type=dict[str, tuple[Rule, ...]]
)
"""The rows of each table."""


class Found(NamedTuple):
    """A row that fits, and where."""

    rule: Rule
    start: int = 0
    end: int = 0


def finder(
    rows: Sequence[Rule], *, at_start: bool = False, on_lines: bool = False, dot_all: bool = False
) -> Callable[[str], Found | None]:
    """A search for all rows at once: anywhere in a text, at its start, or at the start of any of
    its lines, the first such line first. Of rows that fit the first wins.
    """
    together = "|".join(f"({'|'.join(row.patterns)})" for row in rows)
    flags = re.MULTILINE | (re.DOTALL if dot_all else 0)
    pattern = re.compile(f"{'^' if on_lines else ''}(?:{together})", flags)
    look = pattern.match if at_start else pattern.search

    def find(text: str) -> Found | None:
        found = look(text)
        return found and Found(rows[(found.lastindex or 1) - 1], *found.span())

    return find


def excerpt(text: str) -> str:
    """The beginning of what a rule saw, on one line."""
    piece = " ".join(text[: 2 * EVIDENCE_LIMIT].split())
    return piece if len(piece) <= EVIDENCE_LIMIT else piece[: EVIDENCE_LIMIT - 1] + "…"
