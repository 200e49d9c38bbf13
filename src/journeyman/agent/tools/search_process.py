"""The program that searches files for the search_files tool. It is a separate process so that a
regular expression that never finishes can be ended, and is started by its path, without the rest of
the package; its argument is the request, in JSON.
"""

import fnmatch
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

SKIPPED = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache"),
    )
)
"""Folders with generated files."""
_LARGEST_FILE = 5 * 2**20
_LONGEST_LINE = 400
_BINARY_PROBE_BYTES = 8192


def find_files(root: str, start: str, glob: str) -> Iterator[str]:
    """Yield the plain files below a folder, or the file itself, relative to the root. The glob is
    for the name, unless it contains a folder.
    """
    folders: Any = os.walk(start)
    if os.path.isfile(start):  # noqa: PTH113 - pathlib is slow to load
        folders = [(os.path.dirname(start), [], [os.path.basename(start)])]  # noqa: PTH119, PTH120
    for folder, inner, names in folders:
        inner[:] = [name for name in inner if name not in SKIPPED]
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118
            below = os.path.relpath(path, root)
            is_match = fnmatch.fnmatchcase(below if "/" in glob else name, glob)
            # The target of a link is found at its own path, or is outside.
            if is_match and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield below


def matching_lines(path: str, pattern: "re.Pattern[str]") -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that match, with their numbers."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read(_LARGEST_FILE + 1)
    except OSError:
        return
    if len(data) > _LARGEST_FILE or b"\0" in data[:_BINARY_PROBE_BYTES]:
        return
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        if pattern.search(line):
            yield number, line.removesuffix("\r")[:_LONGEST_LINE]


def search(
    *, root: str, start: str, pattern: str, target: str, file_glob: str, limit: int
) -> dict[str, Any]:
    """Return the matches, in the form of the tool's result."""
    is_for_names, found = target == "files", list[Any]()
    glob = (pattern if is_for_names else file_glob).removeprefix("./").removeprefix("**/")
    try:
        expression = re.compile("" if is_for_names else pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return {"total_count": 0, "invalid": str(error)}
    for path in sorted(find_files(root, start, glob)):
        shown = os.fsencode(path).decode(errors="replace")
        if is_for_names:
            found.append(shown)
            continue
        for number, line in matching_lines(os.path.join(root, path), expression):  # noqa: PTH118
            found.append({"path": shown, "line": number, "content": line})
    answer: dict[str, Any] = {"total_count": len(found)}
    if found:
        answer["files" if is_for_names else "matches"] = found[:limit]
    return {**answer, "truncated": True} if len(found) > limit else answer


if __name__ == "__main__":
    sys.stdout.write(json.dumps(search(**json.loads(sys.argv[1]))))
