"""Calls of one agent as calls of another, so that what one has learned another can start with."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import unified_diff
from typing import Any

import msgspec

from journeyman.logs.codex_output import peeled
from journeyman.outcomes.wrapping import unwrapped
from journeyman.records import Pattern, Step
from journeyman.templates.tool_schemas import LiveTools
from journeyman.templates.translation.argument_fields import (
    RESULT_FORMATS,
    SIGNS,
    TOOLS,
    Dialect,
    Fields,
    Operation,
    OperationCall,
    ToolRow,
    find_call,
    written,
)

_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.M)
_PATCH_OF_ONE_PLACE = re.compile(
    r"\*\*\* Begin Patch *\n\*\*\* (Add|Update) File: (.+?) *\n(?:@@.*\n)?"
    r"((?:(?:[ +-].*)?\n)+)(?:\*\*\* End of File\n)?\*\*\* End Patch"
)

_ADDED = [(row, re.compile(row.added, re.M)) for row in RESULT_FORMATS]
_AGENTS_WITH_JSON = ("hermes", "journeyman")
_RETURN_CODE = re.compile(
    r"\A<returncode>(-?\d+)</returncode>\s*<output>\n?(.*?)\n?</output>\s*\Z", re.S
)
_RUNS: tuple[Operation, ...] = ("run", "run_code")
_DONE = "Done."
"""What stands for the words in which a harness confirms that it has changed a file."""


def find_dialect(tool_names: Iterable[str]) -> Dialect | None:
    """Whose tools these are; None where the names do not tell."""
    names = frozenset(tool_names)
    return next((sign.dialect for sign in SIGNS if sign.tools <= names), None)


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
        found = _FILE.search(call.fields.get("patch", ""))
        return found[1] if found else ""
    path: str = call.fields.get("path", "") if call.operation in ("read", "edit", "write") else ""
    return path


def translate(step: Step, source: str, target: Dialect, live: LiveTools) -> Step | str:
    """The same operation as a call of another agent that fits its live tools, or a sentence that
    says why there is none. `source` is the recorder of the session. A call that the target can make
    as it is keeps its tool and arguments, and so does a failed call of its own, which is shown as
    the mistake it was.
    """
    call = find_call(step.tool, step.arguments, source)
    is_own_mistake = source == target and not step.worked and step.tool in live.names
    if is_own_mistake or not live.misfit(step):
        return _as_of(target, step, source, call) if call else step
    if step.tool.startswith("mcp__"):
        return f"{step.tool} is a tool of an MCP server, which is not offered here."
    if call is not None and call.blocked:
        return call.blocked
    wrapping = unwrapped(step.result).wrapping
    if not step.worked and wrapping is not None and wrapping.is_error:
        return f"It failed by a rule of the agent that called {step.tool}."
    for row, fields in _counterparts(call, target, live) if call else ():
        arguments = written(fields, row)
        if arguments is not None:
            text = json.dumps(arguments, ensure_ascii=False)
            found = msgspec.structs.replace(step, tool=row.name, arguments=text)
            if call and not live.misfit(found):
                return _as_of(target, found, source, call)
    return f"The agent {target} has no counterpart of {step.tool} that fits."


def translate_pattern(pattern: Pattern, target: Dialect, live: LiveTools) -> Pattern | str:
    """The pattern with every call translated, or why one has no counterpart."""
    steps = []
    for step in pattern.steps:
        found = translate(step, pattern.source, target, live)
        if isinstance(found, str):
            return found
        steps.append(found)
    if tuple(steps) == pattern.steps:
        return pattern
    return msgspec.structs.replace(pattern, steps=tuple(steps), source=target)


def _counterparts(
    call: OperationCall, target: Dialect, live: LiveTools
) -> Iterator[tuple[ToolRow, Fields]]:
    """The tools for an operation with the fields for each, the best first, the shell last."""
    operations = [(call.operation, call.fields), *_same_change(call)]
    for operation, fields in operations:
        for row in _rows(operation, target, live):
            yield row, _with_folder(fields, row)
            bare = msgspec.structs.replace(row, optional={})
            yield bare, _with_folder(fields, bare)
    for operation, fields in operations:
        form = SHELL_FORMS.get(operation)
        if form is None or (operation == "patch" and target != "codex"):
            continue
        with suppress(KeyError):  # a field is missing that the command needs
            command = form(fields)
            yield from ((row, {"command": command}) for row in _rows("run", target, live))


def _same_change(call: OperationCall) -> Iterator[tuple[Operation, Fields]]:
    """The same change in other words: a patch as an edit or a write, an edit as a patch."""
    if call.operation == "patch" and (change := find_only_change(call.fields.get("patch", ""))):
        yield change
    is_plain_edit = call.operation == "edit" and call.fields.keys() == {"path", "old", "new"}
    if is_plain_edit and (patch := find_patch(**call.fields)):
        yield "patch", {"patch": patch}


def find_only_change(patch: str) -> tuple[Operation, Fields] | None:
    """The edit or write that does the same as a patch; None if it changes several files or places,
    or does not say which text it replaces.
    """
    found = _PATCH_OF_ONE_PLACE.fullmatch(patch.strip())
    if found is None:
        return None
    kind, path, hunk = found.groups()
    before, after = (
        [line[1:] for line in hunk[:-1].split("\n") if not line.startswith(sign)] for sign in "+-"
    )
    if kind == "Add":
        return None if before else ("write", {"path": path, "content": "\n".join([*after, ""])})
    if not any(before):
        return None
    old = "\n".join(before if after else [*before, ""])  # deleted lines go with their line breaks
    return "edit", {"path": path, "old": old, "new": "\n".join(after)}


def find_patch(path: str, old: str, new: str) -> str:
    """An edit as a patch; empty if it seems to change a part of a line, since a patch has whole
    lines. Several lines, or one with its indent, are taken for whole: so it was in all but 4 of 191
    recorded edits whose surroundings are known.
    """
    before = old.removesuffix("\n").split("\n")
    after = new.removesuffix("\n").split("\n") if new else []
    changes = list(unified_diff(before, after, n=len(before), lineterm=""))[3:]  # no headings
    if not changes or not old.strip() or (len(before) == 1 and old[0] not in " \t"):
        return ""
    lines = ["*** Begin Patch", f"*** Update File: {path}", "@@", *changes, "*** End Patch"]
    return "\n".join(lines)


def _rows(operation: Operation, target: Dialect, live: LiveTools) -> Iterator[ToolRow]:
    for row in TOOLS:
        if (row.dialect, row.operation) == (target, operation) and row.name in live.names:
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


def result_for(target: str, result: str, operation: Operation, source: str, *, worked: bool) -> str:
    """A result as any agent could have got it; as it was, where both agents have one format."""
    if source == target or {source, target} <= set(_AGENTS_WITH_JSON):
        return result
    if worked and operation in ("edit", "patch", "write"):
        return _DONE
    if source == "codex":
        output, recorded = peeled(result)
        result = _with_code(output, recorded and recorded.exit_code)
    elif source == "mini_swe_agent" and (found := _RETURN_CODE.match(result)):
        result = _with_code(found[2], int(found[1]))
    elif source in _AGENTS_WITH_JSON and operation in (*_RUNS, "read", "search_text", "find_files"):
        result = _out_of_json(result)
    for row, added in _ADDED:
        if source in row.sources and operation in row.operations:
            result = added.sub("", result)
    return result


def _with_code(output: str, code: object) -> str:
    """Output that says how the command ended, where it did not end well."""
    return f"Exit code {code}\n{output}".rstrip() if code not in (0, None) else output


def _out_of_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        answer: Any = json.loads(text, strict=False)  # a cut is marked with a line of its own
    except (ValueError, RecursionError):
        return text
    output = answer.get("output", answer.get("content"))
    if isinstance(output, str):
        return _with_code(output, answer.get("exit_code"))
    matches = answer.get("matches", answer.get("files"))
    if not isinstance(matches, list):
        return text
    keys = ("path", "line", "content")
    return "\n".join(
        ":".join(str(one[key]) for key in keys if key in one) if isinstance(one, dict) else str(one)
        for one in matches
    )
