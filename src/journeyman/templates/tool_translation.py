"""Calls of one agent as calls of another, so that what one has learned another can start with. The
table of tools and arguments is in `translation.tool_table`.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import Struct

from journeyman.outcomes.wrapping import unwrapped
from journeyman.records import Pattern, Step
from journeyman.templates.schemas.tool_schemas import LiveTools
from journeyman.templates.translation.argument_fields import (
    Fields,
    OperationCall,
    as_object,
    find_call,
    written,
)
from journeyman.templates.translation.patch_text import find_only_change, find_patch, patched_path
from journeyman.templates.translation.result_formats import result_for
from journeyman.templates.translation.tool_table import TOOLS, Dialect, Operation, ToolRow

__all__ = [
    "Dialect",
    "Operation",
    "Untranslatable",
    "file_path",
    "find_dialect",
    "operation_of",
    "shell_command",
    "translate",
    "translate_pattern",
]

LABELS: dict[Dialect, str] = {
    "claude_code": "Claude Code",
    "codex": "Codex",
    "hermes": "Hermes",
    "opencode": "opencode",
    "journeyman": "Journeyman's agent",
}

SIGNS: tuple[tuple[Dialect, frozenset[str]], ...] = (
    ("claude_code", frozenset(("Bash",))),
    ("claude_code", frozenset(("Read", "Edit"))),
    ("claude_code", frozenset(("Read", "Grep"))),
    ("codex", frozenset(("exec_command",))),
    ("codex", frozenset(("shell_command",))),
    ("codex", frozenset(("local_shell",))),
    ("codex", frozenset(("shell", "update_plan"))),
    ("codex", frozenset(("shell", "apply_patch"))),
    ("hermes", frozenset(("terminal", "process"))),
    ("hermes", frozenset(("terminal", "clarify"))),
    ("hermes", frozenset(("terminal", "delegate_task"))),
    ("hermes", frozenset(("terminal", "todo"))),
    ("journeyman", frozenset(("terminal", "read_file", "patch"))),
    ("hermes", frozenset(("read_file", "patch"))),
    ("opencode", frozenset(("bash", "read"))),
    ("opencode", frozenset(("read", "edit"))),
    ("opencode", frozenset(("read", "grep"))),
)
"""Tools that only one agent has together, in the order in which they are looked for."""


class Untranslatable(Struct, frozen=True):
    """Why a call has no counterpart, as a sentence."""

    reason: str


def find_dialect(tool_names: Iterable[str]) -> Dialect | None:
    """Whose tools these are; None where the names do not tell."""
    names = frozenset(tool_names)
    return next((dialect for dialect, signs in SIGNS if signs <= names), None)


def operation_of(tool: str, arguments: str) -> Operation | None:
    """What a call does; None for a tool that the table does not have."""
    call = find_call(tool, arguments, "")
    return call.operation if call else None


def shell_command(tool: str, arguments: str) -> str:
    """The command line of a call of a shell; empty for any other call."""
    call = find_call(tool, arguments, "")
    command: str = call.fields.get("command", "") if call else ""
    return command


def file_path(tool: str, arguments: str) -> str:
    """The file that a call reads, edits, patches or writes; empty for any other call."""
    call = find_call(tool, arguments, "")
    if call is None:
        return ""
    if call.operation == "patch":
        return patched_path(call.fields.get("patch", ""))
    path: str = call.fields.get("path", "") if call.operation in ("read", "edit", "write") else ""
    return path


def translate(
    step: Step, source: str, target: Dialect, live: LiveTools | None = None
) -> Step | Untranslatable:
    """The same operation as a call of another agent. `source` is the recorder of the session.
    Where the live tools are given, the call is one of theirs and fits its schema. A call that the
    target can make as it is keeps its tool and arguments.
    """
    call = find_call(step.tool, step.arguments, source)
    if _is_usable(step, source, target, live):
        return _as_of(target, step, source, call) if call else step
    if step.tool.startswith("mcp__"):
        return Untranslatable(f"{step.tool} is a tool of an MCP server, which is not offered here.")
    reason = f"{LABELS[target]} has no counterpart of {step.tool}."
    if call is None:
        return Untranslatable(reason)
    if call.blocked:
        return Untranslatable(call.blocked)
    wrapping = unwrapped(step.result).wrapping
    if not step.worked and wrapping is not None and wrapping.is_error:
        return Untranslatable(f"It failed by a rule of the agent that called {step.tool}.")
    for row, fields in _counterparts(call, target, live):
        arguments = written(fields, row)
        if isinstance(arguments, str):
            reason = f"{row.name} needs {arguments}, for which {step.tool} has no value."
            continue
        text = json.dumps(arguments, ensure_ascii=False)
        found = msgspec.structs.replace(step, tool=row.name, arguments=text)
        misfit = live.misfit(found) if live else ""
        if not misfit:
            return _as_of(target, found, source, call)
        reason = f"The call does not fit {row.name}: {misfit}."
    return Untranslatable(reason)


def translate_pattern(
    pattern: Pattern, target: Dialect, live: LiveTools | None = None
) -> Pattern | Untranslatable:
    """The pattern with every call translated. It keeps its id; its estimate of tokens is that of
    the pattern as it was recorded. A step without a counterpart makes the whole untranslatable.
    """
    steps = []
    for step in pattern.steps:
        found = translate(step, pattern.source, target, live)
        if isinstance(found, Untranslatable):
            return found
        steps.append(found)
    if tuple(steps) == pattern.steps:
        return pattern
    return msgspec.structs.replace(pattern, steps=tuple(steps), source=target)


def _is_usable(step: Step, source: str, target: Dialect, live: LiveTools | None) -> bool:
    """Whether the target can make a call as it is. A failed call of its own is shown as the
    mistake it was: the tool has to be offered, no more.
    """
    if live is not None:
        is_own_mistake = source == target and not step.worked and step.tool in live.names
        return is_own_mistake or not live.misfit(step)
    if source == target:
        return True
    given = as_object(step.arguments).keys()
    return any(
        row.dialect == target
        and row.name == step.tool
        and row.required.keys() | row.fixed.keys() <= given <= row.arguments
        for row in TOOLS
    )


def _counterparts(
    call: OperationCall, target: Dialect, live: LiveTools | None
) -> Iterator[tuple[ToolRow, Fields]]:
    """The tools that could do what a call does, with the fields for each, the best first: those
    for an operation, with their optional arguments and without, then the shell.
    """
    for operation, fields in _operations(call):
        for row in _rows(operation, target, live):
            yield row, _with_folder(fields, row)
            bare = row._replace(optional={})
            yield bare, _with_folder(fields, bare)
    for operation, fields in _operations(call):
        if command := _shell_form(operation, fields, target):
            yield from ((row, {"command": command}) for row in _rows("run", target, live))


def _operations(call: OperationCall) -> Iterator[tuple[Operation, Fields]]:
    """What a call does, and the same in other words: a patch of one place is an edit."""
    operation, fields = call.operation, call.fields
    yield operation, fields
    if operation == "patch" and (change := find_only_change(fields.get("patch", ""))):
        texts = {"old": change.old, "new": change.new, "content": change.new}
        yield change.operation, {"path": change.path, **texts}
    elif operation == "edit" and fields.keys() == {"path", "old", "new"}:
        patch = find_patch(fields["path"], fields["old"], fields["new"])
        if patch:
            yield "patch", {"patch": patch}


def _shell_form(operation: Operation, fields: Fields, target: Dialect) -> str:
    form = SHELL_FORMS.get(operation)
    if form is None or (operation == "patch" and target != "codex"):
        return ""
    try:
        return form(fields)
    except KeyError:
        return ""


def _rows(operation: Operation, target: Dialect, live: LiveTools | None) -> Iterator[ToolRow]:
    for row in TOOLS:
        is_there = not row.former if live is None else row.name in live.names
        if row.dialect == target and row.operation == operation and is_there:
            yield row


def _with_folder(fields: Fields, row: ToolRow) -> Fields:
    """The fields for a tool. A shell that takes no folder goes there by itself."""
    if "folder" not in fields or "command" not in fields or "folder" in row.optional.values():
        return fields
    return {**fields, "command": f"cd {shlex.quote(fields['folder'])} && {fields['command']}"}


def _as_of(target: Dialect, step: Step, source: str, call: OperationCall) -> Step:
    result = result_for(target, step.result, call.operation, source, worked=step.worked)
    return step if result == step.result else msgspec.structs.replace(step, result=result)


def _heredoc(command: str, text: str) -> str:
    mark = "EOF"
    while f"\n{mark}\n" in f"\n{text}\n":
        mark += "_"
    return f"{command} <<'{mark}'\n{text.removesuffix(chr(10))}\n{mark}"


def _read_by_shell(fields: Fields) -> str:
    if "first_line" not in fields and "line_count" not in fields:
        return shlex.join(["cat", fields["path"]])
    first = fields.get("first_line", 1)
    last = first + fields["line_count"] - 1 if "line_count" in fields else "$"
    return shlex.join(["sed", "-n", f"{first},{last}p", fields["path"]])


def _search_by_shell(fields: Fields) -> str:
    words = ["rg", "-l" if fields.get("listing") == "files" else "-n"]
    words += ["-C", str(fields["context"])] if "context" in fields else []
    words += ["-g", fields["file_glob"]] if "file_glob" in fields else []
    return shlex.join([*words, "-e", fields["pattern"], *_place(fields)])


def _place(fields: Fields) -> list[str]:
    return [fields["path"]] if fields.get("path") else []


SHELL_FORMS: dict[Operation, Callable[[Fields], str]] = {
    "run_code": lambda fields: _heredoc("python3 -", fields["code"]),
    "read": _read_by_shell,
    "write": lambda fields: _heredoc(f"cat > {shlex.quote(fields['path'])}", fields["content"]),
    "patch": lambda fields: _heredoc("apply_patch", fields["patch"]),
    "search_text": _search_by_shell,
    "find_files": lambda fields: shlex.join(
        ["rg", "--files", "-g", fields["glob"], *_place(fields)]
    ),
    "list_files": lambda fields: shlex.join(["ls", *_place(fields)]),
}
"""Operations as command lines, for an agent without a tool for them. Codex applies what is given
to `apply_patch` itself; other agents have no such program."""
