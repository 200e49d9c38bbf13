"""Streams logs line by line: one line in memory, broken lines reported, resumable. A log that has
only grown is recognised by a digest of its first bytes and of the last bytes before the saved
offset; any other log is read from the start.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from journeyman.logs.log_file import MAX_VALUE_BYTES, LogFile
from journeyman.records import LogEvent, LogState, Mark, Skip
from journeyman.text.strict_json import find_excess, repaired_json

FRAGMENT_MESSAGES = 256
"""Messages in one fragment: enough for an efficient write, few enough that memory stays flat."""

_DIGEST_BYTES = 4096
_CHUNK_BYTES = 1024 * 1024
_MAX_PASSED_BYTES = 1024 * 1024 * 1024
"""If the end of a line is farther away than this, the rest of the log is given up: it is a hole in
a sparse file, or an archive made to fill the memory."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Line(NamedTuple):
    """A line and its place in the log. `whole` is false for a last line without a line break."""

    number: int
    offset: int
    data: bytes
    whole: bool


class BadLine(ValueError):
    """A line cannot be used. The message is the reason that the import report shows."""


class Lines:
    """The lines of a log from where `since` ended, or from the start.

    `back_to`, an offset and the number of lines before it, makes a resumed read start earlier.
    `resumed` is set once iteration has begun. After the last line, `offset` and `count` state how
    far the log was read; a last line without a line break is not counted, so that it is read again
    when it is complete.
    """

    def __init__(
        self,
        log: LogFile,
        since: LogState | None,
        *,
        back_to: tuple[int, int] | None = None,
        max_bytes: int = MAX_VALUE_BYTES,
    ) -> None:
        self._log = log
        self._since = since
        self._back_to = back_to
        self._max_bytes = max_bytes
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
            if not self._log.is_gzip:
                file.seek(self.offset)
            try:
                yield from self._read(file)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                reason = f"the compressed file ends unexpectedly: {error}"
                yield Skip(line=self.count + 1, reason=reason)

    def _read(self, file: BinaryIO) -> Iterator[Line | Skip]:
        while data := file.readline(self._max_bytes + 1):
            length, whole = len(data), data.endswith(b"\n")
            number, offset = self.count + 1, self.offset
            too_long = length > self._max_bytes and not whole
            while not whole and too_long and (chunk := file.readline(_CHUNK_BYTES)):
                length, whole = length + len(chunk), chunk.endswith(b"\n")
                if length > _MAX_PASSED_BYTES:
                    reason = f"the line has over {_MAX_PASSED_BYTES:,} bytes; the rest is skipped"
                    yield Skip(line=number, reason=reason)
                    return
            if whole:
                self.offset += length
                self.count += 1
            if too_long:
                reason = (
                    f"the line has {length:,} bytes; lines over {self._max_bytes:,} are skipped"
                )
                yield Skip(line=number, reason=reason)
            elif not data.isspace():
                yield Line(number, offset, data, whole)

    def state(self, reader: str, *, memory: dict[str, Any] | None = None) -> LogState:
        """Return the state to store: how far the log has been read."""
        with self._log.open() as file:
            digest = "" if self._log.is_gzip else _digest_before(file, self.offset)
        progress = {"offset": self.offset, "lines": self.count, "digest": digest}
        return self._log.state(reader, **progress, memory=memory or {})


def _digest_before(file: BinaryIO, offset: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    file.seek(0)
    digest.update(file.read(min(_DIGEST_BYTES, offset)))
    file.seek(max(0, offset - _DIGEST_BYTES))
    digest.update(file.read(min(_DIGEST_BYTES, offset)))
    return f"{offset}:{digest.hexdigest()}"


class LineDecoder(Generic[T]):
    """Decodes a line into one type, ignoring unknown fields. Raises BadLine."""

    def __init__(self, shape: type[T] | Any) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(shape, strict=False)

    def decode(self, line: Line) -> T:
        if excess := find_excess(line.data):
            raise BadLine(f"not read: {excess}")
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
                reason = "the line is cut off; it will be read again when it is complete"
            elif isinstance(error, UnicodeDecodeError):
                reason = f"not valid UTF-8: {error.reason} at byte {error.start}"
            raise BadLine(reason) from error


class LineHandler(Protocol[T_contra]):
    """Turns decoded lines into log events. `handle` processes one line, adds complete events to
    `ready`, and raises BadLine; `memory` returns the state that the next read of the log needs;
    `close` returns what is left after the last line.
    """

    ready: list[LogEvent]

    def handle(self, value: T_contra, line: Line) -> None: ...
    def memory(self) -> dict[str, Any]: ...
    def close(self, read_bytes: int) -> Iterable[LogEvent]: ...


def read_lines(
    reader: str, lines: Lines, shape: type[T] | Any, make_handler: Callable[[], LineHandler[T]]
) -> Iterator[LogEvent]:
    """Read a log to its end. `make_handler` is called once it is known whether the read resumes or
    starts from the beginning.
    """
    decoder: LineDecoder[T] = LineDecoder(shape)
    handler: LineHandler[T] | None = None
    saved_memory: dict[str, Any] | None = None
    for line in lines:
        handler = handler or make_handler()
        if isinstance(line, Skip):
            yield line
            continue
        if not line.whole:
            # It is read again when it is complete, so it must not affect the saved memory.
            saved_memory = handler.memory()
        try:
            handler.handle(decoder.decode(line), line)
        except BadLine as error:
            yield Skip(line=line.number, reason=str(error))
        except msgspec.DecodeError as error:
            # In a part of the line that was decoded only now.
            yield Skip(line=line.number, reason=f"not the expected shape: {error}")
        except RecursionError:
            yield Skip(line=line.number, reason="nested too deeply to be read")
        if handler.ready:
            yield from handler.ready
            handler.ready = []
    handler = handler or make_handler()
    memory = saved_memory or handler.memory()
    yield from handler.close(lines.offset)
    yield Mark(state=lines.state(reader, memory=memory))


def read_each_line(
    log: LogFile, read: Callable[[Line, Any], Iterable[T]], *, max_bytes: int = MAX_VALUE_BYTES
) -> Iterator[T | Skip]:
    """Yield what `read` returns for each line of a log and its JSON value. It may raise BadLine."""
    decoder: LineDecoder[Any] = LineDecoder(Any)
    for line in Lines(log, None, max_bytes=max_bytes):
        if isinstance(line, Skip):
            yield line
            continue
        try:
            # The value has no name here, so that it is gone before the next line is decoded.
            yield from read(line, decoder.decode(line))
        except BadLine as error:
            yield Skip(line=line.number, reason=str(error))
