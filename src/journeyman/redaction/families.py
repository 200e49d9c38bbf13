"""The rows of `families.toml`: families of secrets, forms of pairs, places of user names, and the
words in names that mark a place for a secret.
"""

import re
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2})|(?<=\dm))"
"""Not inside a longer word; but behind an escaped line break, a percent code or a colour code."""

_SEQUENCES = {
    "mix": "aB3dE6gH9k",
    "hex": "0a1b2c3d4e5f6789",
    "upper": "A1B2C3D4E5F6G7H8",
    "digit": "1234567890",
    "lower": "a2c3d4e5f6g7h8j9",
}
_FORMULA = re.compile(r"\{(mix|hex|upper|digit|lower)(\d{1,4})\}")


class Family(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of secrets, or a place of user names. One of the `anchors` is in every match, which
    begins at most `reach` characters before it, and then ends at most `ahead` behind it; a row
    without anchors is tried at every long run of letters and digits. The only group of the pattern
    is the secret; without one, all of it is.
    `check` says what the value must be besides: `meant` (not a reference), `random`, `generated`
    (surely made by a machine) or `basic` (user and password in base64). `length` is the full length
    where it is fixed; with `line` a match begins its line.
    """

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

    @property
    def sample(self) -> str:
        """The example with its formulas written out; no scanner takes it for a real secret."""
        return _FORMULA.sub(
            lambda found: (_SEQUENCES[found[1]] * (int(found[2]) // 10 + 1))[: int(found[2])],
            self.example,
        )


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
