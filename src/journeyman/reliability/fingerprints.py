"""What failures have in common: their words without the numbers, names and places that differ each
time. Two calls that failed for one reason get one fingerprint, so that failures can be counted.
"""

import re
from functools import lru_cache
from importlib.resources import files

import msgspec
from msgspec import Struct

READ_CHARACTERS = 1000
"""How much of the evidence is looked at; what went wrong is said at its beginning."""

LONGEST = 160
"""A fingerprint is cut to this, since evidence is cut too, and not always at the same word."""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `fingerprints.toml`, which says what the fields mean."""

    id: str
    pattern: str
    placeholder: str | None = None
    inside: bool = False
    example: str
    fingerprint: str
    reason: str


RULES = msgspec.toml.decode(
    files(__package__).joinpath("fingerprints.toml").read_bytes(), type=dict[str, tuple[Rule, ...]]
)["rule"]

# Most of a message is plain words. To pass over them at once, before any rule is tried, and to look
# for rules only where a word may begin is what makes this fast.
_WORDS = r"(?P<words>(?:[A-Za-z][a-z']{0,40}[,;:.]? ){1,80})"
_begin, _inside = (
    "|".join(f"(?P<{rule.id}>{rule.pattern})" for rule in RULES if rule.inside == inside)
    for inside in (False, True)
)
_together = re.compile(rf"(?<!\w)(?:{_WORDS}|{_begin})|{_inside}")
_placeholders = {rule.id: rule.placeholder for rule in RULES}


def _replaced(found: re.Match[str]) -> str:
    placeholder = _placeholders.get(found.lastgroup or "")
    return found[0] if placeholder is None else placeholder


@lru_cache(maxsize=10_000)
def fingerprint(evidence: str) -> str:
    """The evidence on one line, with placeholders for what differs. Where several rules fit at one
    place, the first in the table wins.
    """
    read = " ".join(evidence[:READ_CHARACTERS].split())
    line = " ".join(_together.sub(_replaced, read).split()).strip("\"'{} ")
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"
