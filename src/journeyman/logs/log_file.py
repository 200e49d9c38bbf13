"""A file that may be a log: its first bytes, from which readers recognise it, its size and
modification time, and how to open it.
"""

import gzip
import io
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from journeyman.records import LogState
from journeyman.records.errors import LogUnreadable

HEAD_BYTES = 256 * 1024
_BUFFER_BYTES = 4096
_MAX_PREFIX_CHARACTERS = 1000
MAX_FIRST_LINE_BYTES = 4 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MISSING_ADVICE = (
    "Check the path, or run `journeyman import` without one to search the default folders."
)


class LogFile:
    """One file, inspected but not yet read. Raises LogUnreadable if it does not exist.

    `name` identifies it in the store: its path, preceded by `place`, the machine, if several
    machines share one store.
    """

    def __init__(self, path: Path, place: str = "") -> None:
        self.path = path.absolute()
        self.name = place + printable(self.path)
        try:
            stat = self.path.stat()
            self.size = stat.st_size
            self.mtime_ns = stat.st_mtime_ns
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

    @cached_property
    def head(self) -> bytes:
        """The first bytes, decompressed. Raises LogUnreadable."""
        try:
            with self.open() as file:
                head = file.read(HEAD_BYTES)
                if b"\n" not in head and len(head) == HEAD_BYTES:
                    # A very long first line, such as a pasted image: recognition needs all of it.
                    head += file.readline(MAX_FIRST_LINE_BYTES)
                return head.removeprefix(BYTE_ORDER_MARK)
        except (OSError, EOFError, zlib.error) as error:
            raise LogUnreadable(f"{self.path}: {error}.") from error

    @cached_property
    def is_gzip(self) -> bool:
        with self.path.open("rb") as file:
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
            return cast("BinaryIO", gzip.open(self.path, "rb"))
        return self.path.open("rb", buffering=1024 * 1024)

    @cached_property
    def first_lines(self) -> list[Any]:
        """The first complete lines as JSON values, without the lines that are not JSON."""
        values = []
        lines = self.head.split(b"\n")
        if len(self.head) >= HEAD_BYTES - len(BYTE_ORDER_MARK):
            lines.pop()  # cut off, or empty
        for line in lines[:50]:
            try:
                values.append(msgspec.json.decode(line))
            except (ValueError, RecursionError):
                continue
        return values

    @cached_property
    def keys(self) -> frozenset[str]:
        """The JSON keys in the first bytes, two levels deep, as dotted paths; `item` stands for
        any element of a list. Works on a document of which only the start was read.
        """
        import ijson  # noqa: PLC0415 - needed for new logs only, and slow to load

        keys = set()
        try:
            for prefix, event, value in ijson.parse(io.BytesIO(self.head), buf_size=_BUFFER_BYTES):
                if len(prefix) > _MAX_PREFIX_CHARACTERS:
                    break  # no log is nested this deeply, and each level costs more than the last
                if event == "map_key" and prefix.count(".") < 2:
                    keys.add(f"{prefix}.{value}" if prefix else str(value))
        except (ijson.JSONError, UnicodeDecodeError, ValueError):
            pass  # the head ends in mid-document, or is not JSON: the keys so far are the result
        return frozenset(keys)

    @property
    def is_jsonl(self) -> bool:
        """Whether the file holds one JSON value per line, rather than one document."""
        lines = [line for line in self.head.split(b"\n", 3) if line.strip()]
        if not lines or not lines[0].lstrip().startswith((b"{", b"[")):
            return False
        has_suffix = self.path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
        try:
            first = msgspec.json.decode(lines[0])
        except (ValueError, RecursionError):
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
        for ending in (".gz", ".jsonl", ".ndjson", ".json", ".traj"):
            name = name.removesuffix(ending)
        return name or self.path.name


def printable(path: Path | str) -> str:
    """Return a path as text that can be stored and shown: bytes that are not text are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
