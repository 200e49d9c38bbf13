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


def search(asked: dict[str, str], limit: int) -> dict[str, object]:
    """What was found, as the tool answers it."""
    root, paths = asked["root"], files_below(asked["root"], asked["start"])
    if asked["target"] == "files":
        files = sorted(path for path in paths if is_meant(path, asked["pattern"]))
        return _counted(len(files), "files", [_shown(path) for path in files[:limit]])
    try:
        pattern = re.compile(asked["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        return {"total_count": 0, "invalid": str(error)}
    matches: list[object] = []
    total = 0
    for path in sorted(path for path in paths if is_meant(path, asked["file_glob"])):
        for number, line in matching_lines(root, path, pattern):
            total += 1
            if total <= limit:
                matches.append({"path": _shown(path), "line": number, "content": line})
    return _counted(total, "matches", matches)


def _shown(path: str) -> str:
    return os.fsencode(path).decode(errors="replace")


def _counted(total: int, name: str, found: list[object] | list[str]) -> dict[str, object]:
    answer: dict[str, object] = {"total_count": total}
    if found:
        answer[name] = found
    if total > len(found):
        answer["truncated"] = True
    return answer


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(search(question, int(question["limit"]))))
