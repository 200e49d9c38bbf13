"""Files of code that a command runs: their text, so that what an earlier call has written is looked
at before a later call runs it. Only regular files inside the workspace are opened.
"""

import stat
from collections.abc import Callable
from pathlib import Path

from journeyman.gate.places import Places
from journeyman.gate.words import OUTPUT, UNKNOWN

LONGEST_FILE = 100_000
MOST_FILES = 30
"""How many files are looked through for one decision."""

ReadFile = Callable[[Path], str | None]

# What the system runs by itself; no interpreter gets to see it.
_COMPILED = (b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")
_MARKS = {ord(one): None for one in (UNKNOWN, OUTPUT)}


def read_inside(workspace: Path) -> ReadFile:
    """Reads regular files of a workspace. A text that is too long comes one character longer than
    is allowed; what is no file of code, or not there, is None.
    """
    top = workspace.resolve()

    def read(path: Path) -> str | None:
        try:
            if not path.resolve().is_relative_to(top) or not stat.S_ISREG(path.stat().st_mode):
                return None
            with path.open("rb") as file:
                start = file.read(4 * LONGEST_FILE + 4)
        except (OSError, ValueError, RuntimeError):
            return None
        if start.startswith(_COMPILED):
            return None
        return start.decode(errors="replace")[: LONGEST_FILE + 1]

    return read


class Files:
    """The files that one decision looks at."""

    def __init__(self, read: ReadFile, places: Places) -> None:
        self._read = read
        self._places = places
        self._texts: dict[Path, str | None] = {}

    def text(self, path: Path | None) -> str | None:
        """The text of a file of the workspace, None if there is none to be seen."""
        if path is None or not self._places.is_inside(path):
            return None
        if path not in self._texts:
            if len(self._texts) >= MOST_FILES:
                return "x" * (LONGEST_FILE + 1)
            text = self._read(path)
            if text is not None and len(text) <= LONGEST_FILE:
                text = text.translate(_MARKS)
            self._texts[path] = text
        return self._texts[path]


def shebang(text: str) -> list[str]:
    """The words of the first line that say which program runs the file; none if it says nothing."""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        return []
    return [word for word in first[2:].split() if word not in ("-S", "--split-string")]
