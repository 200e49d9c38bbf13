"""Private keys between their BEGIN and END lines, also where one of the two was cut away and where
line breaks are written as escapes. Certificates and public keys stay.
"""

import re
from itertools import zip_longest

from journeyman.redaction.placeholders import Placeholders

_MARK = re.compile(
    r"(-----BEGIN |-----END |\A[A-Z -]{0,20})(?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
)
_INSIDE = re.compile(r"[A-Za-z0-9+/=\\\s]*")
_BEFORE_END = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\ \t\r\n"
_HEADERS = re.compile(r"(?:(?:\s|\\[nr])*[A-Z][A-Za-z-]{2,20}: [^\n\\]{0,200})*")
_KEY = re.compile(r"[A-Za-z0-9+/=]{16}")


def without_private_keys(text: str, placeholders: Placeholders) -> str:
    """The text with each private key replaced, from its first line to its last."""
    if "PRIVATE KEY" not in text:
        return text
    pieces: list[str] = []
    done = looked = 0
    marks = list(_MARK.finditer(text))
    for mark, following in zip_longest(marks, marks[1:]):
        if mark.start() < done:
            continue
        if mark[1] == "-----END ":
            before = text[looked : mark.start()]
            start, end = looked + len(before.rstrip(_BEFORE_END)), mark.end()
        elif following is not None and following[1] == "-----END ":
            start, end = mark.start(), following.end()
        else:
            start, end = mark.start(), _end_of_key(text, mark.end())
        looked = mark.end()
        if _KEY.search(text, start, end):
            pieces += (text[done:start], placeholders.put("private_key", text[start:end]))
            done = looked = end
    return "".join(pieces) + text[done:]


def _end_of_key(text: str, start: int) -> int:
    """How far what looks like a key goes on when its last line is missing."""
    headers = _HEADERS.match(text, start)
    inside = _INSIDE.match(text, headers.end() if headers else start)
    return inside.end() if inside else start
