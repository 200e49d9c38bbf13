"""Lines that a recorder wrote twice, found by the ids it gives them.

Only the latest lines are remembered, so that memory stays flat; between readings as short
digests, so that a log that is read on later still knows its copies.
"""

import base64
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Literal

from journeyman.logs.lines import Line

REMEMBERED_LINES = 20_000
_NAME_BYTES = 6
_CONTENT_BYTES = 6


class Copies:
    """The lines seen so far, by id; `memory` is what `before` gave at the end of a reading."""

    def __init__(self, memory: str = "", *, limit: int = REMEMBERED_LINES) -> None:
        self._limit = limit
        self._earlier = {
            packed[:_NAME_BYTES]: packed[_NAME_BYTES:]
            for packed in _split(base64.b64decode(memory))
        }
        # Ordered, because taking the first key out of a plain dict again and again is slow.
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def compare(self, name: str, line: Line) -> Literal["new", "same", "other"]:
        """Whether a line with this id was there before, with the same content or with other."""
        content = _checksum(line.data)
        before = self._seen.get(name)
        if before is not None:
            return "same" if before[0] == content else "other"
        if self._earlier and (packed := self._earlier.get(_name_digest(name))) is not None:
            return "same" if packed == _packed(content) else "other"
        self._seen[name] = (content, line.offset)
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)
        return "new"

    def before(self, offset: int | None) -> str:
        """What to remember of the lines before this offset, or of all."""
        packed = [name + content for name, content in self._earlier.items()]
        for name, (content, at) in self._seen.items():
            if offset is None or at < offset:
                packed.append(_name_digest(name) + _packed(content))
        return base64.b64encode(b"".join(packed[-self._limit :])).decode()


def _checksum(data: bytes) -> int:
    """Checksum and length: enough to tell two lines with one id apart, at a quarter of the cost of
    a real digest, which would be felt on every line of a log.
    """
    content = data.rstrip()
    return zlib.crc32(content) << 16 | len(content) & 0xFFFF


def _packed(content: int) -> bytes:
    return content.to_bytes(_CONTENT_BYTES, "big")


def _name_digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_NAME_BYTES).digest()


def _split(packed: bytes) -> Iterator[bytes]:
    size = _NAME_BYTES + _CONTENT_BYTES
    for start in range(0, len(packed), size):
        yield packed[start : start + size]
