"""JSON documents read as a stream: the elements of one list, one at a time.

A document that ends too early still gives what came before the cut. What the streaming parser
refuses although Python writes it (NaN, very large numbers, a byte order mark), the standard
library reads, in documents that fit into memory.
"""

import json
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

import ijson

from journeyman.logs.logfile import LogFile
from journeyman.records import LogState, Skip

_AT_ONCE_BYTES = 32 * 1024 * 1024
_BROKEN = (ijson.JSONError, UnicodeDecodeError, ValueError, RecursionError)


def items(log: LogFile, prefix: str) -> Iterator[Any | Skip]:
    """The elements at `prefix` ("item" for a top-level list, "messages.item" for a list under a
    key). A broken document ends with a skip.
    """
    given = 0
    with log.open() as file:
        stream = ijson.items(file, prefix, use_float=True)
        while True:
            try:
                item = next(stream)
            except StopIteration:
                return
            except _BROKEN as error:
                break_off = Skip(line=0, reason=f"the document breaks off: {_first_line(error)}")
                break
            given += 1
            yield item
    rest = _items_at_once(log, prefix)
    if rest is None:
        yield break_off
        return
    if rest.broken_text:
        yield Skip(line=0, reason="not valid UTF-8; what is broken was replaced")
    yield from rest.items[given:]


class _AtOnce(NamedTuple):
    items: list[Any]
    broken_text: bool


def _items_at_once(log: LogFile, prefix: str) -> _AtOnce | None:
    """The elements as the standard library reads them; None when it cannot either."""
    document, broken_text = _at_once(log)
    for key in prefix.split(".")[:-1]:
        document = document.get(key) if isinstance(document, dict) else None
    return _AtOnce(document, broken_text) if isinstance(document, list) else None


def _at_once(log: LogFile) -> tuple[Any, bool]:
    with log.open() as file:
        content = file.read(_AT_ONCE_BYTES + 1)
    if len(content) > _AT_ONCE_BYTES:
        return None, False
    text = content.decode("utf-8-sig", "replace")
    try:
        document = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None, False
    return document, "\ufffd" in text


def fields(log: LogFile, *, without: Container[str]) -> dict[str, Any]:
    """The values of a document's own keys in one pass, leaving out the large ones. Of a broken
    document, what came before the break.
    """
    found: dict[str, Any] = {}
    key, builder = "", None
    with log.open() as file:
        try:
            for prefix, event, value in ijson.parse(file, use_float=True):
                if not prefix and event == "map_key":
                    key, builder = value, None if value in without else ijson.ObjectBuilder()
                elif prefix and builder is not None:
                    builder.event(event, value)
                    found.setdefault(key, builder.value)
        except _BROKEN:
            # Whoever reads the messages meets the break again and reports it.
            document, _ = _at_once(log)
            if isinstance(document, dict):
                return {key: value for key, value in document.items() if key not in without}
    return found


def read_whole(log: LogFile, reader: str) -> LogState:
    """The state of a log that is read as a whole whenever it changed."""
    return LogState(reader=reader, size=log.size, mtime_ns=log.mtime_ns)


def _first_line(error: Exception) -> str:
    text = error.args[0] if error.args else str(error)
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
