"""Results that are JSON: whole, with a note behind it, written as Python does, or cut off."""

import ast
import re
from json import JSONDecoder
from typing import Any, NamedTuple

import msgspec

_decode = msgspec.json.Decoder().decode
_leading = JSONDecoder().raw_decode
_MOST = 4_000_000


class Decoded(NamedTuple):
    """A JSON value, and whether it is all that the text holds."""

    value: Any
    is_all: bool


def decoded(text: str) -> Decoded:
    """The JSON value that a text is, or begins with; raises ValueError."""
    try:
        return Decoded(_decode(text), is_all=True)
    except (ValueError, RecursionError):
        pass
    if len(text) > _MOST:
        raise ValueError("too long to try")
    if text.startswith("{'"):
        return Decoded(_written_by_python(text), is_all=True)
    try:
        value, end = _leading(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return Decoded(value, is_all=not text[end:].strip())


def _written_by_python(text: str) -> Any:
    """An object that a program wrote as Python does, with single quotes."""
    if len(text) > _LONGEST_LITERAL:
        raise ValueError("too long to try")
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise ValueError("not a Python value") from error


_LONGEST_LITERAL = 20_000
_CUT_EXIT = re.compile(r'"(?:exit_code|exitCode|returncode)": ?(-?\d{1,10})\b')
_CUT_FALSE = re.compile(r'\s*\{[^{}\[\]]{0,300}?"(?:success|ok)": ?false\b')
_CUT_ERROR = re.compile(r'\s*\{[^{}\[\]]{0,300}?"error": ?"((?:[^"\\]|\\.){1,400})')
_CUT_ENDS = 1000


class Remains(NamedTuple):
    """What can still be read off an object of which a part was cut away."""

    exit_code: int | None
    error: str


def remains(text: str) -> Remains | None:
    """The fields that matter, where they can be found in what is left of an object."""
    codes = _CUT_EXIT.findall(text[-_CUT_ENDS:]) or _CUT_EXIT.findall(text[:_CUT_ENDS])
    if codes:
        return Remains(int(codes[-1]), "")
    if found := _CUT_ERROR.match(text):
        return Remains(None, found[1])
    if found := _CUT_FALSE.match(text):
        return Remains(None, found[0])
    return None
