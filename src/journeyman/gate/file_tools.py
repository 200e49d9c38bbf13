"""The tools on files: where they may read and write. Outside the workspace they never do; files
that steer programs and files that hold secrets are asked about.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from journeyman.gate import characters
from journeyman.gate.decision import ALLOW, Answer, Decision
from journeyman.gate.places import Places

_PATCHED = re.compile(
    r"^\*\*\* (?:Add File|Update File|Delete File|Move to|Move File):[ \t]*(.+?)[ \t]*$"
    r"|^(?:\+\+\+|---) (?:[ab]/)?([^\t\n]+)",
    re.MULTILINE,
)
_NO_FILE = "/dev/null"


class PathRule(NamedTuple):
    """A row: where it applies, what it says of a path, an example and the reason."""

    id: str
    answer: Answer
    tools: frozenset[str]
    when: Callable[[Path, Places], bool]
    example: str
    reason: str

    @property
    def decision(self) -> Decision:
        return Decision(answer=self.answer, rule=self.id, reason=self.reason)


_WRITES = frozenset({"write_file", "patch"})
_READS = frozenset({"read_file", "search_files"})

PATH_RULES: tuple[PathRule, ...] = (
    PathRule(
        "file.write_outside",
        "refuse",
        _WRITES,
        lambda path, places: not places.is_inside(path),
        "../elsewhere.txt",
        "Files are only written inside the workspace.",
    ),
    PathRule(
        "file.read_outside",
        "refuse",
        _READS,
        lambda path, places: not places.is_inside(path),
        "/etc/hosts",
        "Files are only read inside the workspace.",
    ),
    PathRule(
        "file.work_outside",
        "ask",
        frozenset({"workdir"}),
        lambda path, places: not places.is_inside(path),
        "/etc",
        "The command would run outside the workspace.",
    ),
    PathRule(
        "file.steering",
        "ask",
        _WRITES,
        lambda path, places: places.is_steering(path),
        ".git/hooks/pre-commit",
        "This file tells programs what to do later.",
    ),
    PathRule(
        "file.secret",
        "ask",
        _READS,
        lambda path, places: places.is_secret(path),
        ".env",
        "This file holds keys, passwords or other secrets.",
    ),
)
_HIDDEN = Decision(
    answer="ask",
    rule="invisible",
    reason="The path contains characters that cannot be seen or that look like others.",
)
_NOWHERE = Decision(
    answer="ask", rule="tool.unreadable", reason="The call does not say which file it is about."
)


def judge_paths(tool: str, paths: list[str], places: Places) -> Decision:
    """What to do with a call on some paths: the strongest answer on any of them."""
    found = ALLOW
    for text in paths:
        if characters.hides(text):
            return _HIDDEN
        path = places.resolve(text, places.workspace) or places.workspace
        for row in PATH_RULES:
            if tool in row.tools and row.when(path, places):
                if row.answer == "refuse":
                    return row.decision
                found = row.decision if found is ALLOW else found
    return found


def _one_path(tool: str) -> Callable[[Mapping[str, Any], Places], Decision]:
    def judge(arguments: Mapping[str, Any], places: Places) -> Decision:
        path = arguments.get("path")
        if path is None and tool == "search_files":
            return ALLOW
        return judge_paths(tool, [path], places) if isinstance(path, str) else _NOWHERE

    return judge


def patched_paths(text: str) -> list[str]:
    """The files that a patch names."""
    found = (one[1] or one[2] for one in _PATCHED.finditer(text))
    return [each for each in found if each != _NO_FILE]


def _patch(arguments: Mapping[str, Any], places: Places) -> Decision:
    path, text = arguments.get("path"), arguments.get("patch")
    paths = [path] if isinstance(path, str) else []
    if isinstance(text, str):
        paths += patched_paths(text)
    return judge_paths("patch", paths, places) if paths else _NOWHERE


FILE_RULES: dict[str, Callable[[Mapping[str, Any], Places], Decision]] = {
    "read_file": _one_path("read_file"),
    "search_files": _one_path("search_files"),
    "write_file": _one_path("write_file"),
    "patch": _patch,
}
