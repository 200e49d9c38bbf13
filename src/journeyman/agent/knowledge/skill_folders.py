"""Finding skills on the disk: which folders are skills and which files they have. What cannot be
read is passed over, because a person may have left anything there.
"""

from collections.abc import Iterator
from pathlib import Path

ROOT = "skills"
MAIN = "SKILL.md"

_DEEPEST = 3
_HEAD_BYTES = 200_000


def skill_folders(root: Path) -> Iterator[Path]:
    """The folders that have a SKILL.md, each once even where links lead to it twice. A skill has
    no skills inside; hidden folders are not looked at.
    """
    seen = set()
    rest = [(root, 1)]
    while rest:
        folder, depth = rest.pop()
        for child in _children(folder):
            if _is_file(child / MAIN):
                if child.resolve() not in seen:
                    seen.add(child.resolve())
                    yield child
            elif depth < _DEEPEST:
                rest.append((child, depth + 1))


def files_below(folder: Path) -> list[Path]:
    """All that is below a folder and is no folder, without following links."""
    return [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]


def is_plain(path: Path, most_bytes: int) -> bool:
    """Whether this is a file of its own, no link, and not too large."""
    try:
        return not path.is_symlink() and path.is_file() and path.stat().st_size <= most_bytes
    except OSError:
        return False


def read_head(path: Path) -> str:
    """The beginning of a file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _children(folder: Path) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
        return [path for path in found if not path.name.startswith(".") and path.is_dir()]
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
