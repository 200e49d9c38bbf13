"""JSON that a stranger wrote, read strictly: numbers that exist, whole characters, and not so deep
that walking through it fails.
"""

import json
from typing import Any

import msgspec

DEEPEST = 32
"""How many lists and objects may stand in each other; arguments of tools have a handful."""


class BadJson(ValueError):
    """The text is a clause that says what is wrong: "it is not JSON"."""


def read_json(data: bytes | str) -> Any:
    """The value of a JSON text. Raises BadJson."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = msgspec.json.decode(text)
    except (UnicodeError, msgspec.DecodeError, RecursionError) as error:
        raise BadJson(f"it is not JSON ({error})") from error
    if is_deeper(value, DEEPEST - 1):
        raise BadJson(f"it is nested more than {DEEPEST} levels deep")
    return value


def canonical(value: object) -> str:
    """A value as JSON text in the form in which arguments are kept. Raises BadJson."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadJson(f"it cannot be written as JSON ({error})") from error


def is_deeper(value: object, levels: int) -> bool:
    """Whether more than so many lists and objects stand in each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or is_deeper(one, levels - 1) for one in inner)
