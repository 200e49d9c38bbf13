"""What Codex put around the output of a tool, taken off again: exit codes in all the spellings of
its versions, success flags, times. Only the places where the program writes are looked at, never
the output itself: a command may print anything.
"""

import re
from typing import Any

import msgspec

from journeyman.logs.values import as_text, json_value, only_object, whole_number
from journeyman.records import Recorded

_EXIT_CODE = re.compile(r"Exit code:? (-?\d{1,10})|Process exited with code (-?\d{1,10})\.?")
"""Lines at the head of a result that state the exit code."""

_HEAD_LINE = re.compile(
    r"(?:Wall time|Chunk ID): .*|Process running with session ID .*"
    r"|(?:Original token count|Total output lines): \d+"
)
"""Other lines that may stand at the head."""

_FAILURE = re.compile(
    r"failed in sandbox \S+ with execution error: (?:[^,\n]*, exit code: (-?\d{1,10}),)?"
)
"""How a result begins in which the program says that the command failed."""

_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user(?: after [\d.]+s)?)?")
_LONGEST_HEAD = 10

TELLING_EVENTS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
"""Events that say how a call ended. They come before the result, which in some versions does not
repeat it."""


def peeled(output: Any) -> tuple[str, Recorded | None]:
    """The output of a tool as a person would have seen it, and what the program said about it."""
    if isinstance(output, dict):
        text, recorded = peeled(output.get("content", output.get("output")))
        success = output.get("success")
        if isinstance(success, bool):
            recorded = msgspec.structs.replace(recorded or Recorded(), is_error=not success)
        return text, recorded
    if isinstance(output, str):
        return _peeled_json(output) or _peeled_head(output)
    return _peeled_head(as_text(output))


def told_by(event: str, payload: dict[str, Any]) -> Recorded | None:
    """What an event says about the call it names, if it says something."""
    if event == "exec_command_end":
        code = whole_number(payload.get("exit_code"))
        return None if code is None else Recorded(exit_code=code)
    if event == "patch_apply_end":
        success = payload.get("success")
        return Recorded(is_error=not success) if isinstance(success, bool) else None
    result = only_object(payload.get("result"))
    answer = only_object(result.get("Ok"))
    flag = True if "Err" in result else answer.get("isError", answer.get("is_error"))
    return Recorded(is_error=flag) if isinstance(flag, bool) else None


def merged(said: Recorded | None, told: Recorded | None) -> Recorded | None:
    """What a result says itself, completed by what an event told."""
    if said is None or told is None:
        return said or told
    return msgspec.structs.replace(
        said,
        is_error=told.is_error if said.is_error is None else said.is_error,
        exit_code=told.exit_code if said.exit_code is None else said.exit_code,
    )


def _peeled_json(output: str) -> tuple[str, Recorded | None] | None:
    value = only_object(json_value(output)) if output.startswith("{") else {}
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "output" not in value:
        return None
    details: dict[str, str | int | float | bool] = {}
    if isinstance(metadata.get("duration_seconds"), int | float):
        details["duration_seconds"] = metadata["duration_seconds"]
    recorded = Recorded(exit_code=whole_number(metadata.get("exit_code")), details=details)
    return as_text(value["output"]), None if recorded == Recorded() else recorded


def _peeled_head(text: str) -> tuple[str, Recorded | None]:
    if _ABORTED.fullmatch(text):
        return text, Recorded(interrupted=True)
    if found := _FAILURE.match(text):
        return text, Recorded(is_error=True, exit_code=int(found[1]) if found[1] else None)
    exit_code: int | None = None
    rest = text
    for _ in range(_LONGEST_HEAD):
        line, _, after = rest.partition("\n")
        line = line.rstrip()
        if line == "Output:" and rest is not text:
            return after, None if exit_code is None else Recorded(exit_code=exit_code)
        if stated := _EXIT_CODE.fullmatch(line):
            exit_code = int(stated[1] or stated[2])
        elif not _HEAD_LINE.fullmatch(line):
            break
        rest = after
    if exit_code is None:
        return text, None
    return rest, Recorded(exit_code=exit_code)
