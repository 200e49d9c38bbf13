"""Line logs, read as a stream: one line in memory, broken lines reported, and read on later. A log
that only grew is recognised by a digest of its first bytes and of the last ones before the
remembered offset; any other is read from its start.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from journeyman.logs.logfile import LogFile
from journeyman.records import LogEvent, LogState, Mark, Skip

MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is left out and reported: it is an embedded file, and reading it would cost
more memory than everything else together."""

FRAGMENT_MESSAGES = 256
"""Messages a reader gathers before it hands them on: enough to write in one go, few enough that
memory stays flat."""

_DIGEST_BYTES = 4096
_PART_BYTES = 1024 * 1024

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Line(NamedTuple):
    """A line with its place. `whole` is false for a last line that has no end yet."""

    number: int
    offset: int
    data: bytes
    whole: bool


class BadLine(ValueError):
    """A line that cannot be used; the text is the reason for the report."""


class Lines:
    """The lines of a log from where `since` ended, or from the start.

    `back_to`, an offset and the number of lines before it, makes a reading that goes on begin a
    little earlier. `resumed` says whether it went on, once iteration has begun. After the last
    line, `offset` and `count` say how far it went; a last line without an end is not counted, so
    that it is read again when it is complete.
    """

    def __init__(
        self,
        log: LogFile,
        since: LogState | None,
        *,
        back_to: tuple[int, int] | None = None,
        longest: int = MAX_LINE_BYTES,
    ) -> None:
        self._log = log
        self._since = since
        self._back_to = back_to
        self._longest = longest
        self.offset = 0
        self.count = 0
        self.resumed = False

    def __iter__(self) -> Iterator[Line | Skip]:
        with self._log.open() as file:
            since = self._since
            if since is not None and since.offset and not self._log.is_gzip:
                grew = since.offset <= file.seek(0, 2)
                self.resumed = grew and _digest_before(file, since.offset) == since.digest
            if since is not None and self.resumed:
                self.offset, self.count = self._back_to or (since.offset, since.lines)
            file.seek(self.offset)
            try:
                yield from self._read(file)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                yield Skip(line=self.count + 1, reason=f"the compressed file breaks off: {error}")

    def _read(self, file: BinaryIO) -> Iterator[Line | Skip]:
        while data := file.readline(self._longest + 1):
            length, whole = len(data), data.endswith(b"\n")
            number, offset = self.count + 1, self.offset
            too_long = length > self._longest and not whole
            while not whole and too_long and (part := file.readline(_PART_BYTES)):
                length, whole = length + len(part), part.endswith(b"\n")
            if whole:
                self.offset += length
                self.count += 1
            if too_long:
                reason = f"the line has {length:,} bytes; over {self._longest:,} it is left out"
                yield Skip(line=number, reason=reason)
            elif not data.isspace():
                yield Line(number, offset, data, whole)

    def state(self, reader: str, *, memory: dict[str, Any] | None = None) -> LogState:
        """The state to remember: the log was read as far as this."""
        with self._log.open() as file:
            digest = "" if self._log.is_gzip else _digest_before(file, self.offset)
        how_far = {"offset": self.offset, "lines": self.count, "digest": digest}
        return self._log.state(reader, **how_far, memory=memory or {})


def _digest_before(file: BinaryIO, offset: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    file.seek(0)
    digest.update(file.read(min(_DIGEST_BYTES, offset)))
    file.seek(max(0, offset - _DIGEST_BYTES))
    digest.update(file.read(min(_DIGEST_BYTES, offset)))
    return f"{offset}:{digest.hexdigest()}"


class LineDecoder(Generic[T]):
    """Decodes a line into one type, ignoring fields it does not know. Raises BadLine."""

    def __init__(self, shape: type[T] | Any) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(shape, strict=False)

    def decode(self, line: Line) -> T:
        try:
            try:
                return self._decoder.decode(line.data)
            except msgspec.ValidationError:
                raise
            except (msgspec.DecodeError, UnicodeDecodeError):
                return self._decoder.decode(repaired_json(line.data))
        except msgspec.ValidationError as error:
            raise BadLine(f"not the expected shape: {error}") from error
        except RecursionError as error:
            raise BadLine("nested too deeply to be read") from error
        except ValueError as error:
            reason = f"not valid JSON: {error}"
            if not line.whole:
                reason = "the line is cut off; it is read when it is complete"
            elif isinstance(error, UnicodeDecodeError):
                reason = f"not valid UTF-8: {error.reason} at byte {error.start}"
            raise BadLine(reason) from error


def repaired_json(data: bytes | str) -> bytes:
    """JSON that only the standard library reads, in a form that everybody does. Recorders written
    in JavaScript cut strings between the halves of a character, and Python's write NaN. Raises
    ValueError when it is no JSON at all.
    """
    # Decoded here, because json.loads takes bytes with NULs in them for UTF-16 or UTF-32.
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    value = json.loads(text, parse_constant=lambda _: None)
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


class Taker(Protocol[T_contra]):
    """Whoever takes lines in. What is complete is put into `ready`, to be handed on; `take` raises
    BadLine; `memory` is what a later reading of the rest has to know; `close` gives what is left
    after the last line.
    """

    ready: list[LogEvent]

    def take(self, value: T_contra, line: Line) -> None: ...
    def memory(self) -> dict[str, Any]: ...
    def close(self, read_bytes: int) -> Iterable[LogEvent]: ...


def take_lines(
    reader: str, lines: Lines, shape: type[T] | Any, begin: Callable[[], Taker[T]]
) -> Iterator[LogEvent]:
    """Read a log to its end. `begin` makes the taker once it is known whether the log is read on
    or from its start.
    """
    decoder: LineDecoder[T] = LineDecoder(shape)
    taker: Taker[T] | None = None
    settled: dict[str, Any] | None = None
    for line in lines:
        taker = taker or begin()
        if isinstance(line, Skip):
            yield line
            continue
        if not line.whole:
            # It is read again when it is complete, so it must leave no trace in the memory.
            settled = taker.memory()
        try:
            taker.take(decoder.decode(line), line)
        except BadLine as reason:
            yield Skip(line=line.number, reason=str(reason))
        except RecursionError:
            yield Skip(line=line.number, reason="nested too deeply to be read")
        if taker.ready:
            yield from taker.ready
            taker.ready = []
    taker = taker or begin()
    memory = settled or taker.memory()
    yield from taker.close(lines.offset)
    yield Mark(state=lines.state(reader, memory=memory))
