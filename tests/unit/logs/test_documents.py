"""JSON documents read element by element."""

import gzip
from pathlib import Path

from tests.tables import table

from journeyman.logs.fragments import document_fields as fields
from journeyman.logs.fragments import document_items as items
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
