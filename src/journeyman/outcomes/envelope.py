"""Removes what surrounds a result before it is judged: tags that mark it as untrusted, truncated or
an error, and headings; and decodes JSON that is complete, followed by a note, written as Python
literals, or truncated.
"""

import ast
import re
from json import JSONDecoder
from typing import Any, NamedTuple

import msgspec

from journeyman.outcomes.rules import RULES, Rule, finder

_find_envelope = finder(RULES["wrapping"], at_start=True)
_find_heading = finder(RULES["heading"], at_start=True)


def without_heading(text: str) -> str:
    """Return a result without a first line that only announces it."""
    match = _find_heading(text)
    return text[match.end :].lstrip() if match else text


class Unwrapped(NamedTuple):
    """The content of a result, and the rule of the envelope around it."""

    envelope: Rule | None
    text: str


def unwrapped(text: str) -> Unwrapped:
    """Return the content of the outermost envelope, or the text itself if there is none."""
    match = _find_envelope(text)
    if match is None:
        return Unwrapped(None, text)
    content = text[match.end :]
    end = content.rfind(match.rule.end)
    return Unwrapped(match.rule, (content if end < 0 else content[:end]).strip())


_decode = msgspec.json.Decoder().decode
_decode_prefix = JSONDecoder().raw_decode
_LONGEST_TEXT = 4_000_000


def decoded(text: str) -> tuple[Any, bool]:
    """Return the JSON value that a text begins with, and whether nothing follows it. Raise
    ValueError.
    """
    try:
        return _decode(text), True
    except (ValueError, RecursionError):
        pass
    if len(text) > _LONGEST_TEXT:
        raise ValueError("too long to decode")
    try:
        if text.startswith("{'"):  # a Python literal
            if len(text) > _LONGEST_LITERAL:
                raise ValueError("too long to decode")
            return ast.literal_eval(text.strip()), True
        value, end = _decode_prefix(text)
    except (SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise ValueError("not a readable value") from error
    return value, not text[end:].strip()


_LONGEST_LITERAL = 20_000
_CUT_EXIT = re.compile(r'"(?:exit_code|exitCode|returncode)": ?(-?\d{1,10})\b')
_CUT_FALSE = re.compile(r'\s*\{[^{}\[\]]{0,300}?"(?:success|ok)": ?false\b')
_CUT_ERROR = re.compile(r'\s*\{[^{}\[\]]{0,300}?"error": ?"((?:[^"\\]|\\.){1,400})')
_CUT_ENDS = 1000


def truncated_fields(text: str) -> tuple[int | None, str] | None:
    """Return the exit code or the error that is still readable in a truncated object, or None."""
    codes = _CUT_EXIT.findall(text[-_CUT_ENDS:]) or _CUT_EXIT.findall(text[:_CUT_ENDS])
    if codes:
        return int(codes[-1]), ""
    if match := _CUT_ERROR.match(text):
        return None, match[1]
    match = _CUT_FALSE.match(text)
    return (None, match[0]) if match else None
