"""Strict decoding of untrusted JSON: finite numbers, valid Unicode, and limited nesting, so that
recursive code can process the value safely. Texts from logs may be large and nested more deeply; a
limit is checked on their bytes before any parser builds values from them: depth could exhaust the
stack, and many small values take far more memory than their text.
"""

import json
import math
import re
from itertools import accumulate
from typing import Any

import msgspec

MAX_JSON_DEPTH = 32
"""Maximum nesting of lists and objects; tool arguments have a handful of levels."""

MAX_DEPTH = 500
"""Maximum nesting of lists and objects in a log. Real logs have a dozen levels."""

MAX_VALUES = 1_000_000
"""Maximum number of brackets and commas in one line or document. Each value takes about 100 bytes
of memory."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class InvalidJson(ValueError):
    """Invalid JSON. The message is a clause that states the problem: "it is not JSON"."""


class ExcessiveJson(InvalidJson):
    """JSON that exceeds a limit. No other parser may try it."""


def read_json(data: bytes | str) -> Any:
    """Return the value of a JSON text. Raise InvalidJson if it is invalid or nested too deeply."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = msgspec.json.decode(text)
    except (UnicodeError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidJson(f"it is not JSON ({error})") from error
    if is_nested_deeper(value, MAX_JSON_DEPTH - 1):
        raise InvalidJson(f"it is nested more than {MAX_JSON_DEPTH} levels deep")
    return value


def decode_json(data: bytes | str) -> Any:
    """Return the value of a JSON text from a log. Raise InvalidJson if it is invalid, or nested or
    large beyond what a log contains.
    """
    try:
        encoded = data.encode() if isinstance(data, str) else data
        if excess := find_excess(encoded):
            raise ExcessiveJson(excess)
        return msgspec.json.decode(encoded)
    except (UnicodeError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidJson(f"it is not JSON ({error})") from error


def repaired_json(data: bytes | str) -> bytes:
    """Rewrite JSON that only the standard library accepts as standard JSON: JavaScript programs can
    cut strings inside a surrogate pair, and Python programs write NaN. Raises ValueError if the
    data is not JSON at all.
    """
    # Decoded here, because json.loads mistakes bytes that contain NULs for UTF-16 or UTF-32.
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    if excess := find_excess(text.encode("utf-8", "replace")):
        raise ExcessiveJson(excess)
    value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def decode_repaired(data: bytes | str) -> Any:
    """Return the value of JSON that may need to be repaired. Raises ValueError if it is not JSON or
    exceeds a limit.
    """
    try:
        return decode_json(data)
    except ExcessiveJson:
        raise
    except InvalidJson:
        return decode_json(repaired_json(data))


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def find_excess(data: bytes) -> str:
    """Return which limit a JSON text exceeds, as a clause that states the problem ("it is nested
    more than 500 levels deep"), or an empty string. A text with few brackets and commas need not be
    examined.
    """
    brackets = data.count(b"[") + data.count(b"{")
    marks = brackets + (data.count(b",") if len(data) > MAX_VALUES else 0)
    if brackets <= MAX_DEPTH and marks <= MAX_VALUES:
        return ""
    # Removing the strings takes memory for each of the marks in them.
    outside = _STRING.sub(b"", data) if marks <= 2 * MAX_VALUES else data
    if sum(map(outside.count, (b"[", b"{", b","))) > MAX_VALUES:
        return f"it has more than {MAX_VALUES:,} values"
    steps = (1 if mark in b"[{" else -1 for mark in outside.translate(None, _NOT_BRACKETS))
    if max(accumulate(steps), default=0) > MAX_DEPTH:
        return f"it is nested more than {MAX_DEPTH} levels deep"
    return ""


def canonical_json(value: object) -> str:
    """Return a value as JSON text in the form in which arguments are stored. Raise InvalidJson if
    it cannot be encoded.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidJson(f"it cannot be written as JSON ({error})") from error


def is_nested_deeper(value: object, levels: int) -> bool:
    """Return whether lists and objects are nested more than `levels` deep."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or is_nested_deeper(item, levels - 1) for item in items)
