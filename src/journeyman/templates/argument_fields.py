"""The tools of each agent, from `tools.toml`. Parses calls into fields that mean the same for every
agent, and writes fields as another agent's arguments: seconds or milliseconds, a command as a line
or as a list of words.
"""

import json
import math
import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct

Dialect = Literal["claude_code", "codex", "hermes", "opencode", "journeyman"]
"""Agents, named like the sources of their sessions."""

Operation = Literal[
    "run",
    "run_code",
    "read",
    "edit",
    "patch",
    "write",
    "search_text",
    "find_files",
    "list_files",
    "fetch",
    "search_web",
]
"""`run` is a shell command and `run_code` a Python script. `edit` replaces one text in a file;
`patch` applies a text that begins with `*** Begin Patch`."""

Fields = dict[str, Any]

_PATCH_HEREDOC = re.compile(
    r"\A\s*(?:applypatch|apply_patch)\s+<<-?\s*(['\"]?)(\w+)\1\n(?P<patch>.*)\n\2\s*\Z", re.S
)
_SHELL_WRAPPER = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -l?i?c '([^']*)'")
_SHELL_OPTION = re.compile(r"-l?i?c")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da)?sh")
_FOLDER = re.compile(r"((?:[^*?\[{/]*/)*[^*?\[{/]*)/(.+)", re.S)
"""A glob that begins with the name of a folder."""
_EXTENSIONS = {"rust": "rs", "python": "py", "markdown": "md", "ruby": "rb", "kotlin": "kt"}
"""File types that are not named like their extension."""

_FLAGS = ("background", "domains", "everywhere", "ignore_case", "interactive", "multiline", "pages")
_NO = ("false", "False")
_COUNTS = ("context", "first_line", "line_count", "match_count", "result_count")

UNTRANSLATABLE_FIELDS: tuple[tuple[str, object, str], ...] = (
    ("background", True, "It runs in the background, which every agent does in its own way."),
    ("interactive", True, "It needs a terminal to type in."),
    ("part_of_script", True, "It applies a patch in the middle of a script."),
    ("own_functions", True, "Its code calls functions of the agent that ran it."),
    ("multiline", True, "It searches across lines."),
    ("listing", "counts", "It counts matches."),
    ("pages", True, "It reads pages of a document."),
    ("domains", True, "It searches some sites only."),
)
"""Fields with values that change what a call does and have no counterpart in other agents."""


class AgentTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool of one agent: a row of `tools.toml`, which documents the fields."""

    dialect: Dialect
    operation: Operation
    name: str
    required: dict[str, str]
    optional: dict[str, str] = {}
    fixed: dict[str, str] = {}
    defaults: dict[str, str] = {}


class _DialectSign(Struct, frozen=True, forbid_unknown_fields=True):
    dialect: Dialect
    tools: frozenset[str]


class ResultFormat(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that the results of some agents' operations are wrapped in."""

    id: str
    sources: tuple[str, ...]
    operations: tuple[Operation, ...] = get_args(Operation)
    added: str
    example: str
    shown: str


class _ToolsTable(Struct, frozen=True, forbid_unknown_fields=True):
    signs: tuple[_DialectSign, ...]
    tool: tuple[AgentTool, ...]
    result: tuple[ResultFormat, ...]


_TABLE = msgspec.toml.decode(
    files(__package__).joinpath("tools.toml").read_bytes(), type=_ToolsTable
)
TOOLS, DIALECT_SIGNS, RESULT_FORMATS = _TABLE.tool, _TABLE.signs, _TABLE.result

SHELLS = frozenset(row.name for row in TOOLS if row.operation == "run")
"""The tools that run commands, as agents call them."""


class OperationCall(NamedTuple):
    """A call as fields. `blocked` says why another agent cannot make it, if so."""

    operation: Operation
    fields: Fields
    blocked: str = ""


class ArgumentField(NamedTuple):
    """A field of the table: its name in a call's fields, and how its value is read and written.
    Reading returns None for a value that is not understood or carries no information, writing for a
    value that the argument cannot hold.
    """

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    try:
        number = 0.0 if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number < math.inf else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _command_line(value: object) -> str | None:
    """Return the command line without the shell that wraps it."""
    if isinstance(value, str):
        inner = _SHELL_WRAPPER.fullmatch(value.strip())
        return inner[1] if inner else value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    words: list[str] = value
    if len(words) == 3 and _SHELL.fullmatch(words[0]) and _SHELL_OPTION.fullmatch(words[1]):
        return words[2]
    return shlex.join(words) or None


def _listing(names: Mapping[str, str], default: str) -> ArgumentField:
    names_by_meaning = {meaning: name for name, meaning in names.items() if name != default}
    return ArgumentField("listing", lambda value: names.get(str(value)), names_by_meaning.get)


FIELDS: dict[str, ArgumentField] = {
    **{
        name: ArgumentField(name, lambda value: (bool(value) and value not in _NO) or None)
        for name in _FLAGS
    },
    **{name: ArgumentField(name, _whole) for name in _COUNTS},
    "command": ArgumentField("command", _command_line),
    "argv": ArgumentField("command", _command_line, lambda line: ["bash", "-lc", line]),
    "timeout_s": ArgumentField("timeout_s", _number, math.ceil),
    "timeout_ms": ArgumentField(
        "timeout_s", lambda value: (_number(value) or 0) / 1000 or None, lambda s: round(s * 1000)
    ),
    "urls": ArgumentField(
        "url",
        lambda value: value[0] if isinstance(value, list) and len(value) == 1 else _text(value),
        lambda url: [url],
    ),
    "file_type": ArgumentField(
        "file_glob",
        lambda value: f"*.{_EXTENSIONS.get(value, value)}" if isinstance(value, str) else None,
        lambda _: None,
    ),
    # A plain name matches at any depth; a glob with folders is not a name.
    "name_glob": ArgumentField(
        "glob",
        lambda value: (
            f"**/{value}" if isinstance(value, str) and "/" not in value else _text(value)
        ),
        lambda glob: None if "/" in glob.removeprefix("**/") else glob.removeprefix("**/"),
    ),
    "claude_listing": _listing(
        {"content": "lines", "files_with_matches": "files", "count": "counts"},
        default="files_with_matches",
    ),
    "hermes_listing": _listing(
        {"content": "lines", "files_only": "files", "count": "counts"}, default="content"
    ),
}
"""How the fields of the table are read and written. All other fields are text."""


_BY_NAME: defaultdict[str, list[AgentTool]] = defaultdict(list)
for _tool in TOOLS:
    _BY_NAME[_tool.name].append(_tool)


@lru_cache(maxsize=1_024)
def find_call(tool: str, arguments: str, source: str) -> OperationCall | None:
    """Return the call as fields, or None if the table does not have its tool. Fields that the
    arguments lack are absent. Calls of a source that is not in the table are parsed by the names of
    tools alone. The result is cached and shared, because mining parses each call many times: do not
    change it.
    """
    return find_operation(tool, parse_arguments(arguments), source)


def find_operation(tool: str, values: Mapping[str, Any], source: str) -> OperationCall | None:
    """Return a call as `find_call` does, from its arguments and without keeping it."""
    rows = _BY_NAME.get(tool)
    if not rows:
        return None

    def mismatch(row: AgentTool) -> tuple[bool, bool, int]:
        is_mode = all(values.get(name, value) == value for name, value in row.fixed.items())
        return not is_mode, row.dialect != source, len(row.required.keys() - values.keys())

    row = min(rows, key=mismatch)
    return _completed(row.operation, _fields(row, values))


def write_arguments(fields: Fields, row: AgentTool) -> dict[str, Any] | None:
    """Return the arguments of another tool; None if a required one has no value."""
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
            return None
    return arguments


def find_arguments(arguments: str) -> dict[str, Any] | None:
    """Return the arguments; None if the text is not a JSON object."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Return the arguments; empty if the text is not a JSON object."""
    return find_arguments(arguments) or {}


def _field(name: str) -> ArgumentField:
    return FIELDS.get(name) or ArgumentField(name, _text)


def _fields(row: AgentTool, arguments: Mapping[str, Any]) -> Fields:
    fields: Fields = {}
    for argument, field in (*row.required.items(), *row.optional.items()):
        name, read, _ = _field(field)
        value = read(arguments.get(argument, row.defaults.get(argument)))
        if value is not None:
            fields.setdefault(name, value)
    return fields


def _completed(operation: Operation, fields: Fields) -> OperationCall:
    """Return the call with what its fields imply: a patch in a command, a folder in a glob."""
    if operation == "run" and "*** Begin Patch" in fields.get("command", ""):
        if patch := _patch_in(fields["command"]):
            operation, fields = "patch", {**fields, "patch": patch}
        else:
            fields["part_of_script"] = True
    elif operation == "run_code" and "hermes_tools" in fields.get("code", ""):
        fields["own_functions"] = True
    elif operation == "search_text":
        fields.setdefault("listing", "lines")
        if fields.pop("ignore_case", False) and "pattern" in fields:
            fields["pattern"] = f"(?i){fields['pattern']}"
    elif operation == "find_files" and (match := _FOLDER.match(fields.get("glob", ""))):
        fields |= {"path": posixpath.join(fields.get("path", ""), match[1]), "glob": match[2]}
    blocked = next(
        (reason for field, value, reason in UNTRANSLATABLE_FIELDS if fields.get(field) == value), ""
    )
    return OperationCall(operation, fields, blocked)


def _patch_in(command: str) -> str:
    """Return the patch of a command that only applies one; empty for any other command."""
    if match := _PATCH_HEREDOC.match(command):
        return match["patch"].strip()
    with suppress(ValueError):  # unclosed quotes, or more words
        name, patch = shlex.split(command)
        return patch.strip() if name in ("apply_patch", "applypatch") else ""
    return ""
