"""The parts of calls that facts are made of: commands, paths inside the project, names, forms of
arguments. What does not look like one is not shown, so that no sentence can be passed off as a
name.
"""

import posixpath
import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec import Struct

from journeyman.learning.agent_tools import (
    Operation,
    file_path,
    find_call,
    operation_of,
    parse_arguments,
    shell_command,
)
from journeyman.learning.commands import Command, commands_of, subject_of
from journeyman.records import Call, Verdict
from journeyman.records.project import repository_folder
from journeyman.redaction.instructions import find_suspicion
from journeyman.text.shell import pipelines

CHANGES = ("edit", "write", "patch")

_LONGEST_PATH = 200
_LONGEST_SIGNATURE = 200
_FEWEST_WORDS = 3
"""The minimum number of words in an instruction."""

_MOST_WORDS_IN_A_NAME, _MOST_WORDS_IN_A_PATH, _MOST_SPACES = 7, 12, 2
_MOST_WORDS_IN_AN_ARGUMENT = 4
_WORD, _IN_A_NAME = re.compile(r"[^\W\d_]{2,}"), re.compile(r"[-_./+:]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATH = re.compile(r"(?:[\w.@+-]+/)*[\w.@+-]+")
_PATH_SHOWN = re.compile(r"[\w.@+()\[\]$#=,~ /-]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MOST_UNSPACED = 8
"""Scripts without spaces make a sentence look like one word: more characters than this are one."""

_ARGUMENT = re.compile(r"[A-Za-z_$][\w$.-]{0,39}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z][\w.:/-]{0,63}", re.ASCII)
_HAS_ENDING = re.compile(r"(?!.*\.\.).*\.[A-Za-z]\w{0,5}|(?:Make|Docker|Proc|Just|Gem|Rake)file")
_SHOWING = frozenset(
    ["cat", "bat", "sed", "head", "tail", "less", "more", "nl", "awk", "vi", "vim", "nano", "tac"]
)
_NO_PATH_AFTER = frozenset(
    ["-e", "-m", "-name", "-iname", "-path", "-g", "--glob", "--include", "--exclude"]
)
CHANGES_FOLDER = re.compile(r"\s*cd\s+(['\"]?)([^\s;&|'\"$`]+)\1\s*(?:&&|;|\n|$)")
"""The folder that a command line changes to first, as its second group."""

_CHANGE_OF_FOLDER = re.compile(r"\b(?:cd|pushd|popd)\b")
_KEEPS_FOLDER = "Bash"
"""The tool of Claude Code, whose shell stays in the folder that a command changed to."""

_JOINED = re.compile(r"\|(?!\|)|;|\|\|\s*(?:true|echo|:)")
_FAILED = re.compile(
    r"^(?:FAIL\b|FAILED\b|--- FAIL|.{0,80}\bERROR task failed|Traceback \(most recent"
    r"|error(?:\[\w+\])?: |Error: |.{0,40}command not found|make: \*\*\*|npm ERR!)",
    re.MULTILINE,
)

_TYPE_NAMES = {str: "text", int: "number", float: "number", bool: "true/false", list: "list"}


class ServingCall(Struct, frozen=True, kw_only=True, dict=True):
    """A call that served a request. A safe call does nothing that a person would have to confirm.
    `folder` is where it ran, relative to the top folder; None if that is not known.
    """

    call: Call
    verdict: Verdict
    folder: str | None = ""
    is_safe: bool = True

    @cached_property
    def is_ok(self) -> bool:
        """Whether it worked, and no part failed that does not decide the exit code: before a pipe,
        `;` or `|| true`.
        """
        hides_failure = _JOINED.search(self.line) and _FAILED.search(self.call.result or "")
        return self.verdict.status == "ok" and not hides_failure

    @property
    def is_error(self) -> bool:
        """Whether it failed."""
        return self.verdict.is_error

    @property
    def operation(self) -> Operation | None:
        """What it does; None for a tool that is not known."""
        return operation_of(self.call.tool, self.call.arguments)

    @property
    def line(self) -> str:
        """Its command line; empty unless it ran one."""
        return shell_command(self.call.tool, self.call.arguments)

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands in its command line."""
        return commands_of(self.line)


def is_script_of(command: Command, scripts: AbstractSet[str]) -> bool:
    """Whether a command runs one of these scripts, given by their names without folders."""
    return subject_of(command.name).rpartition("/")[2] in scripts


class Location:
    """Where the commands of a session run: its top folder, and the folder inside of it. A session
    may begin below the top folder of its `project`, which the path of that folder contains.
    """

    def __init__(self, cwd: str, project: str = "") -> None:
        self.root = _root(cwd, project)
        self._here: str | None = _relative(cwd, self.root) or ""

    def of(self, call: Call, *, worked: bool = True) -> str | None:
        """Return the folder that a call runs in, relative to the top folder; None if it is outside
        or not known. A shell that stays in a folder is followed if the call has `worked`.
        """
        found = find_call(call.tool, call.arguments)
        if found is None or found.operation != "run":
            return self._here
        given, line = found.fields.get("folder", ""), found.fields.get("command", "")
        folder = self._joined("", given) if given else self._here
        changes = pipelines(line) if _CHANGE_OF_FOLDER.search(line) else []
        changes = [words for words in changes if words[0] in ("cd", "pushd", "popd")]
        if not changes:
            return folder
        match = CHANGES_FOLDER.match(line) if len(changes) == 1 else None
        folder = self._joined(folder, match[2]) if match else None
        if call.tool == _KEEPS_FOLDER and worked and "(" not in line:
            self._here = folder
        return folder

    def _joined(self, inside: str | None, folder: str) -> str | None:
        if inside is None and not folder.startswith("/"):
            return None
        return _relative(posixpath.join(self.root, inside or "", folder), self.root)


def _root(cwd: str, project: str) -> str:
    name = project.rstrip("/").rpartition("/")[2]
    if project.startswith("/") and PurePosixPath(cwd).is_relative_to(project):
        return project
    parts = cwd.split("/")
    first = 3 if parts[1:2] in (["home"], ["Users"]) else 1  # behind the name of a person
    if name and name in parts[first:] and repository_folder(cwd) == cwd.rstrip("/"):
        return "/".join(parts[: parts.index(name, first) + 1])
    return cwd


def _relative(path: str, root: str) -> str | None:
    """Return a folder relative to the top folder; None if it is outside."""
    inside = posixpath.normpath(path or ".")
    if root and inside.startswith("/"):
        inside = posixpath.relpath(inside, root)
    return None if inside.startswith(("..", "~")) else "" if inside == "." else inside


def path_inside(path: str, root: str, folder: str | None = "") -> str:
    """Return a path relative to the top folder; empty for a path outside of it. Relative paths are
    in the `folder` of the call.
    """
    if not path or "\n" in path or len(path) > _LONGEST_PATH:
        return ""
    if not path.startswith(("/", "~")) and ":" not in path[:3]:
        return "" if folder is None else _relative(posixpath.join(folder, path), "") or ""
    for top in dict.fromkeys((root, repository_folder(root))):
        if top and PurePosixPath(path).is_relative_to(top):
            return _relative(path, top) or ""
    return ""


def used_files(call: Call, root: str, folder: str | None = "") -> list[str]:
    """Return the files that a call reads or changes, by their paths inside the project."""
    operation = operation_of(call.tool, call.arguments)
    words: tuple[str, ...] = ()
    if operation in ("read", *CHANGES):
        words = (file_path(call.tool, call.arguments),)
    elif operation == "run":
        words = _shown_files(shell_command(call.tool, call.arguments))
    paths = (path_inside(word, root, folder) for word in words)
    return [path for path in paths if _HAS_ENDING.fullmatch(path.rpartition("/")[2])]


@lru_cache(maxsize=4_096)
def _shown_files(line: str) -> tuple[str, ...]:
    """Return the files that a command line prints or edits."""
    found: dict[str, None] = {}
    for words in pipelines(line):
        if words[0].rpartition("/")[2] in _SHOWING:
            plain = (word.strip("'\"") for word in words[1:])
            found |= dict.fromkeys(word for word in plain if _PATH.fullmatch(word.lstrip("/")))
    return tuple(found)


@lru_cache(maxsize=4_096)
def operands(line: str) -> tuple[str, ...]:
    """Return the words of a command line that are paths, without quoted text that is more."""
    found: dict[str, None] = {}
    for words in pipelines(line):
        for before, word in pairwise(words):
            plain = word.strip("'\"")
            is_path = "/" in plain or _HAS_ENDING.fullmatch(plain)
            if (
                is_path
                and _PATH.fullmatch(plain.removeprefix("/"))
                and before not in _NO_PATH_AFTER
            ):
                found[plain] = None
    return tuple(found)


def signature(call: Call) -> str:
    """Return the names and kinds of a call's arguments; empty if they are no names."""
    values = parse_arguments(call.arguments)
    names = [
        f"{name}: {_TYPE_NAMES.get(type(value), 'object')}"
        for name, value in sorted(values.items())
    ]
    shown = ", ".join(names)
    is_plain = len(shown) <= _LONGEST_SIGNATURE and has_plain_names(call.tool, values)
    return shown if is_plain else ""


def has_plain_names(tool: str, arguments: Collection[str]) -> bool:
    """Whether the names of a tool and its arguments are names, and no sentences."""
    are_short = all(len(words_of(name)) <= _MOST_WORDS_IN_AN_ARGUMENT for name in arguments)
    return are_short and all(map(_ARGUMENT.fullmatch, arguments)) and bool(_TOOL.fullmatch(tool))


def words_of(name: str) -> list[str]:
    """Return the words of a name: `no_unusedVars` has three."""
    return _WORD.findall(_HUMP.sub(" ", name))


@lru_cache(maxsize=4_096)
def is_sound_path(path: str) -> bool:
    """Whether a path may be shown: it has the characters of paths, and is no sentence."""
    return (
        _PATH_SHOWN.fullmatch(path) is not None
        and "$(" not in path
        and path.count(" ") <= _MOST_SPACES
        and len(_WORD.findall(path)) <= _MOST_WORDS_IN_A_PATH
        and is_sound(path)
    )


@lru_cache(maxsize=4_096)
def is_sound(text: str) -> bool:
    """Whether a short text contains no instruction, not even hidden in names."""
    if len(_UNSPACED.findall(text)) > _MOST_UNSPACED:
        return False
    if len(words_of(text)) < _FEWEST_WORDS:
        return True
    if any(len(words_of(name)) > _MOST_WORDS_IN_A_NAME for name in re.split(r"[\s/]", text)):
        return False  # a name that is a sentence, in whatever language
    return find_suspicion((text, _IN_A_NAME.sub(" ", text))) is None
