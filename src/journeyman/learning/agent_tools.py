"""The tools of agents, from `tools.toml`: parses calls into fields that mean the same for every
agent.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

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

Fields = dict[str, str]

_PATCH_HEREDOC = re.compile(
    r"\A\s*(?:applypatch|apply_patch)\s+<<-?\s*(['\"]?)(\w+)\1\n(?P<patch>.*)\n\2\s*\Z", re.S
)
_PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.M)
_SHELL_WRAPPER = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -l?i?c '([^']*)'")
_SHELL_OPTION = re.compile(r"-l?i?c")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da)?sh")


class AgentTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool of an agent: a row of `tools.toml`, which documents the fields."""

    operation: Operation
    name: str
    arguments: dict[str, str]
    mode: dict[str, str] = {}


class _ToolsTable(Struct, frozen=True, forbid_unknown_fields=True):
    tool: tuple[AgentTool, ...]


_BY_NAME: defaultdict[str, list[AgentTool]] = defaultdict(list)
for _tool in msgspec.toml.decode(
    files(__package__).joinpath("tools.toml").read_bytes(), type=_ToolsTable
).tool:
    _BY_NAME[_tool.name].append(_tool)

KNOWN_TOOLS = frozenset(_BY_NAME)
SHELLS = frozenset(name for name, rows in _BY_NAME.items() if rows[0].operation == "run")
"""The tools that run commands, as agents call them."""


class OperationCall(NamedTuple):
    """A call as fields."""

    operation: Operation
    fields: Fields


@lru_cache(maxsize=1_024)
def find_call(tool: str, arguments: str) -> OperationCall | None:
    """Return the call as fields, or None if the table does not have its tool. Fields that the
    arguments lack are absent. The result is cached and shared, because mining parses each call many
    times: do not change it.
    """
    return find_operation(tool, parse_arguments(arguments))


def find_operation(tool: str, values: Mapping[str, Any]) -> OperationCall | None:
    """Return a call as `find_call` does, from its arguments and without keeping it."""
    rows = _BY_NAME.get(tool)
    if not rows:
        return None

    def mismatch(row: AgentTool) -> tuple[bool, int]:
        is_mode = all(values.get(name, value) == value for name, value in row.mode.items())
        return not is_mode, len(row.arguments.keys() - values.keys())

    row = min(rows, key=mismatch)
    fields: Fields = {}
    for argument, field in row.arguments.items():
        value = values.get(argument)
        read = _command_line(value) if field == "command" else value
        if isinstance(read, str):
            fields.setdefault(field, read)
    if row.operation == "run" and (patch := _patch_in(fields.get("command", ""))):
        return OperationCall("patch", {**fields, "patch": patch})
    return OperationCall(row.operation, fields)


def operation_of(tool: str, arguments: str) -> Operation | None:
    """Return what a call does; None for a tool that the table does not have."""
    call = find_call(tool, arguments)
    return call.operation if call else None


def shell_command(tool: str, arguments: str) -> str:
    """Return the command line of a shell call; empty for any other call."""
    call = find_call(tool, arguments)
    return call.fields.get("command", "") if call else ""


def file_path(tool: str, arguments: str) -> str:
    """Return the path that a call names, of a patch the first file; empty if it names none."""
    call = find_call(tool, arguments)
    if call is None:
        return ""
    patched = _PATCHED_FILE.search(call.fields.get("patch", ""))
    return patched[1] if patched else call.fields.get("path", "")


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


def _patch_in(command: str) -> str:
    """Return the patch of a command that only applies one; empty for any other command."""
    if "*** Begin Patch" not in command:
        return ""
    if match := _PATCH_HEREDOC.match(command):
        return match["patch"].strip()
    with suppress(ValueError):  # unclosed quotes, or more words
        name, patch = shlex.split(command)
        return patch.strip() if name in ("apply_patch", "applypatch") else ""
    return ""
