"""Lines that a recorder wrote twice, found by the ids it gives them.

Only the latest lines are remembered, as short digests, so that memory stays flat and a log that
is read on later still knows its copies.
"""

import base64
import hashlib
from collections.abc import Iterator
from typing import Literal

from journeyman.logs.lines import Line

REMEMBERED_LINES = 20_000
_DIGEST_BYTES = 6


class Copies:
    """The last `limit` lines seen, by id; `memory` is what `before` gave after a reading."""

    def __init__(self, memory: str = "", *, limit: int = REMEMBERED_LINES) -> None:
        self._limit = limit
        self._seen: dict[bytes, tuple[bytes, int]] = {
            packed[:_DIGEST_BYTES]: (packed[_DIGEST_BYTES:], -1)
            for packed in _split(base64.b64decode(memory))
        }

    def compare(self, name: str, line: Line) -> Literal["new", "same", "other"]:
        """Whether a line with this id was there before, with the same content or with other."""
        short, content = _digest(name.encode("utf-8", "replace")), _digest(line.data.rstrip())
        before = self._seen.get(short)
        if before is not None:
            return "same" if before[0] == content else "other"
        self._seen[short] = (content, line.offset)
        if len(self._seen) > self._limit:
            del self._seen[next(iter(self._seen))]
        return "new"

    def before(self, offset: int | None) -> str:
        """What to remember of the lines before this offset, or of all."""
        packed = (
            name + content
            for name, (content, at) in self._seen.items()
            if offset is None or at < offset
        )
        return base64.b64encode(b"".join(packed)).decode()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _split(packed: bytes) -> Iterator[bytes]:
    for start in range(0, len(packed), 2 * _DIGEST_BYTES):
        yield packed[start : start + 2 * _DIGEST_BYTES]
