"""The program that searches files for the search_files tool. It is a separate process so that a
regular expression that never finishes can be ended, and runs without the rest of the package; its
argument is the request, in JSON.
"""

import fnmatch
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SKIPPED = (
    *(".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache"),
)
"""Folders with generated files."""
_LARGEST_FILE = 5 * 2**20
_LONGEST_LINE = 400
_BINARY_PROBE_BYTES = 8192


def find_files(root: Path, start: Path, glob: str) -> Iterator[str]:
    """Yield the plain files below a folder, or the file itself, relative to the root. The glob is
    for the name, unless it contains a folder.
    """
    folders: Any = os.walk(start) if start.is_dir() else [(start.parent, [], [start.name])]
    for folder, inner, names in folders:
        inner[:] = [name for name in inner if name not in _SKIPPED]
        for name in names:
            path = Path(folder, name)
            below = str(path.relative_to(root))
            is_match = fnmatch.fnmatchcase(below if "/" in glob else name, glob)
            # The target of a link is found at its own path, or is outside.
            if is_match and path.is_file() and not path.is_symlink():
                yield below


def matching_lines(path: Path, pattern: "re.Pattern[str]") -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that match, with their numbers."""
    try:
        data = path.read_bytes() if path.stat().st_size <= _LARGEST_FILE else b""
    except OSError:
        return
    if b"\0" not in data[:_BINARY_PROBE_BYTES]:
        for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
            if pattern.search(line):
                yield number, line.removesuffix("\r")[:_LONGEST_LINE]


def search(
    *, root: str, start: str, pattern: str, target: str, file_glob: str, limit: int
) -> dict[str, Any]:
    """Return the matches, in the form of the tool's result."""
    found: list[Any] = []
    name, glob = ("files", pattern) if target == "files" else ("matches", file_glob)
    try:
        expression = re.compile("" if target == "files" else pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return {"total_count": 0, "invalid": str(error)}
    for path in sorted(find_files(Path(root), Path(start), glob.removeprefix("**/"))):
        shown = os.fsencode(path).decode(errors="replace")
        if target == "files":
            found.append(shown)
        else:
            lines = matching_lines(Path(root, path), expression)
            found += [{"path": shown, "line": number, "content": line} for number, line in lines]
    answer = {"total_count": len(found), **({name: found[:limit]} if found else {})}
    return {**answer, "truncated": True} if len(found) > limit else answer


if __name__ == "__main__":
    sys.stdout.write(json.dumps(search(**json.loads(sys.argv[1]))))
