"""Limits that are checked before a parser sees the text."""

import json

import pytest
from tests.tables import table

from journeyman.text.strict_json import (
    MAX_DEPTH,
    MAX_VALUES,
    InvalidJson,
    decode_json,
    find_excess,
)


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
