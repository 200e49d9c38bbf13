"""Limits that are checked before a parser sees the text."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.text.json_limits import MAX_DEPTH, MAX_DIGITS, MAX_VALUES, find_excess
from journeyman.text.strict_json import InvalidJson, decode_json


def nested(depth: int, opening: str = "[", closing: str = "]", inner: str = "") -> bytes:
    return (opening * depth + inner + closing * depth).encode()


@table(
    ("data", "said"),
    [
        (nested(MAX_DEPTH + 1), "levels deep"),
        (nested(MAX_DEPTH + 1, '{"a":', "}", "1"), "levels deep"),
        (nested(300, '[ {"]": ', "} ]", "1"), "levels deep"),
        (b'{"a": "' + b"]" * 9000 + b'", "b": ' + nested(MAX_DEPTH) + b"}", "levels deep"),
        (b"[" * 100_000, "levels deep"),
        (b"[" + b"1" * (MAX_DIGITS + 1) + b"]", "digits"),
        (b'{"a": 0.' + b"1" * 4_301 + b"}", "digits"),
        (b"[" + b"0," * MAX_VALUES + b"0]", "values"),
        (b"[" + b"{}," * MAX_VALUES + b"0]", "values"),
    ],
)
def test_what_exceeds_a_limit(data: bytes, said: str) -> None:
    assert said in find_excess(data)
    with pytest.raises(InvalidJson, match=said):
        decode_json(data)


@table(
    "data",
    [
        nested(MAX_DEPTH),
        b"[" + b"1" * MAX_DIGITS + b"]",
        b"[" + b"0," * (MAX_VALUES - 2) + b"0]",
        b"[" + b"[]," * 5_000 + b"[]]",
        json.dumps("[" * 5_000).encode(),
        json.dumps('\\"[{' * 5_000 + "1" * 5_000 + "," * 1_500_000).encode(),
        json.dumps("\\" * 5_001 + "[" * 5_000).encode(),
    ],
)
def test_what_does_not(data: bytes) -> None:
    assert find_excess(data) == ""
    assert decode_json(data) == json.loads(data)


def depth(value: Any) -> int:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    is_container = isinstance(value, dict | list)
    return is_container + max(map(depth, items), default=0)


@given(
    st.recursive(
        st.text(alphabet='[]{}",\\a1'),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[]{}"\\'), inner),
    )
)
def test_strings_do_not_count(value: Any) -> None:
    """A value that is allowed at the greatest depth is allowed whatever its strings contain."""
    data = msgspec.json.encode(value)
    room = MAX_DEPTH - depth(value)
    assert find_excess(b"[" * room + data + b"]" * room) == ""
    assert "levels" in find_excess(b"[" * (room + 1) + data + b"]" * (room + 1))
