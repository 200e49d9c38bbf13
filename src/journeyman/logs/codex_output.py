"""What Codex put around the output of a tool, taken off again: exit codes in all the spellings of
its versions, success flags, times. Only the places where the program writes are looked at, never
the output itself: a command may print anything.
"""

import re
from typing import Any

import msgspec

from journeyman.logs.values import as_text, whole_number
from journeyman.records import Recorded

EXIT_CODES = (
    (re.compile(r"Exit code:? (-?\d{1,10})"), "Exit code: 1"),
    (re.compile(r"Process exited with code (-?\d{1,10})\.?"), "Process exited with code 1"),
)
"""Lines at the head of a result that state the exit code, each with an example."""

_HEAD_LINES = (
    (re.compile(r"Wall time: .*"), "Wall time: 0.1 seconds"),
    (re.compile(r"Chunk ID: .*"), "Chunk ID: 3fa9c1"),
    (re.compile(r"Process running with session ID .*"), "Process running with session ID 7"),
    (re.compile(r"Original token count: \d+"), "Original token count: 12000"),
    (re.compile(r"Total output lines: \d+"), "Total output lines: 900"),
)
"""Other lines that may stand at the head, each with an example."""

_FAILURES = (
    (
        re.compile(
            r"failed in sandbox \S+ with execution error: [^,\n]*, exit code: (-?\d{1,10}),"
        ),
        "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, "
        "exit code: 101, stdout: , stderr: …",
    ),
    (
        re.compile(r"failed in sandbox \S+ with execution error: ()"),
        "failed in sandbox None with execution error: command timed out",
    ),
)
"""Whole results in which the program says that the command failed, each with an example."""

_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user(?: after [\d.]+s)?)?")
_LONGEST_HEAD = 10

EVENT_FLAGS = {
    "exec_command_end": "exit_code",
    "patch_apply_end": "success",
    "mcp_tool_call_end": "result",
}
"""Events that say how a call ended, and the field that says it. They come before the result,
which in some versions does not repeat it."""


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
    value = payload.get(EVENT_FLAGS[event])
    if event == "exec_command_end":
        code = whole_number(value)
        return None if code is None else Recorded(exit_code=code)
    if event == "patch_apply_end":
        return Recorded(is_error=not value) if isinstance(value, bool) else None
    if not isinstance(value, dict):
        return None
    if "Err" in value:
        return Recorded(is_error=True)
    answer = value.get("Ok")
    flag = answer.get("isError", answer.get("is_error")) if isinstance(answer, dict) else None
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
    if not output.startswith("{"):
        return None
    try:
        value = msgspec.json.decode(output)
    except (ValueError, RecursionError):
        return None
    metadata = value.get("metadata") if isinstance(value, dict) else None
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
    for pattern, _ in _FAILURES:
        if found := pattern.match(text):
            code = int(found[1]) if found[1] else None
            return text, Recorded(is_error=True, exit_code=code)
    exit_code: int | None = None
    rest = text
    for _ in range(_LONGEST_HEAD):
        line, _, after = rest.partition("\n")
        line = line.rstrip()
        if line == "Output:" and rest is not text:
            return after, None if exit_code is None else Recorded(exit_code=exit_code)
        stated = _exit_code(line)
        if stated is None and not any(pattern.fullmatch(line) for pattern, _ in _HEAD_LINES):
            break
        exit_code = exit_code if stated is None else stated
        rest = after
    if exit_code is None:
        return text, None
    return rest, Recorded(exit_code=exit_code)


def _exit_code(line: str) -> int | None:
    for pattern, _ in EXIT_CODES:
        if found := pattern.fullmatch(line):
            return int(found[1])
    return None
