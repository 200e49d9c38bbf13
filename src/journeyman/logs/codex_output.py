"""Tool results in Codex rollouts: splits the output from what Codex reported about the call, which
is its exit code (in the spellings of all versions), success flag and duration. Only text that Codex
itself wrote is parsed, never the output: a command may print anything. The exit code ends up in
`ResultFlags.exit_code`, from which `journeyman.outcomes.judge` derives the verdict.
"""

import re
from typing import Any, NamedTuple

import msgspec

from journeyman.logs.fields import as_text, json_value, only_object, only_text, whole_number
from journeyman.records import ResultFlags

_EXIT_CODE_LINE = re.compile(r"Exit code:? (-?\d{1,10})|Process exited with code (-?\d{1,10})\.?")
"""Header lines of a result that state the exit code."""

_OTHER_HEADER_LINE = re.compile(
    r"(?:Wall time|Chunk ID): .*|(?:Original token count|Total output lines): \d+"
)
"""Other lines that the header may contain."""

_RUNNING_LINE = re.compile(r"Process running with session ID (\S{1,40})")
"""The header line of a command that has not ended yet."""

_SANDBOX_FAILURE = re.compile(
    r"failed in sandbox \S+ with execution error: (?:[^,\n]*, exit code: (-?\d{1,10}),)?"
)
"""The start of a result in which Codex reports that the command failed."""

_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user(?: after [\d.]+s)?)?")
_MAX_HEADER_LINES = 10

CALL_END_EVENTS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end", "item_completed")
"""Events that report how a call ended. They precede the result, which does not repeat their content
in every version; the end of a process that outlives its call follows the result."""


class CallEnd(NamedTuple):
    """What an event reports about the end of a call: flags, and all that a command printed."""

    call_id: str
    recorded: ResultFlags
    output: str = ""


def parse_tool_output(output: Any) -> tuple[str, ResultFlags | None]:
    """Return a tool's output without Codex's wrapper, and the exit code, error flag and duration
    that the wrapper reports. None if it reports nothing.
    """
    if isinstance(output, dict):
        text, recorded = parse_tool_output(output.get("content", output.get("output")))
        success = output.get("success")
        if isinstance(success, bool):
            recorded = msgspec.structs.replace(recorded or ResultFlags(), is_error=not success)
        return text, recorded
    if isinstance(output, str):
        return _parse_json_wrapper(output) or _parse_text_header(output)
    return _parse_text_header(as_text(output))


def parse_end_event(event: str, payload: dict[str, Any]) -> CallEnd | None:
    """Return the end of a call in one of the `CALL_END_EVENTS`; None if it reports none."""
    if event == "item_completed":
        item = only_object(payload.get("item"))
        call_id, recorded = only_text(item.get("id")), _item_flags(item)
        output = only_text(item.get("aggregated_output"))
    else:
        call_id, recorded = only_text(payload.get("call_id")), _event_flags(event, payload)
        output = only_text(payload.get("aggregated_output"))
    return CallEnd(call_id, recorded, output) if call_id and recorded is not None else None


def _event_flags(event: str, payload: dict[str, Any]) -> ResultFlags | None:
    if event == "exec_command_end":
        code = whole_number(payload.get("exit_code"))
        return None if code is None else ResultFlags(exit_code=code)
    if event == "patch_apply_end":
        success = payload.get("success")
        return ResultFlags(is_error=not success) if isinstance(success, bool) else None
    result = only_object(payload.get("result"))
    answer = only_object(result.get("Ok"))
    flag = True if "Err" in result else answer.get("isError", answer.get("is_error"))
    return ResultFlags(is_error=flag) if isinstance(flag, bool) else None


_CALL_ITEMS = ("CommandExecution", "FileChange", "McpToolCall")


def _item_flags(item: dict[str, Any]) -> ResultFlags | None:
    """Return the flags of a completed item that is a call: its exit code, else its status."""
    status = only_text(item.get("status"))
    if only_text(item.get("type")) not in _CALL_ITEMS:
        return None
    if status == "declined":
        return ResultFlags(status=status)
    code = whole_number(item.get("exit_code"))
    if code is not None:
        return ResultFlags(exit_code=code)
    answer = only_object(item.get("result"))
    if status not in ("completed", "failed"):
        return None
    return ResultFlags(is_error=status == "failed" or answer.get("isError") is True)


def merge_reports(result: ResultFlags | None, event: ResultFlags | None) -> ResultFlags | None:
    """Return the report in a result, with its gaps filled from the event that preceded it."""
    if result is None or event is None:
        return result or event
    return msgspec.structs.replace(
        result,
        is_error=event.is_error if result.is_error is None else result.is_error,
        exit_code=event.exit_code if result.exit_code is None else result.exit_code,
        status=result.status or event.status,
    )


def _parse_json_wrapper(output: str) -> tuple[str, ResultFlags | None] | None:
    """Parse `{"output": …, "metadata": {"exit_code": …}}`; None for any other text."""
    value = only_object(json_value(output)) if output.startswith("{") else {}
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "output" not in value:
        return None
    details: dict[str, str | int | float | bool] = {}
    if isinstance(metadata.get("duration_seconds"), int | float):
        details["duration_seconds"] = metadata["duration_seconds"]
    recorded = ResultFlags(exit_code=whole_number(metadata.get("exit_code")), details=details)
    return as_text(value["output"]), None if recorded == ResultFlags() else recorded


def _parse_text_header(text: str) -> tuple[str, ResultFlags | None]:
    """Parse the header lines, such as `Exit code: 1`, that end with `Output:` or with the first
    line that is not one of them.
    """
    if _ABORTED.fullmatch(text):
        return text, ResultFlags(interrupted=True)
    if failure := _SANDBOX_FAILURE.match(text):
        return text, ResultFlags(is_error=True, exit_code=int(failure[1]) if failure[1] else None)
    recorded: ResultFlags | None = None
    rest = text
    for _ in range(_MAX_HEADER_LINES):
        line, _, after = rest.partition("\n")
        line = line.rstrip()
        if line == "Output:" and rest is not text:
            return after, recorded
        if stated := _EXIT_CODE_LINE.fullmatch(line):
            recorded = ResultFlags(exit_code=int(stated[1] or stated[2]))
        elif running := _RUNNING_LINE.fullmatch(line):
            recorded = ResultFlags(details={"background_task_id": running[1]})
        elif not _OTHER_HEADER_LINE.fullmatch(line):
            break
        rest = after
    return (text, None) if recorded is None else (rest, recorded)
