"""Processes that outlive the call that started them. Codex answers such a call at once, with the id
of a process. How the process ended comes later, possibly in a part of the rollout that is read
another day: as an event with the id of the call, or in the result of a call that polls it.
"""

from typing import Any

import msgspec
from msgspec import Struct

from journeyman.logs.codex_output import CallEnd
from journeyman.logs.fields import json_value, only_object
from journeyman.records import Message, ResultFlags, ToolCall

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
