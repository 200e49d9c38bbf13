"""Ids for the calls in an opening: nine letters or digits, which every host accepts, the same for
the same opening, and known again as ours in a recording by two check characters at the end.
"""

import hashlib
import itertools
import re
import string
from collections.abc import Set

_ALPHABET = string.digits + string.ascii_letters
_BEGINNING = "jm"
_BODY = 5
_CHECK = 2
_SHAPE = re.compile(rf"{_BEGINNING}[0-9A-Za-z]{{{_BODY + _CHECK}}}")


def call_ids(opening_id: str, count: int, taken: Set[str] = frozenset()) -> list[str]:
    """So many ids for the calls of an opening, each once and none of those taken already."""
    ids: dict[str, None] = {}
    for position in range(count):
        tried = (_made_of(f"{opening_id}/{position}/{attempt}") for attempt in itertools.count())
        ids[next(one for one in tried if one not in ids and one not in taken)] = None
    return list(ids)


def is_own_call_id(call_id: str) -> bool:
    """Whether an id is of our making. Of all other ids of nine letters or digits, one in fifteen
    million looks like it.
    """
    if not _SHAPE.fullmatch(call_id):
        return False
    return call_id[-_CHECK:] == _check(call_id[:-_CHECK])


def _made_of(seed: str) -> str:
    unchecked = _BEGINNING + _letters(seed, _BODY)
    return unchecked + _check(unchecked)


def _check(unchecked: str) -> str:
    return _letters(f"check {unchecked}", _CHECK)


def _letters(seed: str, length: int) -> str:
    """Letters and digits that a text decides. Must never change: recordings hold such ids."""
    digest = hashlib.blake2b(seed.encode(), digest_size=8, person=b"journeyman").digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(length):
        number, remainder = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[remainder])
    return "".join(letters)
