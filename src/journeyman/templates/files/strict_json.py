"""JSON that a stranger wrote, read strictly: each key once, numbers that exist, whole characters,
and not so deep that walking through it fails. What the values mean is left to others.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

DEEPEST = 32
"""How many lists and objects may stand in each other; arguments of tools have a handful."""


class BadJson(ValueError):
    """The text is a clause that says what is wrong: "it is not JSON"."""


def read_json(data: bytes | str) -> Any:
    """The value of a JSON text. Raises BadJson."""
    text = _decoded(data) if isinstance(data, bytes) else data
    if not text.strip():
        raise BadJson("it is empty")
    try:
        value = json.loads(
            text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_key_once
        )
    except BadJson:
        raise
    except RecursionError as error:
        raise BadJson(f"it is nested more than {DEEPEST} levels deep") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadJson(f"it is not JSON ({error.msg}, {where})") from error
    except ValueError as error:
        raise BadJson("it holds a number that is too long") from error
    _check(value)
    return value


def canonical(value: object) -> str:
    """A value as JSON text in the one form in which arguments are kept. Keys stay in order, as the
    agent gave them. Raises BadJson for what JSON cannot say.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadJson(f"it cannot be written as JSON ({error})") from error


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadJson(f"it is not UTF-8 text (byte {error.start})") from error


def _no_number(word: str) -> float:
    raise BadJson(f"it holds {word}, which is no number in JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadJson(f"it holds the number {digits[:20]}, which is too large")
    return number


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise BadJson(f"the key {twice[:80]!r} stands twice in one object")
    return found


def _check(value: object) -> None:
    """Depth and characters, without recursion."""
    level, depth = [value], 0
    while level:
        for text in level:
            if isinstance(text, str) and not text.isascii():
                _check_whole(text)
        outer = [one for one in level if isinstance(one, dict | list)]
        depth += 1 if outer else 0
        if depth > DEEPEST:
            raise BadJson(f"it is nested more than {DEEPEST} levels deep")
        level = [inner for one in outer for inner in _inside(one)]


def _inside(value: dict[str, Any] | list[Any]) -> Iterator[object]:
    yield from value
    if isinstance(value, dict):
        yield from value.values()


def _check_whole(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadJson(f"it holds half a character ({text[error.start]!r})") from error
