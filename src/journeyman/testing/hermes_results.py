"""Calls and results in Hermes's words: its tool names, its arguments, its JSON."""

import json
from typing import Any

from journeyman.testing.recording import joined, unified_diff
from journeyman.testing.script import Ask, Reply, Result

NAMES = {
    "shell": "terminal",
    "read": "read_file",
    "write": "write_file",
    "edit": "patch",
    "search": "search_files",
    "python": "execute_code",
}
_PARAMETERS = {"old": "old_string", "new": "new_string"}


def tool_name(ask: Ask) -> str:
    return NAMES.get(ask.tool, ask.tool)


def tool_arguments(ask: Ask) -> dict[str, Any]:
    """The arguments under Hermes's names."""
    renamed = {_PARAMETERS.get(name, name): value for name, value in ask.arguments.items()}
    if ask.tool == "edit":
        return {"mode": "replace", **renamed}
    return {**renamed, "target": "content"} if ask.tool == "search" else renamed


def result_text(reply: Reply) -> str:
    """The content of the tool row."""
    ask, result = reply.ask, reply.result
    assert result is not None
    if result.kind == "cancelled":
        return f"[Tool execution cancelled — {tool_name(ask)} was skipped due to user interrupt]"
    if result.kind == "unknown_tool":
        known = ", ".join(sorted(NAMES.values()))
        return f"Tool '{ask.tool}' does not exist. Available tools: {known}"
    return json.dumps(_answer(ask, result), ensure_ascii=False)


def _answer(ask: Ask, result: Result) -> dict[str, Any]:
    if result.kind == "bad_arguments":
        reason = "Invalid JSON in the arguments" if ask.malformed else f"Missing: {result.text}"
        return {"error": f"Tool execution failed: {tool_name(ask)}: {reason}"}
    if result.kind == "refused":
        return {
            "output": "",
            "exit_code": -1,
            "error": f"BLOCKED: User denied this command. {ask.said}".strip(),
            "status": "blocked",
            "user_summary": "You denied this command — it did not run.",
        }
    answers = {
        "shell": _terminal,
        "read": _read_file,
        "write": _write_file,
        "edit": _patch,
        "search": _search_files,
        "python": _execute_code,
    }
    return answers[ask.tool](ask, result)


def _terminal(_: Ask, result: Result) -> dict[str, Any]:
    output = joined(result.text, result.errors)
    return {"output": output, "exit_code": result.exit_code, "error": None}


def _read_file(ask: Ask, result: Result) -> dict[str, Any]:
    if result.kind == "missing_file":
        similar = result.errors.splitlines()
        return {"error": f"File not found: {ask.arguments['path']}", "similar_files": similar}
    lines = result.text.splitlines()
    return {
        "content": "\n".join(f"{number}|{line}" for number, line in enumerate(lines, 1)),
        "total_lines": len(lines),
        "file_size": len(result.text.encode()),
        "truncated": False,
        "is_binary": False,
        "is_image": False,
    }


def _write_file(ask: Ask, _: Result) -> dict[str, Any]:
    path = ask.arguments["path"]
    return {
        "bytes_written": len(ask.arguments["content"].encode()),
        "dirs_created": True,
        "lint": {"status": "skipped", "message": f"No linter for .{path.rpartition('.')[2]} files"},
        "resolved_path": path,
        "files_modified": [path],
    }


def _patch(ask: Ask, result: Result) -> dict[str, Any]:
    path = ask.arguments["path"]
    if result.kind == "missing_file":
        return {"success": False, "error": f"File not found: {path}"}
    if result.kind == "no_match":
        hint = "Read the file again and copy the text exactly."
        return {
            "success": False,
            "error": "Could not find a match for old_string in the file",
            "_hint": hint,
        }
    if result.kind == "many_matches":
        found = f"Found {result.matches} matches for old_string."
        more = "Provide more context to make it unique, or use replace_all=True."
        return {"success": False, "error": f"{found} {more}"}
    diff = unified_diff(path, result.before or "", result.after)
    return {"success": True, "diff": diff, "files_modified": [path]}


def _search_files(_: Ask, result: Result) -> dict[str, Any]:
    if result.kind == "missing_file":
        return {"total_count": 0, "error": f"Path not found: {result.text}"}
    if result.kind == "tool_error":
        return {"total_count": 0, "error": result.text}
    if not result.text:
        return {"total_count": 0}
    found = [line.split(":", 2) for line in result.text.splitlines()]
    matches = [{"path": p, "line": int(number), "content": text} for p, number, text in found]
    return {"total_count": result.matches, "matches": matches}


def _execute_code(_: Ask, result: Result) -> dict[str, Any]:
    timing = {"tool_calls_made": 0, "duration_seconds": 0.21}
    if result.kind == "ok":
        return {"status": "success", "output": result.text, **timing}
    output = f"{result.text}\n--- stderr ---\n{result.errors}"
    error = f"Script exited with code {result.exit_code}"
    code = {"exit_code": result.exit_code}
    return {"status": "error", "error": error, "output": output, **code, **timing}
