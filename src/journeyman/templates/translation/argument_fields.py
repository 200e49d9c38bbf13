"""Arguments of a call read into fields that mean the same for every agent, and written as another
agent's arguments: seconds or milliseconds, a command as a line or as a list of words.
"""

import json
import math
import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from journeyman.templates.translation.patch_text import patch_in_command
from journeyman.templates.translation.tool_table import TOOLS, Operation, ToolRow

Fields = dict[str, Any]


class OperationCall(NamedTuple):
    """A call in fields. `blocked` says why it means nothing to another agent, if so."""

    tool: ToolRow
    operation: Operation
    fields: Fields
    blocked: str = ""


class ArgumentField(NamedTuple):
    """A field of the table: its name in a call's fields, and how its value is read and written.
    Reading gives None for a value that is not understood or says nothing, writing for one that
    the argument cannot hold.
    """

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


_IN_A_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -l?i?c '([^']*)'")
_SHELL_OPTION = re.compile(r"-l?i?c")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da)?sh")
_FOLDER = re.compile(r"((?:[^*?\[{/]*/)*[^*?\[{/]*)/(.+)", re.S)
"""A glob that begins with the name of a folder."""
_EXTENSIONS = {"rust": "rs", "python": "py", "markdown": "md", "ruby": "rb", "kotlin": "kt"}
"""Types of files that are named otherwise than their extension."""


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return True if value and value not in ("false", "False") else None


def _whole_if_it_is(number: float) -> float | int:
    """A number as people write it: 120 and not 120.0."""
    return int(number) if float(number).is_integer() else number


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number < math.inf else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _command_line(value: object) -> str | None:
    """The command as a shell is told it, without the shell that runs it."""
    if isinstance(value, str):
        inner = _IN_A_SHELL.fullmatch(value.strip())
        return inner[1] if inner else value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    words: list[str] = value
    if len(words) == 3 and _SHELL.fullmatch(words[0]) and _SHELL_OPTION.fullmatch(words[1]):
        return words[2]
    return shlex.join(words) or None


def _only_one(value: object) -> str | None:
    return value[0] if isinstance(value, list) and len(value) == 1 else _text(value)


def _type_glob(value: object) -> str | None:
    return f"*.{_EXTENSIONS.get(value, value)}" if isinstance(value, str) else None


def _listing(names: Mapping[str, str], default: str) -> ArgumentField:
    written = {meaning: name for name, meaning in names.items() if name != default}
    return ArgumentField("listing", lambda value: names.get(str(value)), written.get)


def _at_any_depth(value: object) -> str | None:
    return f"**/{value}" if isinstance(value, str) and "/" not in value else _text(value)


def _name_only(glob: str) -> str | None:
    name = glob.removeprefix("**/")
    return None if "/" in name else name


_FLAGS = ("background", "domains", "everywhere", "ignore_case", "interactive", "multiline", "pages")
_COUNTS = ("context", "first_line", "line_count", "match_count", "result_count")

FIELDS: dict[str, ArgumentField] = {
    **{name: ArgumentField(name, _flag) for name in _FLAGS},
    **{name: ArgumentField(name, _whole) for name in _COUNTS},
    "command": ArgumentField("command", _command_line),
    "argv": ArgumentField("command", _command_line, lambda line: ["bash", "-lc", line]),
    "timeout_s": ArgumentField("timeout_s", _number, _whole_if_it_is),
    "timeout_whole_s": ArgumentField("timeout_s", _number, math.ceil),
    "timeout_ms": ArgumentField(
        "timeout_s", lambda value: (_number(value) or 0) / 1000 or None, lambda s: round(s * 1000)
    ),
    "lines_to_2000": ArgumentField("line_count", _whole, lambda count: min(count, 2000)),
    "urls": ArgumentField("url", _only_one, lambda url: [url]),
    "file_type": ArgumentField("file_glob", _type_glob, lambda _: None),
    "name_glob": ArgumentField("glob", _at_any_depth, _name_only),
    "claude_listing": _listing(
        {"content": "lines", "files_with_matches": "files", "count": "counts"},
        default="files_with_matches",
    ),
    "hermes_listing": _listing(
        {"content": "lines", "files_only": "files", "count": "counts"}, default="content"
    ),
}
"""How the fields of the table are read and written. What is not here is text."""

BLOCKING: tuple[tuple[str, object, str], ...] = (
    ("background", True, "It runs in the background, which every agent does in its own way."),
    ("interactive", True, "It needs a terminal to type in."),
    ("part_of_script", True, "It applies a patch in the middle of a script."),
    ("own_functions", True, "Its code calls functions of the agent that ran it."),
    ("multiline", True, "It searches across lines."),
    ("listing", "counts", "It counts matches."),
    ("pages", True, "It reads pages of a document."),
    ("domains", True, "It searches some sites only."),
)
"""Fields with values that change what a call does and have no counterpart."""

_BY_NAME: defaultdict[str, list[ToolRow]] = defaultdict(list)
for _tool in TOOLS:
    _BY_NAME[_tool.name].append(_tool)


@lru_cache(maxsize=1_024)
def find_call(tool: str, arguments: str, source: str) -> OperationCall | None:
    """The call in fields; None where the table does not have its tool. Fields that the arguments
    lack are absent. A source that the table does not have is read by the names of tools alone.
    Mining asks for one call many times, so the answer is shared: it is not to be changed.
    """
    rows = _BY_NAME.get(tool)
    if not rows:
        return None
    given = as_object(arguments)
    row = min(
        rows, key=lambda one: (not _is_mode(one, given), one.dialect != source, _lacks(one, given))
    )
    return _completed(OperationCall(row, row.operation, _fields(row, given)))


def written(fields: Fields, row: ToolRow) -> dict[str, Any] | str:
    """The arguments of another tool, or the name of a required one for which there is no value."""
    arguments: dict[str, Any] = dict(row.fixed)
    done = set()
    for argument, field in (*row.required.items(), *row.optional.items()):
        name, _, write = _field(field)
        if name in done:
            continue
        value = write(fields[name]) if name in fields else None
        if value is not None:
            arguments[argument] = value
            done.add(name)
        elif argument in row.required:
            return argument
    return arguments


def as_object(arguments: str) -> dict[str, Any]:
    """The arguments, or none where the text holds no JSON object."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _field(name: str) -> ArgumentField:
    return FIELDS.get(name) or ArgumentField(name, _text)


def _is_mode(row: ToolRow, given: Mapping[str, Any]) -> bool:
    return all(given.get(name, value) == value for name, value in row.fixed.items())


def _lacks(row: ToolRow, given: Mapping[str, Any]) -> int:
    return len(row.required.keys() - given.keys())


def _fields(row: ToolRow, given: Mapping[str, Any]) -> Fields:
    fields: Fields = {}
    for argument, field in (*row.required.items(), *row.optional.items()):
        name, read, _ = _field(field)
        value = read(given.get(argument, row.defaults.get(argument)))
        if value is not None:
            fields.setdefault(name, value)
    return fields


def _completed(call: OperationCall) -> OperationCall:
    """The call with what its fields imply: a patch inside a command, a folder inside a glob."""
    row, operation, fields, _ = call
    if operation == "run" and "*** Begin Patch" in fields.get("command", ""):
        if patch := patch_in_command(fields["command"]):
            operation, fields = "patch", {**fields, "patch": patch}
        else:
            fields["part_of_script"] = True
    elif operation == "run_code" and "hermes_tools" in fields.get("code", ""):
        fields["own_functions"] = True
    elif operation == "search_text":
        fields.setdefault("listing", "lines")
        if fields.pop("ignore_case", False) and "pattern" in fields:
            fields["pattern"] = f"(?i){fields['pattern']}"
    elif operation == "find_files" and (found := _FOLDER.match(fields.get("glob", ""))):
        fields |= {"path": posixpath.join(fields.get("path", ""), found[1]), "glob": found[2]}
    blocked = next((why for field, value, why in BLOCKING if fields.get(field) == value), "")
    return OperationCall(row, operation, fields, blocked)
