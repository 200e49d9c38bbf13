"""Fingerprints of failures: their text without the numbers, names and paths that differ each time.
Calls that failed for the same reason share a fingerprint, so that failures can be counted.
"""

import re
from functools import lru_cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from journeyman.text.truncation import truncate

READ_CHARACTERS = 1000
"""How much of the evidence is read; the cause is stated at its beginning."""

MAX_CHARACTERS = 160
"""Maximum length of a fingerprint. Evidence is cut too, but not always at the same word."""


class FingerprintRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `fingerprints.toml`, which documents the fields."""

    id: str
    pattern: str
    placeholder: str | None = None
    inside: bool = False
    example: str
    fingerprint: str
    reason: str


RULES = msgspec.toml.decode(
    files(__package__).joinpath("fingerprints.toml").read_bytes(),
    type=dict[str, tuple[FingerprintRule, ...]],
)["rule"]

# For speed: most of a message is plain words, which are skipped before any rule is tried, and rules
# are tried only where a word may begin.
_WORDS = r"(?P<words>(?:[A-Za-z][a-z']{0,40}[,;:.]? ){1,80})"
_begin, _inside = (
    "|".join(f"(?P<{rule.id}>{rule.pattern})" for rule in RULES if rule.inside == inside)
    for inside in (False, True)
)
_all_rules = re.compile(rf"(?<!\w)(?:{_WORDS}|{_begin})|{_inside}")
_placeholders = {rule.id: rule.placeholder for rule in RULES}


def _replace(match: re.Match[str]) -> str:
    placeholder = _placeholders.get(match.lastgroup or "")
    return match[0] if placeholder is None else placeholder


@lru_cache(maxsize=10_000)
def fingerprint(evidence: str) -> str:
    """Return the evidence on one line, with placeholders for what differs. If several rules match
    at one position, the first in the table applies.
    """
    text = " ".join(evidence[:READ_CHARACTERS].split())
    line = " ".join(_all_rules.sub(_replace, text).split()).strip("\"'{} ")
    return truncate(line, MAX_CHARACTERS)
