"""The head of the audit, noted outside the table after every change, so that entries cut off at
the end are missed. It makes tampering evident to whoever keeps the file; it is no proof against
someone who can change both.
"""

import os
from pathlib import Path

from journeyman.records.errors import OutsideProblem

_MODE = 0o600
_SEQ_DIGITS = 20
_SHORTEST = 16
"""How many digits of a digest a notice shows; so many are enough to tell heads apart."""


class Anchor:
    """A file with one line, `seq:digest`. Written in place: the line has one length."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> tuple[int, str] | None:
        """The head as noted last, or None where nothing was noted."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise OutsideProblem(
                f"The audit's anchor {self._path} cannot be read: {error}. Look who changed it."
            ) from error
        return read_head(text, f"The audit's anchor {self._path}")

    def write(self, seq: int, digest: str, *, lowers: bool = False) -> None:
        """Note the head, unless another process has noted a later one."""
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, _MODE)
        noted = os.pread(self._descriptor, _SEQ_DIGITS, 0)
        if not lowers and noted.isdigit() and int(noted) > seq:
            return
        os.pwrite(self._descriptor, f"{seq:0{_SEQ_DIGITS}d}:{digest}\n".encode(), 0)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_head(text: str, where: str) -> tuple[int, str]:
    """A head as it is written in the file, in notices and on the command line."""
    seq, colon, digest = text.strip().rstrip("…").partition(":")
    digest = digest.removeprefix("sha256:")
    if not (colon and seq.isdecimal() and _SHORTEST <= len(digest) <= 64):
        raise OutsideProblem(
            f"{where} is not a head of the audit: it should be a number, a colon and at least "
            f"{_SHORTEST} hexadecimal digits, as notices show it."
        )
    return int(seq), digest
