"""Tool results in Codex rollouts: splits the output from what Codex reported about the call, which
is its exit code (in the spellings of all versions), success flag and duration. Only text that Codex
itself wrote is parsed, never the output: a command may print anything. The exit code ends up in
`ResultFlags.exit_code`, from which `journeyman.outcomes.judge` derives the verdict.

A process can outlive the call that started it. Codex answers such a call at once, with the id of
the process; how it ended comes later, possibly in a part of the rollout that is read another day:
as an event with the id of the call, or in the result of a call that polls it.
"""

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from journeyman.logs.fields import as_text, json_value, only_object, only_text, whole_number
from journeyman.records import Message, ResultFlags, ToolCall

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


POLLING_TOOL = "write_stdin"
_MAX_PROCESSES = 16
_MAX_POLLS = 64
_MAX_OUTPUT_CHARACTERS = 200_000
_PROCESS = "background_task_id"

_NO_EXIT_CODE = -1
_KILLED = (_NO_EXIT_CODE, 137, 143)
"""Exit codes of processes that Codex stopped, as it does with all at the end of a session."""


class Processes(Struct):
    """The processes of one session that are still running. `started` holds the results of the calls
    that started them, with the output of all polls so far, by the id of the call; `polls` the
    process ids in calls that poll, by the id of the call. `is_turn_open` is false between two
    turns.
    """

    started: dict[str, Message] = {}
    polls: dict[str, str] = {}
    is_turn_open: bool = True

    def note_call(self, call: ToolCall) -> None:
        """Remember which process a call polls."""
        if call.name == POLLING_TOOL:
            process = only_object(json_value(call.arguments)).get("session_id")
            self.polls[call.id] = str(process)
            drop_oldest(self.polls, _MAX_POLLS)

    def note_result(self, result: Message) -> tuple[Message, list[Message]]:
        """Return a result as it is to be stored, and the result of the call whose process ended if
        this is a poll that reports the end.
        """
        recorded = result.recorded or ResultFlags()
        is_running = _PROCESS in recorded.details
        process = self.polls.pop(result.tool_call_id, None)
        if process is None:
            if is_running:
                self.started[result.tool_call_id] = result
                drop_oldest(self.started, _MAX_PROCESSES)
            return result, []
        if not is_running and recorded.exit_code is None:
            return result, []
        # The poll itself worked: whether the process runs, and its exit code, are not the poll's.
        details = {name: value for name, value in recorded.details.items() if name != _PROCESS}
        worked = msgspec.structs.replace(recorded, is_error=False, details=details)
        poll = msgspec.structs.replace(result, recorded=worked)
        for call_id, start in self.started.items():
            if start.recorded and start.recorded.details.get(_PROCESS) == process:
                printed = (start.text + result.text)[-_MAX_OUTPUT_CHARACTERS:]
                if is_running:
                    self.started[call_id] = msgspec.structs.replace(start, text=printed)
                    return poll, []
                flags = ResultFlags(exit_code=recorded.exit_code)
                return poll, self.finish(CallEnd(call_id, flags, printed))
        return poll, []

    def finish(self, end: CallEnd) -> list[Message]:
        """Return the result of the call whose process ended, as it is now known; nothing if the
        call is not waiting for an end.
        """
        start = self.started.pop(end.call_id, None)
        if start is None:
            return []
        code = end.recorded.exit_code
        was_stopped = code == _NO_EXIT_CODE or (code in _KILLED and not self.is_turn_open)
        recorded = ResultFlags(interrupted=True, exit_code=code) if was_stopped else end.recorded
        return [msgspec.structs.replace(start, text=end.output or start.text, recorded=recorded)]

    def forget_from(self, position: int) -> None:
        """Forget the calls from this position on, which the user reverted."""
        kept = {id_: start for id_, start in self.started.items() if start.position < position}
        self.started = kept


def drop_oldest(entries: dict[str, Any], limit: int) -> None:
    """Keep only the newest entries."""
    for oldest in list(entries)[:-limit]:
        del entries[oldest]
