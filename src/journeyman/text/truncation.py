"""Truncates text: at its end, onto one line, or to the length limit of a service.

Services count lengths in UTF-16 units, as Telegram does, or in something shorter.
"""

from collections.abc import Sequence


def truncate(text: str, limit: int) -> str:
    """Return a text of up to `limit` characters; a longer one ends with an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def one_line(text: str, limit: int) -> str:
    """Return a text on one line, truncated to `limit` characters."""
    return truncate(" ".join(text.split()), limit)


def utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def truncate_middle(text: str, limit: int) -> str:
    """Return a text of up to `limit` units. It is cut before its last line, which says where the
    full text is.
    """
    text = text.rstrip() or "(nothing)"
    encoded, limit_bytes = text.encode("utf-16-le"), 2 * max(0, limit)
    if len(encoded) <= limit_bytes:
        return text
    note = f"\n[… cut here: {len(text):,} characters are too long for this service …]\n"
    end = note + text.rpartition("\n")[2]
    left = limit_bytes - len(end.encode("utf-16-le"))
    if left < 0:  # not even the last line fits
        return encoded[:limit_bytes].decode("utf-16-le", "ignore")
    return encoded[:left].decode("utf-16-le", "ignore") + end


def fit_pieces(pieces: Sequence[tuple[str, int]], limit: float, omitted: str) -> str:
    """Join the leading pieces that fit. Each piece comes with the number of original characters it
    represents; if any are left out, `omitted` is appended with `{}` replaced by their count.
    """
    if sum(utf16_length(piece) for piece, _ in pieces) <= limit:
        return "".join(piece for piece, _ in pieces)
    missing = sum(characters for _, characters in pieces)
    room = limit - utf16_length(omitted.format(missing))
    fitting = []
    for piece, characters in pieces:
        room -= utf16_length(piece)
        if room < 0:
            break
        fitting.append(piece)
        missing -= characters
    return "".join(fitting) + omitted.format(missing)


class TruncatedText:
    """The beginning and the end of a text that arrives in chunks, in bytes."""

    def __init__(self, size: int) -> None:
        self._half = max(1, size // 2)
        self._head, self._tail, self._omitted = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        over = max(0, len(self._tail) - self._half)
        self._tail = self._tail[over:]
        self._omitted += over

    @property
    def text(self) -> str:
        if not self._omitted:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="ignore"), self._tail.decode(errors="ignore")
        return f"{head}\n[… {self._omitted:,} bytes left out …]\n{tail}"
