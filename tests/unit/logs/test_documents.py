"""JSON documents read element by element."""

import gzip
import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.logs.fragments import document_fields as fields
from journeyman.logs.fragments import document_items as items
from journeyman.logs.json_document import split_document, split_head
from journeyman.logs.log_file import LogFile
from journeyman.records import Skip


def document(tmp_path: Path, content: str | bytes) -> LogFile:
    file = tmp_path / "document.json"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return LogFile(file)


def test_items_and_fields(tmp_path: Path) -> None:
    # List elements.
    assert list(items(document(tmp_path, '[1, {"a": [2.5]}]'), "item")) == [1, {"a": [2.5]}]
    under_a_key = document(tmp_path, '{"x": 0, "many": [1, 2], "y": 0}')
    assert list(items(under_a_key, "many.item")) == [1, 2]
    assert list(items(under_a_key, "none.item")) == []

    # Elements before a syntax error are returned.
    one, two, skip = items(document(tmp_path, '[1, 2, {"cut": '), "item")
    assert (one, two) == (1, 2)
    assert isinstance(skip, Skip)
    assert "cannot be parsed" in skip.reason

    # Values of individual keys.
    log = document(tmp_path, '{"a": {"b": [1]}, "many": [1, 2], "c": null}')
    assert fields(log, without=("many",)) == {"a": {"b": [1]}, "c": None}

    # Compressed.
    log = document(tmp_path, gzip.compress(b"[1, 2]"))
    assert list(items(log, "item")) == [1, 2]


@table(
    ("content", "expected"),
    [
        ('{"a": NaN, "many": [1, NaN, Infinity, 4]}', [1, None, None, 4]),
        (
            '{"a": 1, "many": [1, 123456789012345678901234567890]}',
            [1, 123456789012345678901234567890],
        ),
        (b'\xef\xbb\xbf{"many": [1, 2]}', [1, 2]),
    ],
    ids=["NaN", "very large number", "byte order mark"],
)
def test_values_that_need_the_standard_library_parser(
    tmp_path: Path, content: str | bytes, expected: list[object]
) -> None:
    log = document(tmp_path, content)
    assert list(items(log, "many.item")) == expected
    assert "many" not in fields(log, without=("many",))


@table(
    ("bad", "said"),
    [
        (b"1" * 4_301, "digits"),
        (b"[" * 40_000 + b"]" * 40_000, "levels deep"),
        (b'{"a" 1}', "cannot be parsed"),
        (b'"' + b"a" * (33 * 1024 * 1024) + b'"', "bytes"),
    ],
    ids=["digits", "depth", "syntax", "length"],
)
def test_a_bad_element_costs_only_itself(tmp_path: Path, bad: bytes, said: str) -> None:
    log = document(tmp_path, b'{"x": 0, "many": [1, ' + bad + b', {"a": "]"}], "y": [2]}')
    one, skip, other = items(log, "many.item")
    assert (one, other) == (1, {"a": "]"})
    assert isinstance(skip, Skip)
    assert said in skip.reason
    assert fields(log, without=("many",)) == {"x": 0, "y": [2]}


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(alphabet='[]{},:"\\ a'),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[]{}"\\ a'), inner),
    ),
    indent=st.sampled_from([None, 1]),
)
def test_splitting_equals_decoding(value: object, indent: int | None) -> None:
    """Both ways of splitting a document find every element."""
    data = json.dumps({"many": [value, value]}, indent=indent).encode()
    wanted, entered = ("many", "item").__eq__, ((), ("many",)).__contains__
    for values in (
        split_head(data, wanted, entered),
        split_document(io.BytesIO(data), wanted, entered),
    ):
        assert [json.loads(one.data or b"") for one in values] == [value, value]
