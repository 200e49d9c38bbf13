"""Calls and results in Claude Code's words: its tool names, its texts, its `toolUseResult`."""

import difflib
from collections.abc import Sequence
from typing import Any

from journeyman.testing.recording import joined
from journeyman.testing.script import Ask, Reply, Result

NAMES = {
    "shell": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "search": "Grep",
    "subagent": "Task",
}
_PARAMETERS = {"path": "file_path", "old": "old_string", "new": "new_string"}

_REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was "
    "a file edit, the new_string was NOT written to the file). "
)
_STOP = "STOP what you are doing and wait for the user to tell you how to proceed."
_MANY = (
    "Found {count} matches of the string to replace, but replace_all is false. To replace all "
    "occurrences, set replace_all to true. To replace only one occurrence, please provide more "
    "context to uniquely identify the instance.\nString: {text}"
)


def tool_name(ask: Ask) -> str:
    return NAMES.get(ask.tool, ask.tool)


def tool_input(ask: Ask, text: str) -> dict[str, Any]:
    """The arguments under Claude Code's names."""
    given = ask.arguments
    if ask.tool == "shell":
        return {**given, "description": text.rstrip(".") or "Run the command"}
    if ask.tool == "search":
        return {**given, "output_mode": "content", "-n": True}
    if ask.tool == "subagent":
        return {**given, "subagent_type": "Explore"}
    renamed = {_PARAMETERS.get(name, name): value for name, value in given.items()}
    return {**renamed, "replace_all": False} if ask.tool == "edit" else renamed


def result_text(reply: Reply, siblings: Sequence[Reply]) -> str:
    """What the model gets to see."""
    ask, result = reply.ask, reply.result
    assert result is not None
    if result.kind == "refused":
        said = f"To tell you how to proceed, the user said:\n{ask.said}" if ask.said else _STOP
        return _REJECTED + said
    if result.kind == "nonzero_exit":
        return joined(f"Exit code {result.exit_code}", result.text, result.errors)
    if result.kind != "ok":
        return f"<tool_use_error>{_complaint(ask, result, siblings)}</tool_use_error>"
    if ask.tool == "shell":
        return joined(result.text, result.errors)
    if ask.tool == "read":
        return _numbered(result.text)
    if ask.tool == "write":
        return f"File created successfully at: {ask.arguments['path']}"
    if ask.tool == "edit":
        return (
            f"The file {ask.arguments['path']} has been updated. Here's the result of running "
            f"`cat -n` on a snippet of the edited file:\n{_snippet(result, ask.arguments['new'])}"
        )
    return result.text or "No matches found"


def _complaint(ask: Ask, result: Result, siblings: Sequence[Reply]) -> str:
    if result.kind == "cancelled":
        first = next(other.ask for other in siblings if other.result and other.result.failed)
        shown = str(next(iter(first.arguments.values())))[:40]
        return f"Cancelled: parallel tool call {tool_name(first)}({shown}…) errored"
    if result.kind == "missing_file":
        missing = "File does not exist."
        return f"Path does not exist: {result.text}" if ask.tool == "search" else missing
    if result.kind == "unread_file":
        return "File has not been read yet. Read it first before writing to it."
    if result.kind == "no_match":
        return f"String to replace not found in file.\nString: {result.text}"
    if result.kind == "many_matches":
        return _MANY.format(count=result.matches, text=result.text)
    if result.kind == "unknown_tool":
        return f"Error: No such tool available: {ask.tool}"
    if result.kind == "bad_arguments":
        wanted = _PARAMETERS.get(result.text, result.text)
        return (
            f"InputValidationError: {tool_name(ask)} failed due to the following issues:\n"
            f"The required parameter `{wanted}` is missing\n"
            f"An unexpected parameter `{next(iter(ask.arguments))}` was provided"
        )
    return result.text


def details(reply: Reply, text: str, *, agent: str, tokens: int) -> dict[str, Any] | str:
    """The `toolUseResult` beside the text; a plain string for errors."""
    ask, result = reply.ask, reply.result
    assert result is not None
    if result.kind != "ok":
        bare = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
        silent = result.kind == "refused" and not ask.said
        return "User rejected tool use" if silent else f"Error: {bare}"
    given = ask.arguments
    if ask.tool == "shell":
        output = {"stdout": result.text.rstrip("\n"), "stderr": result.errors.rstrip("\n")}
        return {**output, "interrupted": False, "isImage": False}
    if ask.tool == "read":
        lines = result.text.count("\n")
        file = {"filePath": given["path"], "content": result.text, "numLines": lines}
        return {"type": "text", "file": {**file, "startLine": 1, "totalLines": lines}}
    if ask.tool == "search":
        found = {"mode": "content", "numFiles": 0, "filenames": [], "content": result.text}
        return {**found, "numLines": result.matches}
    if ask.tool == "subagent":
        content = [{"type": "text", "text": text}]
        status = {"status": "completed", "prompt": given["prompt"], "agentId": agent}
        count = sum(len(turn.replies) for turn in reply.inner)
        duration = round((reply.at - reply.inner[0].at) * 1000)
        totals = {"totalDurationMs": duration, "totalTokens": tokens, "totalToolUseCount": count}
        return {**status, "content": content, **totals}
    return _change_details(ask, result)


def _change_details(ask: Ask, result: Result) -> dict[str, Any]:
    given = ask.arguments
    patch = _patch(result.before or "", result.after)
    if ask.tool == "write":
        return {
            "type": "create" if result.before is None else "update",
            "filePath": given["path"],
            "content": given["content"],
            "structuredPatch": [] if result.before is None else patch,
            "originalFile": result.before,
        }
    return {
        "filePath": given["path"],
        "oldString": given["old"],
        "newString": given["new"],
        "originalFile": result.before,
        "structuredPatch": patch,
        "userModified": False,
        "replaceAll": False,
    }


def _numbered(text: str, start: int = 1) -> str:
    return "\n".join(f"{n:>6}→{line}" for n, line in enumerate(text.splitlines(), start))


def _snippet(result: Result, new: str) -> str:
    """The lines around the change."""
    lines = result.after.splitlines()
    first = result.after[: result.after.index(new)].count("\n")
    start = max(0, first - 4)
    return _numbered("\n".join(lines[start : first + new.count("\n") + 5]), start + 1)


def _patch(before: str, after: str) -> list[dict[str, Any]]:
    old, new = before.splitlines(), after.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[a:b]]
            else:
                lines += [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        place = {"oldStart": a + 1, "oldLines": b - a, "newStart": c + 1, "newLines": d - c}
        hunks.append({**place, "lines": lines})
    return hunks
