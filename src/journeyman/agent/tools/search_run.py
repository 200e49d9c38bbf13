"""The program that looks through files for the search_files tool. It is a process of its own so
that a regular expression that takes for ever can be ended, and is started by its path, without the
rest of the package.

    python -I -S search_run.py '{"root": …, "start": …, "pattern": …, "target": …, …}'
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
"""Folders whose files nobody wrote by hand."""
_LARGEST_FILE = 5 * 2**20
_LONGEST_LINE = 400
_LOOKED_AT = 8192


def files_below(root: str, start: str) -> Iterator[str]:
    """The plain files below a folder, or the file itself, relative to the root and in order."""
    if os.path.isfile(start):  # noqa: PTH113 - pathlib takes long to load
        yield os.path.relpath(start, root)
        return
    for folder, inner, names in os.walk(start):
        inner[:] = sorted(name for name in inner if name not in SKIPPED)
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118
            # What a link leads to is found at its own place, or is outside.
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield os.path.relpath(path, root)


def is_meant(path: str, glob: str) -> bool:
    """Whether a glob means a path: by the name alone, unless there is a folder in the glob."""
    name = path if "/" in glob else path.rpartition("/")[2]
    return fnmatch.fnmatchcase(name, glob.removeprefix("./").removeprefix("**/"))


def matching_lines(root: str, path: str, pattern: "re.Pattern[str]") -> Iterator[tuple[int, str]]:
    """The lines of a text file that match, with their numbers."""
    try:
        with open(os.path.join(root, path), "rb") as file:  # noqa: PTH118, PTH123
            if os.fstat(file.fileno()).st_size > _LARGEST_FILE:
                return
            data = file.read()
    except OSError:
        return
    if b"\0" in data[:_LOOKED_AT]:
        return
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        if pattern.search(line):
            yield number, line.removesuffix("\r")[:_LONGEST_LINE]


def find_all(asked: dict[str, str], pattern: "re.Pattern[str] | None") -> Iterator[object]:
    """The files whose names are meant, or with a pattern the lines in them that match it."""
    root, glob = asked["root"], asked["file_glob"] if pattern else asked["pattern"]
    for path in sorted(one for one in files_below(root, asked["start"]) if is_meant(one, glob)):
        shown = os.fsencode(path).decode(errors="replace")
        if pattern is None:
            yield shown
            continue
        for number, line in matching_lines(root, path, pattern):
            yield {"path": shown, "line": number, "content": line}


def search(asked: dict[str, str], limit: int) -> dict[str, object]:
    """What was found, as the tool answers it."""
    is_for_names = asked["target"] == "files"
    try:
        pattern = None if is_for_names else re.compile(asked["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        return {"total_count": 0, "invalid": str(error)}
    total, kept = 0, list[object]()
    for total, found in enumerate(find_all(asked, pattern), 1):
        if total <= limit:
            kept.append(found)
    answer: dict[str, object] = {"total_count": total}
    if kept:
        answer["files" if is_for_names else "matches"] = kept
    return {**answer, "truncated": True} if total > len(kept) else answer


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(search(question, int(question["limit"]))))
