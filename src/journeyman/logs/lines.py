"""Line logs, read as a stream: one line in memory, broken lines reported, and read on later
from where the last reading ended.

A log that only grew is recognised by a digest of the bytes before the remembered offset; when it
does not match, the log was rewritten and is read from its start.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar

import msgspec

from journeyman.logs.logfile import LogFile
from journeyman.records import LogState, Skip

MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is left out and reported: it is an embedded file, and reading it would cost
more memory than everything else together."""

_DIGEST_BYTES = 4096

T = TypeVar("T")


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

    `resumed` says which it was, once iteration has begun. After the last line, `offset` and
    `count` say how far it went; a last line without an end is not counted, so that it is read
    again when it is complete.
    """

    def __init__(self, log: LogFile, since: LogState | None) -> None:
        self._log = log
        self._since = since
        self.offset = 0
        self.count = 0
        self.resumed = False

    def __iter__(self) -> Iterator[Line | Skip]:
        with self._log.open() as file:
            since = self._since
            if since is not None and not self._log.is_gzip and _unchanged_before(file, since):
                self.resumed = True
                self.offset, self.count = since.offset, since.lines
            file.seek(self.offset)
            yield from self._read(file)

    def _read(self, file: BinaryIO) -> Iterator[Line | Skip]:
        readline = file.readline
        while data := readline(MAX_LINE_BYTES + 1):
            length = len(data)
            if length > MAX_LINE_BYTES and not data.endswith(b"\n"):
                while (rest := readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                    length += len(rest)
                length += len(rest)
                self.offset += length
                self.count += 1
                yield Skip(
                    line=self.count,
                    reason=f"the line has {length:,} bytes; over {MAX_LINE_BYTES:,} it is left out",
                )
                continue
            whole = data.endswith(b"\n")
            line = Line(self.count + 1, self.offset, data, whole)
            if whole:
                self.offset += length
                self.count += 1
            if not data.isspace():
                yield line

    def state(
        self,
        reader: str,
        *,
        offset: int | None = None,
        lines: int | None = None,
        memory: dict[str, Any] | None = None,
    ) -> LogState:
        """The state to remember: as far as was read, or only to an earlier offset."""
        offset = self.offset if offset is None else offset
        with self._log.open() as file:
            digest = "" if self._log.is_gzip else _digest_before(file, offset)
        return LogState(
            reader=reader,
            size=self._log.size,
            mtime_ns=self._log.mtime_ns,
            offset=offset,
            lines=self.count if lines is None else lines,
            digest=digest,
            memory=memory or {},
        )


def _digest_before(file: BinaryIO, offset: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    file.seek(0)
    digest.update(file.read(min(_DIGEST_BYTES, offset)))
    file.seek(max(0, offset - _DIGEST_BYTES))
    digest.update(file.read(min(_DIGEST_BYTES, offset)))
    return f"{offset}:{digest.hexdigest()}"


def _unchanged_before(file: BinaryIO, since: LogState) -> bool:
    file.seek(0, 2)
    return file.tell() >= since.offset and _digest_before(file, since.offset) == since.digest


class LineDecoder(Generic[T]):
    """Decodes a line into one type, ignoring fields it does not know. Raises BadLine."""

    def __init__(self, shape: type[T] | Any) -> None:
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(shape, strict=False)
        self._decode = self._decoder.decode

    def decode(self, line: Line) -> T:
        try:
            return self._decode(line.data)
        except msgspec.ValidationError as error:
            raise BadLine(f"not the expected shape: {error}") from error
        except RecursionError as error:
            raise BadLine("nested too deeply to be read") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._decode_leniently(line, error)

    def _decode_leniently(self, line: Line, error: Exception) -> T:
        # Recorders written in JavaScript cut strings between the halves of a character, and
        # Python's write NaN: both are read by the standard library only.
        try:
            value = json.loads(line.data, parse_constant=lambda _: None)
            text = json.dumps(value, ensure_ascii=False)
            return self._decode(text.encode("utf-8", "replace"))
        except UnicodeDecodeError as wrong:
            raise BadLine(f"not valid UTF-8: {wrong.reason} at byte {wrong.start}") from error
        except msgspec.ValidationError as wrong:
            raise BadLine(f"not the expected shape: {wrong}") from error
        except (ValueError, RecursionError) as wrong:
            if not line.whole:
                raise BadLine("the line is cut off; it is read when it is complete") from error
            raise BadLine(f"not valid JSON: {wrong}") from error
