"""What a result comes in, taken off before the result itself is looked at: tags that mark it as
untrusted, cut or an error, headings that announce it, and JSON that is whole, has a note behind it,
is written as Python does, or is cut off.
"""

import ast
import re
from json import JSONDecoder
from typing import Any, NamedTuple

import msgspec

from journeyman.outcomes.rules import RULES, Rule, finder

_find_wrapping = finder(RULES["wrapping"], at_start=True, dot_all=True)
_find_heading = finder(RULES["heading"], at_start=True)


def without_heading(text: str) -> str:
    """The result after a line that only announces it."""
    found = _find_heading(text)
    return text[found.end :].lstrip() if found else text


class Unwrapped(NamedTuple):
    """A result without its wrapping."""

    wrapping: Rule | None
    text: str


def unwrapped(text: str) -> Unwrapped:
    """The result inside the outermost wrapping, if there is one."""
    found = _find_wrapping(text)
    if found is None:
        return Unwrapped(None, text)
    inside = text[found.end :]
    end = inside.rfind(found.rule.end)
    return Unwrapped(found.rule, (inside if end < 0 else inside[:end]).strip())


_decode = msgspec.json.Decoder().decode
_leading = JSONDecoder().raw_decode
_MOST = 4_000_000


def decoded(text: str) -> tuple[Any, bool]:
    """The JSON value that a text is, or begins with, and whether it is all that the text holds;
    raises ValueError.
    """
    try:
        return _decode(text), True
    except (ValueError, RecursionError):
        pass
    if len(text) > _MOST:
        raise ValueError("too long to try")
    try:
        if text.startswith("{'"):  # an object that a program wrote as Python does
            if len(text) > _LONGEST_LITERAL:
                raise ValueError("too long to try")
            return ast.literal_eval(text.strip()), True
        value, end = _leading(text)
    except (SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise ValueError("not a value that can be read") from error
    return value, not text[end:].strip()


_LONGEST_LITERAL = 20_000
_CUT_EXIT = re.compile(r'"(?:exit_code|exitCode|returncode)": ?(-?\d{1,10})\b')
_CUT_FALSE = re.compile(r'\s*\{[^{}\[\]]{0,300}?"(?:success|ok)": ?false\b')
_CUT_ERROR = re.compile(r'\s*\{[^{}\[\]]{0,300}?"error": ?"((?:[^"\\]|\\.){1,400})')
_CUT_ENDS = 1000


def remains(text: str) -> tuple[int | None, str] | None:
    """What can still be read off an object of which a part was cut away: its exit code or its
    error.
    """
    codes = _CUT_EXIT.findall(text[-_CUT_ENDS:]) or _CUT_EXIT.findall(text[:_CUT_ENDS])
    if codes:
        return int(codes[-1]), ""
    if found := _CUT_ERROR.match(text):
        return None, found[1]
    found = _CUT_FALSE.match(text)
    return (None, found[0]) if found else None
