"""Loads `families.toml`, the table of everything that redaction recognises. To add a family of
secrets, add a `[[family]]` row there, which is also a test case, and raise `RULES_VERSION`.
"""

import re
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2})|(?<=\dm))"
"""Not inside a longer word; but after an escaped line break, a percent code or a colour code."""


class Family(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a family of secrets, or of user names. The file documents the fields."""

    id: str
    about: str
    pattern: str
    example: str
    anchors: tuple[str, ...] = ()
    reach: int = 0
    ahead: int = 160
    length: int = 0
    check: str = ""
    line: bool = False
    source: str = ""


class Pair(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A form of name and value that is joined by neither an equals sign nor a colon. `before`
    matches in front of the name, `after` behind it; the group of `after` is the value.
    """

    id: str
    about: str
    after: str
    example: str
    before: str = ""
    check: str = ""


class NameWords(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words in names of fields, variables and options, and what they say about the value."""

    password: tuple[str, ...]
    foreign_password: tuple[str, ...]
    owners_of_pass: frozenset[str]
    secret: tuple[str, ...]
    owners_of_key: frozenset[str]
    owners_of_loose_key: frozenset[str]
    ordinary_keys: frozenset[str]
    loose: frozenset[str]
    code: frozenset[str]
    card: frozenset[str]
    which: frozenset[str]
    parts: tuple[str, ...]


class UserNames(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """User names that belong to no person, and those that are also ordinary words."""

    generic: frozenset[str]
    ordinary: frozenset[str]


class FamilyTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    family: tuple[Family, ...]
    pair: tuple[Pair, ...]
    owner: tuple[Family, ...]
    names: NameWords
    users: UserNames


@cache
def load_families() -> FamilyTable:
    """Return the table; the file is read once."""
    text = files(__package__).joinpath("families.toml").read_bytes()
    return msgspec.toml.decode(text, type=FamilyTable)


@cache
def compiled_pattern(row: Family) -> re.Pattern[str]:
    """Return the pattern of a row, compiled on first use. A match must not begin inside a word;
    rows with a check, private keys and user names handle that in their own patterns.
    """
    is_free = row.check or row.id == "private_key" or row in load_families().owner
    return re.compile(row.pattern if is_free else f"{_START}(?:{row.pattern})")
