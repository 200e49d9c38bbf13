"""Secrets in addresses, on command lines and in calls: the tables of forms and the search for their
rows.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cache

from journeyman.redaction.address_logins import ADDRESS_LOGINS
from journeyman.redaction.code_logins import CODE_LOGINS
from journeyman.redaction.command_logins import COMMAND_LOGINS
from journeyman.redaction.found import Found
from journeyman.redaction.login_row import Login
from journeyman.redaction.values import looks_random, refers

LOGINS: tuple[Login, ...] = (*ADDRESS_LOGINS, *COMMAND_LOGINS, *CODE_LOGINS)

# By a character that all rows of a group need, so that a text without it skips the group.
_JOINTS = ("-", ":", "(", "<", "/", "$", "?", "=", "")
_GROUPS = tuple(
    (joint, tuple(row for row in LOGINS if joint == next(j for j in _JOINTS if j in row.gate)))
    for joint in _JOINTS
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def find_logins(text: str) -> Iterator[Found]:
    """Every secret that one of the rows finds."""
    there = [row for joint, rows in _GROUPS if joint in text for row in rows if row.gate in text]
    for row in there:
        for found in _compiled(row.pattern).finditer(text):
            if not refers(found[1]) and _looks(found[1], row.must_look):
                yield Found(found.start(1), found.end(1), row.family)


def _looks(value: str, as_it_must: str) -> bool:
    if as_it_must == "basic":
        return _is_basic(value)
    return as_it_must == "" or looks_random(value)


def _is_basic(value: str) -> bool:
    """Whether a value is base64 of two readable words with a colon between them."""
    clean = value.rstrip("=")
    clean = clean[: len(clean) // 4 * 4] or clean
    try:
        raw = base64.b64decode(clean)
    except (binascii.Error, ValueError):
        return False
    return b":" in raw and all(32 <= byte < 127 for byte in raw)
