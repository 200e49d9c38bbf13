"""The rows of `families.toml`: families of secrets, forms of pairs, user names, telling words."""

import re
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2})|(?<=\dm))"
"""Not inside a longer word; but behind an escaped line break, a percent code or a colour code."""


class Family(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of secrets, or a place of user names; the file says what the fields mean."""

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
    """A name and its value in a form that neither an equals sign nor a colon joins. `before` is
    matched in front of the name, `after` behind it, and its group is the value.
    """

    id: str
    about: str
    after: str
    example: str
    before: str = ""
    check: str = ""


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words in the names of fields, variables and options."""

    password: tuple[str, ...]
    foreign_password: tuple[str, ...]
    owners_of_pass: frozenset[str]
    secret: tuple[str, ...]
    owners_of_key: frozenset[str]
    owners_of_loose_key: frozenset[str]
    ordinary_keys: frozenset[str]
    loose: frozenset[str]
    code: frozenset[str]
    phone: frozenset[str]
    card: frozenset[str]
    which: frozenset[str]
    parts: tuple[str, ...]


class Users(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """User names that are no person's, and those that are words too."""

    generic: frozenset[str]
    ordinary: frozenset[str]


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that the file holds."""

    family: tuple[Family, ...]
    pair: tuple[Pair, ...]
    owner: tuple[Family, ...]
    names: Names
    users: Users


@cache
def table() -> Table:
    """The file, read once."""
    text = files(__package__).joinpath("families.toml").read_bytes()
    return msgspec.toml.decode(text, type=Table)


@cache
def compiled(row: Family) -> re.Pattern[str]:
    """The pattern of a row, compiled when it is first needed. A match may not begin inside a word;
    rows with a check, and places of users, see to that themselves.
    """
    is_free = row.check or row.id == "private_key" or row in table().owner
    return re.compile(row.pattern if is_free else f"{_START}(?:{row.pattern})")
