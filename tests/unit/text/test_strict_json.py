"""Decoding untrusted JSON."""

import pytest
from tests.tables import table

from journeyman.text.strict_json import MAX_JSON_DEPTH, InvalidJson, canonical_json, read_json


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@table(
    ("data", "reason"),
    [
        (b" \n", "it is not JSON"),
        (b"{} {}", "it is not JSON"),
        (b"\xff\xfe{\x00}\x00", "it is not JSON"),
        (b'{"a": "\xc3"}', "it is not JSON"),
        (b'{"a": NaN}', "it is not JSON"),
        (b"[1e999]", "out of range"),
        (b"[" + b"9" * 5000 + b"]", "out of range"),
        (rb'{"a": "\ud800"}', "it is not JSON"),
        ('["\udfff"]', "it is not JSON"),
        (nested(MAX_JSON_DEPTH + 1), "nested more than"),
        (nested(100_000), "it is not JSON"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_invalid_json_is_refused(data: bytes | str, reason: str) -> None:
    with pytest.raises(InvalidJson) as refused:
        read_json(data)
    assert reason in str(refused.value)


@table(
    ("data", "value"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (rb'["\ud83d\ude00"]', ["😀"]),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b'"\\u0000"', "\x00"),
        (b"null", None),
        ('{"b": 1.5, "a": [true]}', {"b": 1.5, "a": [True]}),
    ],
    ids=["byte order mark", "surrogate pair", "long number", "NUL", "null", "text"],
)
def test_valid_json_is_read(data: bytes | str, value: object) -> None:
    assert read_json(data) == value


def test_canonical_json() -> None:
    # Everything that can be read can be written.
    assert canonical_json(read_json(nested(MAX_JSON_DEPTH))) == nested(MAX_JSON_DEPTH)

    # Order and non-ASCII characters are kept.
    assert canonical_json({"b": "é", "a": [1, 2.0]}) == '{"b": "é", "a": [1, 2.0]}'
