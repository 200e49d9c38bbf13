"""JSON documents read as a stream: the elements of one list, one at a time.

A document that ends too early still gives what came before the cut.
"""

from collections.abc import Container, Iterator
from typing import Any

import ijson

from journeyman.logs.logfile import LogFile
from journeyman.records import LogState, Skip


def items(log: LogFile, prefix: str) -> Iterator[Any | Skip]:
    """The elements at `prefix` ("item" for a top-level list, "messages.item" for a list under a
    key). A broken document ends with a skip.
    """
    with log.open() as file:
        stream = ijson.items(file, prefix, use_float=True)
        while True:
            try:
                yield next(stream)
            except StopIteration:
                return
            except (ijson.JSONError, UnicodeDecodeError, ValueError, RecursionError) as error:
                yield Skip(line=0, reason=f"the document breaks off: {_first_line(error)}")
                return


def value_at(log: LogFile, prefix: str) -> Any:
    """The value under one key, or None when it is not there or cannot be read."""
    for value in items(log, prefix):
        return None if isinstance(value, Skip) else value
    return None


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
        except (ijson.JSONError, UnicodeDecodeError, ValueError, RecursionError):
            pass  # whoever reads the messages meets the break again and reports it
    return found


def read_whole(log: LogFile, reader: str) -> LogState:
    """The state of a log that is read as a whole whenever it changed."""
    return LogState(reader=reader, size=log.size, mtime_ns=log.mtime_ns)


def _first_line(error: Exception) -> str:
    text = error.args[0] if error.args else str(error)
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    return str(text).strip().splitlines()[0] if str(text).strip() else type(error).__name__
