"""A file that may be a log: its first bytes, by which readers decide whether they know it, its size
and age, and how to open it.
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
_LONGEST_PREFIX = 1000
LONGEST_HEAD_BYTES = 4 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LogFile:
    """One file, looked at but not yet read.

    `name` is the spelling under which it is remembered: its path, and before it `place`, the
    machine, where several machines keep their sessions together.
    """

    def __init__(self, path: Path, place: str = "") -> None:
        self.path = path.absolute()
        self.name = place + printable(self.path)
        try:
            stat = self.path.stat()
            self.size = stat.st_size
            self.mtime_ns = stat.st_mtime_ns
            # A database in WAL mode grows beside itself: without this, new rows would go unseen.
            wal = self.path.with_name(self.path.name + "-wal")
            if wal.exists():
                beside = wal.stat()
                self.size += beside.st_size
                self.mtime_ns = max(self.mtime_ns, beside.st_mtime_ns)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LogUnreadable(f"{printable(self.path)}: {reason}.") from error

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked if the file is compressed."""
        try:
            with self.open() as file:
                head = file.read(HEAD_BYTES)
                if b"\n" not in head and len(head) == HEAD_BYTES:
                    # A long first line, a pasted picture say: it takes all of it to know it.
                    head += file.readline(LONGEST_HEAD_BYTES)
                return head.removeprefix(BYTE_ORDER_MARK)
        except (OSError, EOFError, zlib.error) as error:
            raise LogUnreadable(f"{self.path}: {error}.") from error

    @cached_property
    def is_gzip(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"

    @property
    def is_text(self) -> bool:
        """Whether the first bytes could be text at all."""
        return b"\x00" not in self.head

    @property
    def is_object(self) -> bool:
        """Whether the first bytes could be those of a JSON object."""
        return self.is_text and self.head.lstrip().startswith(b"{")

    def open(self) -> BinaryIO:
        """The content as bytes, unpacked if the file is compressed."""
        if self.is_gzip:
            return cast("BinaryIO", gzip.open(self.path, "rb"))
        return self.path.open("rb", buffering=1024 * 1024)

    @cached_property
    def first_lines(self) -> list[Any]:
        """The first complete lines as JSON values; lines that are none are left out."""
        values = []
        lines = self.head.split(b"\n")
        if len(self.head) >= HEAD_BYTES - len(BYTE_ORDER_MARK):
            lines.pop()  # it is cut, or empty
        for line in lines[:50]:
            try:
                values.append(msgspec.json.decode(line))
            except (ValueError, RecursionError):
                continue
        return values

    @cached_property
    def keys(self) -> frozenset[str]:
        """The JSON keys in the first bytes, two levels deep, as dotted paths; `item` stands for
        any element of a list. Works on a document whose end was not read.
        """
        import ijson  # noqa: PLC0415 - asked of new logs only, and slow to load

        found = set()
        try:
            for prefix, event, value in ijson.parse(io.BytesIO(self.head), buf_size=_BUFFER_BYTES):
                if len(prefix) > _LONGEST_PREFIX:
                    break  # no log nests like this, and each level costs more than the last
                if event == "map_key" and prefix.count(".") < 2:
                    found.add(f"{prefix}.{value}" if prefix else str(value))
        except (ijson.JSONError, UnicodeDecodeError, ValueError):
            pass  # the head ends in mid-document, or is no JSON: what was seen so far decides
        return frozenset(found)

    @property
    def is_jsonl(self) -> bool:
        """Whether this is one JSON value a line, rather than one document."""
        lines = [line for line in self.head.split(b"\n", 3) if line.strip()]
        if not lines or not lines[0].lstrip().startswith((b"{", b"[")):
            return False
        named_so = self.path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
        try:
            first = msgspec.json.decode(lines[0])
        except (ValueError, RecursionError):
            # A document in several lines begins like this, whatever it is called.
            return named_so and lines[0].strip() not in (b"{", b"[")
        return named_so or (len(self.first_lines) > 1 and isinstance(first, dict | list))

    def state(self, reader: str, **how_far: Any) -> LogState:
        """The state of a log that was read: to its end, unless it says how far."""
        return LogState(reader=reader, size=self.size, mtime_ns=self.mtime_ns, **how_far)

    def stem(self) -> str:
        """The file's name without the endings that only say its format."""
        name = self.path.name
        for ending in (".gz", ".jsonl", ".ndjson", ".json", ".traj"):
            name = name.removesuffix(ending)
        return name or self.path.name


def printable(path: Path | str) -> str:
    """A path as text that can be stored and shown: bytes that are no text are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
