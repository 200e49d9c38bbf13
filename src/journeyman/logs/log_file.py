"""A file that may be a log: its first bytes, from which readers recognise it, its size and
modification time, and how to open it.
"""

import gzip
import sqlite3
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from journeyman.records import LogState
from journeyman.records.errors import LogUnreadable, NotALog
from journeyman.text.strict_json import InvalidJson, decode_json, decode_repaired

_EXAMINED_ITEMS = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SQLITE_HEADER = b"SQLite format 3\x00"
HEAD_BYTES = 256 * 1024
MAX_VALUE_BYTES = 16 * 1024 * 1024
"""Longer lines, documents and columns are not read: they are embedded files, and reading one would
take more memory than everything else together."""
MAX_EXPORT_BYTES = 64 * 1024 * 1024
"""The same for a line of Journeyman's own export, which is a whole session."""
_MISSING_ADVICE = (
    "Check the path, or run `journeyman import` without one to search the default folders."
)


class LogFile:
    """One file, inspected but not yet read. Raises LogUnreadable if it does not exist, NotALog if
    it is a pipe, a device or another special file.

    `name` identifies it in the store: its path, preceded by `place`, the machine, if several
    machines share one store.
    """

    def __init__(self, path: Path, place: str = "") -> None:
        self.path = path.absolute()
        self.name = place + printable(self.path)
        try:
            status = self.path.stat()
            self.size = status.st_size
            self.mtime_ns = status.st_mtime_ns
            # A database in WAL mode grows in its -wal file: without it, new rows would be missed.
            wal = self.path.with_name(self.path.name + "-wal")
            if wal.exists():
                wal_stat = wal.stat()
                self.size += wal_stat.st_size
                self.mtime_ns = max(self.mtime_ns, wal_stat.st_mtime_ns)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            advice = f" {_MISSING_ADVICE}" if isinstance(error, FileNotFoundError) else ""
            raise LogUnreadable(f"{printable(self.path)}: {reason}.{advice}") from error
        if not stat.S_ISREG(status.st_mode):
            raise NotALog(f"{printable(self.path)} is skipped: {_NOT_REGULAR}.")

    @cached_property
    def is_database(self) -> bool:
        """Whether the file is a SQLite database, whatever its name. SQLite is asked: the program
        that has it open may be this one, and reading the file would cost that program its locks.
        """
        uri = f"{self.path.as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            # A damaged database is still one; what cannot be opened is reported by reading it.
            return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
        return True

    @cached_property
    def head(self) -> bytes:
        """The first bytes, decompressed; of a database those of any. Raises LogUnreadable."""
        try:
            if self.is_database:
                return SQLITE_HEADER
            with self.open() as file:
                head = file.read(HEAD_BYTES)
                if len(head) == HEAD_BYTES:
                    head += file.readline(MAX_EXPORT_BYTES)  # recognition needs complete lines
                return head.removeprefix(BYTE_ORDER_MARK)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise LogUnreadable(f"{self.path}: {reason}.") from error

    @cached_property
    def is_gzip(self) -> bool:
        with open_regular(self.path) as file:
            return file.read(2) == b"\x1f\x8b"

    @property
    def is_text(self) -> bool:
        """Whether the first bytes can be text."""
        return b"\x00" not in self.head

    @property
    def is_object(self) -> bool:
        """Whether the first bytes can be the start of a JSON object."""
        return self.is_text and self.head.lstrip().startswith(b"{")

    def open(self) -> BinaryIO:
        """Open the content as bytes, decompressed."""
        if self.is_gzip:
            return cast("BinaryIO", gzip.GzipFile(self.path))
        return open_regular(self.path, buffering=1024 * 1024)

    @cached_property
    def first_lines(self) -> list[Any]:
        """The first complete lines as JSON values, without the lines that are not JSON."""
        values = []
        for line in self.head.split(b"\n", 50)[:50]:
            with suppress(InvalidJson):
                values.append(decode_json(line))
        return values

    @cached_property
    def document(self) -> Any:
        """The whole file as one JSON value. Raises LogUnreadable, or NotALog if it is too long."""
        try:
            with self.open() as file:
                data = file.read(MAX_VALUE_BYTES + 1)
            if len(data) > MAX_VALUE_BYTES:
                limit = f"{MAX_VALUE_BYTES:,} bytes"
                raise NotALog(f"{self.path} is a document of more than {limit}. Use JSON lines.")
            return decode_repaired(data.decode("utf-8-sig", "replace"))
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise LogUnreadable(f"{self.path}: {error}.") from error

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the first JSON value, three levels deep, as dotted paths; `item` stands for
        any element of a list.
        """
        value = self.first_lines[0] if self.first_lines else None
        if not isinstance(value, dict | list) and self.head.lstrip()[:1] in (b"{", b"["):
            with suppress(LogUnreadable):
                value = self.document
        return frozenset(_keys(value, "", 3))

    @property
    def is_jsonl(self) -> bool:
        """Whether the file holds one JSON value per line, rather than one document."""
        lines = [line for line in self.head.split(b"\n", 3) if line.strip()]
        if not lines or not lines[0].lstrip().startswith((b"{", b"[")):
            return False
        has_suffix = self.path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
        try:
            first = decode_json(lines[0])
        except InvalidJson:
            # A lone bracket starts a document of several lines, whatever the file's suffix.
            return has_suffix and lines[0].strip() not in (b"{", b"[")
        return has_suffix or (len(self.first_lines) > 1 and isinstance(first, dict | list))

    def state(self, reader: str, **progress: Any) -> LogState:
        """Return the state of the log after a read: read to its end, unless `progress` states how
        far.
        """
        return LogState(reader=reader, size=self.size, mtime_ns=self.mtime_ns, **progress)

    def stem(self) -> str:
        """Return the file name without the suffixes that only state its format."""
        name = self.path.name
        for ending in (".gz", ".jsonl", ".ndjson", ".json"):
            name = name.removesuffix(ending)
        return name or self.path.name


def _keys(value: Any, prefix: str, levels: int) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield prefix + key
            if levels > 1:
                yield from _keys(part, f"{prefix}{key}.", levels - 1)
    elif isinstance(value, list) and levels > 1:
        for part in value[:_EXAMINED_ITEMS]:
            yield from _keys(part, f"{prefix}item.", levels - 1)


_NOT_REGULAR = "it is not a regular file"


def open_regular(path: Path, *, buffering: int = -1) -> BinaryIO:
    """Open a file for reading. Raises OSError for anything else than a regular file: a pipe would
    wait for another program, and opening a device can have effects.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(0, _NOT_REGULAR)
    return path.open("rb", buffering=buffering)


def printable(path: Path | str) -> str:
    """Return a path as text that can be stored and shown: bytes that are not text are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
