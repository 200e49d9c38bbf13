"""What the name of a field, a variable or an option says about its value: whether this is a place
for a secret, and how sure that is.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from journeyman.redaction.families import table

Place = Literal["password", "secret", "loose", "code", "header", "cookie", "phone", "card"]
"""`password` and `secret`: what stands here goes, unless it only refers to something. `loose`: the
name is used for other things too, so the value must look random. `code`: short numbers such as a
PIN. `header`: a scheme and then the secret. `cookie`: pairs. `phone`, `card`: enough digits."""

_NAMES = table().names
_CODES = frozenset(code.replace(" ", "") for code in _NAMES.code)
_GLUED_PASS = frozenset(owner + end for owner in _NAMES.owners_of_pass for end in ("pass", "pw"))
_GLUED_KEYS = frozenset(owner + "key" for owner in _NAMES.owners_of_key)

PLACEHOLDER = re.compile(r"<([a-z][a-z_]{2,24}):(\d{1,9})>")
"""What stands in the place of a secret."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+[a-z]*")


@lru_cache(maxsize=4096)
def place_of(name: str) -> Place | None:
    """The kind of place that a name marks; None for an ordinary one, and for one in which a secret
    was replaced: redacting again must change nothing.
    """
    if "<" in name and PLACEHOLDER.search(name):
        return None
    if not name.isascii() and name.lower().endswith(_NAMES.foreign_password):
        return "password"
    words = [word.lower() for word in _WORD.findall(name[-80:])]
    while len(words) > 1 and words[-1] in _NAMES.which:
        words.pop()
    if not words:
        return None
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    glued = before + last
    singular = glued.removesuffix("s") if not glued.endswith("ss") else glued
    if last in ("authorization", "authorisation"):
        return "header"
    if last.rstrip("s") in ("cookie", "setcookie"):
        return "cookie"
    if singular.endswith(_NAMES.password) or last in ("pwd", "passe", "psk") or words == ["pw"]:
        return "password"
    if name == "PASS":  # of a test that passed
        return None
    if (last in ("pass", "pw") and before in _NAMES.owners_of_pass) or last in _GLUED_PASS:
        return "password"
    if not _CODES.isdisjoint((last, glued, "".join(words[-3:]))):
        return "code"
    if (
        singular.endswith(_NAMES.secret)
        or "".join(words[-3:]) in _NAMES.secret
        or _is_secret_key(last, before)
    ):
        return "secret"
    if last in _NAMES.phone or glued in _NAMES.phone:
        return "phone"
    if glued in _NAMES.card or "".join(words[-3:]) in _NAMES.card:
        return "card"
    return "loose" if _is_loose(name, last, before) else None


def _is_secret_key(last: str, before: str) -> bool:
    if last in ("key", "keys"):
        return before in _NAMES.owners_of_key
    return last.removesuffix("s") in _GLUED_KEYS or last.endswith(("apikey", "secretkey"))


def _is_loose(name: str, last: str, before: str) -> bool:
    if last in ("key", "keys"):
        if before in _NAMES.owners_of_loose_key:
            return True
        return bool(before) and name.isupper() and before not in _NAMES.ordinary_keys
    if last == "id" and before == "secret":
        return True
    if last == "pat":
        return bool(before) or name == "PAT"
    return last in _NAMES.loose or last.removesuffix("s") in _NAMES.loose


VALUE_NAMES = frozenset({"value", "text", "val", "content", "string", "input", "default"})
NAMING = ("name", "key", "field", "variable", "selector", "element", "label", "locator", "env")


def place_of_value(fields: Mapping[str, object]) -> Place | None:
    """The place that one field names for another: `{"name": "DB_PASSWORD", "value": "…"}`, or a
    form that is filled in: `{"selector": "#password", "text": "…"}`.
    """
    if VALUE_NAMES.isdisjoint(fields):
        return None
    for naming in NAMING:
        name = fields.get(naming)
        if isinstance(name, str) and 2 < len(name) < 200:
            words = [place_of(word) for word in _PIECE.findall(name)]
            for place in ("password", "secret", "code"):
                if place in words:
                    return place
    return None


_PIECE = re.compile(r"[\w-]{2,60}")
