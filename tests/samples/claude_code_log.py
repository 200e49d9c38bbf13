"""Writes a played session as a Claude Code transcript: JSON lines, one for each part of a message,
with results between the calls of one message. Each subagent has its own transcript.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from tests.samples.script import (
    AgentMessage,
    CallRequest,
    CallResult,
    Compression,
    PlayedCall,
    PlayedSession,
    SessionEvent,
    SessionIds,
    UserMessage,
    iso_time,
)
from tests.samples.workshop import WORK

_NAMES = {
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
_SYSTEM_TOKENS = 18_000
_PROGRESS_LINES = 25

LogLine = dict[str, Any]


class Transcripts(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a session, and those of each subagent by its id."""

    session: str
    stamp: str
    main: list[LogLine]
    subagents: dict[str, list[LogLine]]


def transcribe(played: PlayedSession) -> Transcripts:
    """Return all lines that Claude Code would have written."""
    ids = SessionIds(played.script.name)
    writer = _TranscriptWriter(ids, played.script.project)
    writer.lines.append({"type": "summary", "summary": played.script.title, "leafUuid": None})
    for event in played.events:
        writer.event(event)
    writer.lines[0]["leafUuid"] = writer.lines[-1]["uuid"]
    return Transcripts(
        session=ids.session, stamp=ids.stamp, main=writer.lines, subagents=writer.subagents
    )


def encode_lines(lines: Sequence[LogLine]) -> bytes:
    """Encode lines as the bytes of a JSONL file."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def fork_lines(lines: Sequence[LogLine], session: str, at: float) -> list[LogLine]:
    """Return the lines of a transcript as a fork repeats them, made `at` this time: with the same
    ids, under its own session id. What is said in the fork comes after them.
    """
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": session}
    queued["timestamp"] = iso_time(at)
    copies = [line | {"sessionId": session} for line in lines if "uuid" in line]
    return [{"type": "mode", "mode": "normal", "sessionId": session}, queued, *copies]


class _TranscriptWriter:
    """Appends lines; each refers to the previous one by `parentUuid`."""

    def __init__(self, ids: SessionIds, project: str, *, agent: str = "") -> None:
        self.lines: list[LogLine] = []
        self.subagents: dict[str, list[LogLine]] = {}
        self._ids = ids
        self._project = project
        self._agent = agent
        self._parent: str | None = None
        self._context = _SYSTEM_TOKENS
        self._new_tokens = 0

    def event(self, event: SessionEvent) -> None:
        if isinstance(event.step, Compression):
            self._compaction(event.at, event.step.summary)
        elif isinstance(event.step, UserMessage):
            self._user(event.at, event.step.text)
        else:
            self._turn(event, event.step)
        self._new_tokens += event.input_tokens

    def _user(self, at: float, content: str | list[LogLine], **more: Any) -> None:
        message = {"role": "user", "content": content}
        self._append(at, {"type": "user", "message": message, **more})

    def _turn(self, event: SessionEvent, message: AgentMessage) -> None:
        message_id, request_id = self._ids.token("msg_01", 22), self._ids.token("req_011C", 21)
        blocks: list[tuple[LogLine, PlayedCall | None]] = []
        if message.thought:
            thinking = {"type": "thinking", "thinking": message.thought}
            blocks.append((thinking | {"signature": self._ids.token("", 64) * 20}, None))
        if message.text:
            blocks.append(({"type": "text", "text": message.text}, None))
        for call in event.calls:
            use: LogLine = {"type": "tool_use", "id": self._ids.token("toolu_01", 22)}
            use |= {"name": _name(call.request), "input": _input(call.request, message.text)}
            blocks.append((use, call))
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": self._new_tokens,
            "cache_read_input_tokens": self._context,
        }
        self._context, self._new_tokens = self._context + self._new_tokens, 0
        for number, (block, answer) in enumerate(blocks, 1):
            last = number == len(blocks)
            body = {
                "model": "claude-opus-4-6",
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": ("tool_use" if event.calls else "end_turn") if last else None,
                "usage": usage | {"output_tokens": event.output_tokens if last else 2},
            }
            assistant_uuid = self._append(
                event.at, {"message": body, "requestId": request_id, "type": "assistant"}
            )
            if answer is not None and answer.result is not None:
                self._result(answer, answer.result, block["id"], assistant_uuid, event.calls)

    def _result(
        self,
        call: PlayedCall,
        result: CallResult,
        use: str,
        assistant_uuid: str,
        siblings: Sequence[PlayedCall],
    ) -> None:
        agent = f"a{use[-16:-8]}{self._ids.stamp}" if call.subagent else ""
        if agent:
            writer = _TranscriptWriter(self._ids, self._project, agent=agent)
            prompt = UserMessage(text=call.request.arguments["prompt"])
            for event in (SessionEvent(at=call.subagent[0].at - 1, step=prompt), *call.subagent):
                writer.event(event)
            self.subagents[agent] = writer.lines
        if result.output.count("\n") >= _PROGRESS_LINES:
            # The progress that a command with a long output showed while it ran.
            data = {"type": "bash_progress", "fullOutput": result.output, "elapsedTimeSeconds": 2}
            self._append(call.at, {"type": "progress", "data": data, "parentToolUseID": use})
        text = _text(call.request, result, siblings)
        block: LogLine = {"tool_use_id": use, "type": "tool_result", "content": text}
        is_error = result.kind != "ok"
        if is_error or call.request.tool == "shell":
            block["is_error"] = is_error
        details = f"Error: {text}" if is_error else _details(call, result) | {"agentId": agent}
        self._user(call.at, [block], toolUseResult=details, sourceToolAssistantUUID=assistant_uuid)
        if result.kind == "refused" and not call.request.refusal:
            stopped = {"type": "text", "text": "[Request interrupted by user for tool use]"}
            self._user(call.at, [stopped])

    def _compaction(self, at: float, summary: str) -> None:
        before, self._parent = self._parent, None
        tokens = {"trigger": "auto", "preTokens": self._context + self._new_tokens}
        boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": tokens}
        self._append(at, boundary | {"logicalParentUuid": before})
        text = (
            "This session is being continued from a previous conversation that ran out of context."
            f" The conversation is summarized below:\n{summary}"
        )
        self._user(at, text, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        self._context, self._new_tokens = _SYSTEM_TOKENS, 0

    def _append(self, at: float, body: LogLine) -> str:
        uuid = self._ids.uuid()
        line: LogLine = {
            "parentUuid": self._parent,
            "isSidechain": bool(self._agent),
            "userType": "external",
            "cwd": f"{WORK}/{self._project}",
            "sessionId": self._ids.session,
            "version": "2.1.160",
            "gitBranch": "main",
        }
        if self._agent:
            line["agentId"] = self._agent
        self.lines.append(line | body | {"uuid": uuid, "timestamp": iso_time(at)})
        if body["type"] != "progress":
            self._parent = uuid
        return uuid


def _name(request: CallRequest) -> str:
    return _NAMES.get(request.tool, request.tool)


def _input(request: CallRequest, text: str) -> LogLine:
    """The arguments with Claude Code's names."""
    arguments = request.arguments
    if request.tool == "shell":
        return {**arguments, "description": text.rstrip(".") or "Run the command"}
    if request.tool == "search":
        return {**arguments, "output_mode": "content", "-n": True}
    if request.tool == "subagent":
        return {**arguments, "subagent_type": "Explore"}
    return {_PARAMETERS.get(name, name): value for name, value in arguments.items()}


def _text(request: CallRequest, result: CallResult, siblings: Sequence[PlayedCall]) -> str:
    """The text of a result for the model."""
    if result.kind == "refused":
        refusal = (
            f"To tell you how to proceed, the user said:\n{request.refusal}"
            if request.refusal
            else _STOP
        )
        return _REJECTED + refusal
    if result.kind == "nonzero_exit":
        return f"Exit code {result.exit_code}\n{result.output}"
    if result.kind != "ok":
        return f"<tool_use_error>{_error_text(request, result, siblings)}</tool_use_error>"
    if request.tool == "read":
        return "\n".join(f"{n:>6}→{line}" for n, line in enumerate(result.text.splitlines(), 1))
    if request.tool == "write":
        return f"File created successfully at: {request.arguments['path']}"
    if request.tool == "edit":
        return f"The file {request.arguments['path']} has been updated successfully."
    return result.output or ("No matches found" if request.tool == "search" else "")


def _error_text(request: CallRequest, result: CallResult, siblings: Sequence[PlayedCall]) -> str:
    if result.kind == "cancelled":
        first = next(other.request for other in siblings if other.result and other.result.failed)
        shown = str(next(iter(first.arguments.values())))[:40]
        return f"Cancelled: parallel tool call {_name(first)}({shown}…) errored"
    errors = {
        "missing_file": "File does not exist.",
        "unread_file": "File has not been read yet. Read it first before writing to it.",
        "no_match": f"String to replace not found in file.\nString: {result.text}",
        "many_matches": f"Found {result.matches} matches of the string to replace, but replace_all "
        f"is false. To replace all occurrences, set replace_all to true.\nString: {result.text}",
        "unknown_tool": f"Error: No such tool available: {request.tool}",
        "bad_arguments": f"InputValidationError: {_name(request)} failed due to the following "
        f"issue:\nThe required parameter `{_PARAMETERS.get(result.text, result.text)}` is missing",
    }
    return errors[result.kind]


def _details(call: PlayedCall, result: CallResult) -> LogLine:
    """The `toolUseResult` of a successful call."""
    if call.request.tool == "shell":
        return {"stdout": result.text, "stderr": result.errors, "interrupted": False}
    if call.request.tool in ("write", "edit"):
        kind = "create" if result.before is None else "update"
        return {"type": kind, "originalFile": result.before, "userModified": False}
    return {"content": result.text, "totalDurationMs": 900}
