"""Splits a JSON document of any size into the values at some places, without building the rest.
Each value is then decoded on its own, so that a broken or hostile one costs no other.
"""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

import msgspec

from journeyman.text.json_limits import MAX_VALUES

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Path = tuple[str, ...]
"""Where a value stands: the keys that lead to it; `item` stands for any element of a list."""

MAX_VALUE_BYTES = 32 * 1024 * 1024
"""Longer values, lines and columns are passed over: they are embedded files, and reading one would
take more memory than everything else together."""

MAX_PASSED_BYTES = 1024 * 1024 * 1024
"""If the end of a value or line is farther away than this, the rest of the log is given up: it is a
hole in a sparse file, or an archive made to fill the memory."""

_CHUNK_BYTES = 256 * 1024
_MAX_CHUNK_BYTES = 8 * 1024 * 1024
_MAX_KEY_BYTES = 64 * 1024

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _next(marks: bytes) -> Callable[[bytes, int], re.Match[bytes] | None]:
    """Return a search for the next of these characters outside strings. Every repetition is
    possessive: nothing is tried twice, and nothing is remembered for it.
    """
    other = rb'[^"%s]*+' % marks
    pattern = rb"%s(?:%s%s)*+[%s]" % (other, _STRING, other, marks)
    return re.compile(pattern, re.DOTALL).match


_next_mark = _next(rb"\[\]{},:")
_next_bracket = _next(rb"\[\]{}")
_key_string = re.compile(_STRING, re.DOTALL).match
_next_text = re.compile(rb"[^ \t\r\n]").search
_decode_parts = msgspec.json.Decoder(
    dict[str, msgspec.Raw] | list[msgspec.Raw] | str | float | int | bool | None
).decode
_decode_key = msgspec.json.Decoder(str).decode

_QUOTE, _COMMA, _COLON = b'",:'
_CLOSERS = {ord("["): ord("]"), ord("{"): ord("}")}


class BrokenDocument(ValueError):
    """The rest of a document cannot be read. The message is a clause that states the reason."""


class Value(NamedTuple):
    """A value of a document: its place, and its JSON text, which is None if it is too long."""

    path: Path
    data: bytes | None


Choice = Callable[[Path], bool]
"""A choice of values by their path."""


def split_document(file: BinaryIO, wanted: Choice, entered: Choice) -> Iterator[Value]:
    """Yield the values whose path is `wanted`, in order. Lists and objects are searched if their
    path is `entered`, and passed over otherwise. Raises BrokenDocument.
    """
    data = file.read(MAX_VALUE_BYTES)
    if len(data) < MAX_VALUE_BYTES and not _may_have_too_many_values(data):
        # Several times faster, but only for sound documents that fit into memory.
        with suppress(ValueError, RecursionError):
            yield from list(_split_whole(data.removeprefix(BYTE_ORDER_MARK), (), wanted, entered))
            return
    yield from _Splitter(file, data, wanted, entered)


def split_head(head: bytes, wanted: Choice, entered: Choice) -> Iterator[Value]:
    """Do the same with the start of a document."""
    return iter(_Splitter(io.BytesIO(), head, wanted, entered))


def _may_have_too_many_values(data: bytes) -> bool:
    return len(data) > MAX_VALUES and sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES


def _split_whole(
    data: bytes | msgspec.Raw, path: Path, wanted: Choice, entered: Choice
) -> Iterator[Value]:
    if wanted(path):
        yield Value(path, bytes(data))
    elif entered(path):
        parts = _decode_parts(data)
        if isinstance(parts, dict):
            for key, part in parts.items():
                yield from _split_whole(part, (*path, key), wanted, entered)
        elif isinstance(parts, list):
            for part in parts:
                yield from _split_whole(part, (*path, "item"), wanted, entered)


class _Splitter:
    """Splits a document of which `data` has been read from the file."""

    def __init__(self, file: BinaryIO, data: bytes, wanted: Choice, entered: Choice) -> None:
        self._file = file
        self._wanted = wanted
        self._entered = entered
        self._data = data
        self._at = len(BYTE_ORDER_MARK) if self._data.startswith(BYTE_ORDER_MARK) else 0

    def __iter__(self) -> Iterator[Value]:
        yield from self._value(())
        if self._peek() is not None:
            raise BrokenDocument("there is more text after its end")

    def _value(self, path: Path) -> Iterator[Value]:
        """Pass over the value at the current position, and yield what is wanted of it."""
        if self._wanted(path):
            yield Value(path, self._take())
        elif self._peek() in _CLOSERS and self._entered(path):
            yield from self._elements(path)
        else:
            self._take(keep=False)

    def _elements(self, path: Path) -> Iterator[Value]:
        opener = self._peek()
        closer = _CLOSERS[opener or 0]
        self._at += 1
        is_first = True
        while self._peek() != closer:
            if not is_first:
                self._pass_mark(_COMMA)
            is_first = False
            key = "item"
            if closer == ord("}"):
                key = self._take_key()
                self._pass_mark(_COLON)
            yield from self._value((*path, key))
        self._at += 1

    def _peek(self) -> int | None:
        """Move to the next byte that is not blank and return it, None at the end."""
        while (text := _next_text(self._data, self._at)) is None:
            self._at = len(self._data)
            if not self._read_more():
                return None
        self._at = text.start()
        return self._data[self._at]

    def _pass_mark(self, mark: int) -> None:
        if (found := self._peek()) != mark:
            raise BrokenDocument(
                "it ends unexpectedly"
                if found is None
                else f"{chr(found)!r} stands where {chr(mark)!r} is expected"
            )
        self._at += 1

    def _take_key(self) -> str:
        if self._peek() != _QUOTE:
            raise BrokenDocument("a key is not a string")
        while not (string := _key_string(self._data, self._at)):
            if len(self._data) - self._at > _MAX_KEY_BYTES or not self._read_more():
                raise BrokenDocument("a key has no end")
        self._at = string.end()
        try:
            return _decode_key(string[0])
        except (ValueError, RecursionError) as error:
            raise BrokenDocument(f"a key cannot be read ({error})") from error

    def _take(self, *, keep: bool = True) -> bytes | None:
        """Move to the end of the value at the current position. Return its text if it is to be
        kept and not too long.
        """
        at = self._at
        depth = passed = 0
        while True:
            found = (_next_bracket if depth else _next_mark)(self._data, at)
            if found is None:
                if keep and at - self._at > MAX_VALUE_BYTES:
                    keep = False
                if not keep:
                    passed += at - self._at
                    self._at = at
                if passed > MAX_PASSED_BYTES or len(self._data) - at > 2 * MAX_VALUE_BYTES:
                    raise BrokenDocument("a value is too long to find its end")
                examined = at - self._at
                if not self._read_more():
                    if depth or b'"' in self._data:
                        raise BrokenDocument("it ends unexpectedly")
                    at = len(self._data)
                    break
                at = self._at + examined
                continue
            at = found.end()
            mark = self._data[at - 1]
            if mark in _CLOSERS:
                depth += 1
            elif depth > 1:
                depth -= 1
            else:
                at -= depth == 0  # a mark after the value is not part of it
                break
        start, self._at = self._at, at
        return self._data[start:at].strip() if keep and at - start <= MAX_VALUE_BYTES else None

    def _read_more(self) -> bool:
        """Read on, and forget what lies before the current position. Chunks grow with what is
        kept, so that examining it again takes no more than twice the time.
        """
        kept = self._data[self._at :]
        chunk = self._file.read(min(max(_CHUNK_BYTES, len(kept)), _MAX_CHUNK_BYTES))
        self._data, self._at = kept + chunk, 0
        return bool(chunk)
