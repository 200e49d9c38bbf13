"""Strict decoding of untrusted JSON: finite numbers, valid Unicode, and limited nesting, so that
recursive code can process the value safely. Texts from logs, which may be large and nested more
deeply, are decoded within the limits of `json_limits`.
"""

import json
from typing import Any

import msgspec

from journeyman.text.json_limits import find_excess

MAX_JSON_DEPTH = 32
"""Maximum nesting of lists and objects; tool arguments have a handful of levels."""


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
