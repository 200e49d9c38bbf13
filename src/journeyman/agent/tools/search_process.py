"""The program that searches files for the search_files tool. It is a separate process so that a
regular expression that never finishes can be ended, and is started by its path, without the rest of
the package.

    python -I -S search_process.py '{"root": …, "start": …, "pattern": …, "target": …, …}'
"""

import fnmatch
import json
import os
import re
import sys
from collections.abc import Iterator

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


def files_below(root: str, start: str) -> Iterator[str]:
    """Yield the plain files below a folder, or the file itself, relative to the root, in order."""
    if os.path.isfile(start):  # noqa: PTH113 - pathlib is slow to load
        yield os.path.relpath(start, root)
        return
    for folder, inner, names in os.walk(start):
        inner[:] = sorted(name for name in inner if name not in SKIPPED)
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118
            # The target of a link is found at its own path, or is outside.
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield os.path.relpath(path, root)


def matches_glob(path: str, glob: str) -> bool:
    """Whether a glob matches a path: by the name only, unless the glob contains a folder."""
    name = path if "/" in glob else path.rpartition("/")[2]
    return fnmatch.fnmatchcase(name, glob.removeprefix("./").removeprefix("**/"))


def matching_lines(root: str, path: str, pattern: "re.Pattern[str]") -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that match, with their numbers."""
    try:
        with open(os.path.join(root, path), "rb") as file:  # noqa: PTH118, PTH123
            if os.fstat(file.fileno()).st_size > _LARGEST_FILE:
                return
            data = file.read()
    except OSError:
        return
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        return
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        if pattern.search(line):
            yield number, line.removesuffix("\r")[:_LONGEST_LINE]


def find_all(request: dict[str, str], pattern: "re.Pattern[str] | None") -> Iterator[object]:
    """Yield the files with matching names or, with a pattern, the lines in them that match it."""
    root, glob = request["root"], request["file_glob"] if pattern else request["pattern"]
    paths = (path for path in files_below(root, request["start"]) if matches_glob(path, glob))
    for path in sorted(paths):
        shown = os.fsencode(path).decode(errors="replace")
        if pattern is None:
            yield shown
            continue
        for number, line in matching_lines(root, path, pattern):
            yield {"path": shown, "line": number, "content": line}


def search(request: dict[str, str], limit: int) -> dict[str, object]:
    """Return the matches, in the form of the tool's result."""
    is_for_names = request["target"] == "files"
    try:
        pattern = None if is_for_names else re.compile(request["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        return {"total_count": 0, "invalid": str(error)}
    total, shown = 0, list[object]()
    for total, match in enumerate(find_all(request, pattern), 1):
        if total <= limit:
            shown.append(match)
    answer: dict[str, object] = {"total_count": total}
    if shown:
        answer["files" if is_for_names else "matches"] = shown
    return {**answer, "truncated": True} if total > len(shown) else answer


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(search(arguments, int(arguments["limit"]))))
