"""The audit as a file: one JSON object a line, or a table. Each line of JSON is the entry's text as
it was chained with its digest put in last, so that whoever takes that off can check the chain.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

Format = Literal["jsonl", "csv"]
Entries = Iterable[tuple[str, str]]
"""Each entry's text, and the text's digest."""

_COLUMNS = ("seq", "at", "kind", "actor", "confirmation", "about", "previous", "digest")


def exported(entries: Entries, format_: Format) -> Iterator[str]:
    """The lines of the file, in the order of the entries."""
    return _FORMATS[format_](entries)


def _json_lines(entries: Entries) -> Iterator[str]:
    for text, digest in entries:
        yield f'{text[:-1]},"digest":"{digest}"}}\n'


def _table(entries: Entries) -> Iterator[str]:
    yield _row(_COLUMNS)
    for text, digest in entries:
        entry: dict[str, Any] = msgspec.json.decode(text)
        entry |= {
            "at": datetime.fromtimestamp(entry["at"], UTC).isoformat(),
            "about": msgspec.json.encode(entry["about"]).decode(),
            "digest": digest,
        }
        yield _row([_cell(entry[name]) for name in _COLUMNS])


def _row(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _cell(value: object) -> str:
    text = str(value)
    # A spreadsheet would take such a cell for a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


_FORMATS: dict[Format, Callable[[Entries], Iterator[str]]] = {
    "jsonl": _json_lines,
    "csv": _table,
}
