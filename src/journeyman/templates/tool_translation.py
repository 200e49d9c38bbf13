"""Translates calls of one agent into calls of another, so that all can share what was learned."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import unified_diff
from typing import Any

import msgspec

from journeyman.logs.codex_output import parse_tool_output
from journeyman.outcomes.envelope import unwrapped
from journeyman.records import Pattern, Step
from journeyman.templates.argument_fields import (
    DIALECT_SIGNS,
    RESULT_FORMATS,
    TOOLS,
    AgentTool,
    Dialect,
    Fields,
    Operation,
    OperationCall,
    find_call,
    write_arguments,
)
from journeyman.templates.tool_schemas import LiveTools

_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.M)
_SINGLE_HUNK_PATCH = re.compile(
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
"""Replaces the words in which a harness confirms that it has changed a file."""


def find_dialect(tool_names: Iterable[str]) -> Dialect | None:
    """Return the agent that has these tools; None if the names do not tell."""
    names = frozenset(tool_names)
    return next((sign.dialect for sign in DIALECT_SIGNS if sign.tools <= names), None)


def operation_of(tool: str, arguments: str) -> Operation | None:
    """Return what a call does; None for a tool that the table does not have."""
    call = find_call(tool, arguments, "")
    return call.operation if call else None


def shell_command(tool: str, arguments: str) -> str:
    """Return the command line of a shell call; empty for any other call."""
    call = find_call(tool, arguments, "")
    command: str = call.fields.get("command", "") if call else ""
    return command


def file_path(tool: str, arguments: str) -> str:
    """Return the file that a call reads, edits, patches or writes; empty for any other call."""
    call = find_call(tool, arguments, "")
    if call is None:
        return ""
    if call.operation == "patch":
        match = _FILE.search(call.fields.get("patch", ""))
        return match[1] if match else ""
    path: str = call.fields.get("path", "") if call.operation in ("read", "edit", "write") else ""
    return path


def translate(step: Step, source: str, target: Dialect, live: LiveTools) -> Step | str:
    """Return the same operation as a call of another agent that fits its live tools, or a sentence
    that says why there is none. `source` is the recorder of the session. A call that the target can
    make unchanged keeps its tool and arguments, and so does its own failed call, which is shown as
    a mistake.
    """
    call = find_call(step.tool, step.arguments, source)
    is_own_mistake = source == target and not step.worked and step.tool in live.names
    if is_own_mistake or not live.misfit(step):
        return _with_result_for(target, step, source, call) if call else step
    if step.tool.startswith("mcp__"):
        return f"{step.tool} is a tool of an MCP server, which is not offered here."
    if call is not None and call.blocked:
        return call.blocked
    wrapping = unwrapped(step.result).envelope
    if not step.worked and wrapping is not None and wrapping.is_error:
        return f"It failed by a rule of the agent that called {step.tool}."
    for row, fields in _counterparts(call, target, live) if call else ():
        arguments = write_arguments(fields, row)
        if arguments is not None:
            text = json.dumps(arguments, ensure_ascii=False)
            translated = msgspec.structs.replace(step, tool=row.name, arguments=text)
            if call and not live.misfit(translated):
                return _with_result_for(target, translated, source, call)
    return f"The agent {target} has no counterpart of {step.tool} that fits."


def translate_pattern(pattern: Pattern, target: Dialect, live: LiveTools) -> Pattern | str:
    """Return the pattern with every call translated, or why one has no counterpart."""
    steps = []
    for step in pattern.steps:
        translated = translate(step, pattern.source, target, live)
        if isinstance(translated, str):
            return translated
        steps.append(translated)
    if tuple(steps) == pattern.steps:
        return pattern
    return msgspec.structs.replace(pattern, steps=tuple(steps), source=target)


def _counterparts(
    call: OperationCall, target: Dialect, live: LiveTools
) -> Iterator[tuple[AgentTool, Fields]]:
    """Yield the tools for an operation with the fields for each, best first, the shell last."""
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
        with suppress(KeyError):  # a field that the command needs is missing
            command = form(fields)
            yield from ((row, {"command": command}) for row in _rows("run", target, live))


def _same_change(call: OperationCall) -> Iterator[tuple[Operation, Fields]]:
    """Yield other forms of the same change: a patch as an edit or a write, an edit as a patch."""
    if call.operation == "patch" and (change := find_only_change(call.fields.get("patch", ""))):
        yield change
    is_plain_edit = call.operation == "edit" and call.fields.keys() == {"path", "old", "new"}
    if is_plain_edit and (patch := find_patch(**call.fields)):
        yield "patch", {"patch": patch}


def find_only_change(patch: str) -> tuple[Operation, Fields] | None:
    """Return the edit or write that does the same as a patch; None if the patch changes several
    files or places, or does not say which text it replaces.
    """
    match = _SINGLE_HUNK_PATCH.fullmatch(patch.strip())
    if match is None:
        return None
    kind, path, hunk = match.groups()
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
    """Return an edit as a patch; empty if it seems to change part of a line, since a patch has
    whole lines. Several lines, or one with its indentation, are assumed to be whole: that was right
    for all but 4 of 191 recorded edits with known surroundings.
    """
    before = old.removesuffix("\n").split("\n")
    after = new.removesuffix("\n").split("\n") if new else []
    changes = list(unified_diff(before, after, n=len(before), lineterm=""))[3:]  # no headings
    if not changes or not old.strip() or (len(before) == 1 and old[0] not in " \t"):
        return ""
    lines = ["*** Begin Patch", f"*** Update File: {path}", "@@", *changes, "*** End Patch"]
    return "\n".join(lines)


def _rows(operation: Operation, target: Dialect, live: LiveTools) -> Iterator[AgentTool]:
    for row in TOOLS:
        if (row.dialect, row.operation) == (target, operation) and row.name in live.names:
            yield row


def _with_folder(fields: Fields, row: AgentTool) -> Fields:
    """Return the fields for a tool. For a shell without a folder argument, prepend `cd`."""
    if "folder" not in fields or "command" not in fields or "folder" in row.optional.values():
        return fields
    return {**fields, "command": f"cd {shlex.quote(fields['folder'])} && {fields['command']}"}


def _with_result_for(target: Dialect, step: Step, source: str, call: OperationCall) -> Step:
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
"""Operations as command lines, for an agent without a tool for them. Codex itself handles
`apply_patch`; other agents have no such program."""


def result_for(target: str, result: str, operation: Operation, source: str, *, worked: bool) -> str:
    """Return a result as any agent could have got it; unchanged if both agents share a format."""
    if source == target or {source, target} <= set(_AGENTS_WITH_JSON):
        return result
    if worked and operation in ("edit", "patch", "write"):
        return _DONE
    if source == "codex":
        output, recorded = parse_tool_output(result)
        result = _with_code(output, recorded and recorded.exit_code)
    elif source == "mini_swe_agent" and (match := _RETURN_CODE.match(result)):
        result = _with_code(match[2], int(match[1]))
    elif source in _AGENTS_WITH_JSON and operation in (*_RUNS, "read", "search_text", "find_files"):
        result = _unwrapped_json(result)
    for row, added in _ADDED:
        if source in row.sources and operation in row.operations:
            result = added.sub("", result)
    return result


def _with_code(output: str, code: object) -> str:
    """Prepend the exit code to the output, unless the command succeeded."""
    return f"Exit code {code}\n{output}".rstrip() if code not in (0, None) else output


def _unwrapped_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        answer: Any = json.loads(text, strict=False)  # a truncation mark has raw line breaks
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
        ":".join(str(match[key]) for key in keys if key in match)
        if isinstance(match, dict)
        else str(match)
        for match in matches
    )
