"""A played session as a Claude Code transcript: JSON lines, one for each part of a message, with
results between the calls of one message. A subagent gets a transcript of its own.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from journeyman.testing.script import (
    Act,
    Ask,
    Compress,
    Event,
    Ids,
    Played,
    Reply,
    Result,
    UserSays,
    iso,
)
from journeyman.testing.workshop import WORK

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

Line = dict[str, Any]


class Transcripts(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a session, and of each subagent by its id."""

    session: str
    stamp: str
    main: list[Line]
    subagents: dict[str, list[Line]]


def transcribe(played: Played) -> Transcripts:
    """All lines that Claude Code would have written."""
    ids = Ids(played.script.name)
    writer = _Writer(ids, played.script.project)
    writer.lines.append({"type": "summary", "summary": played.script.title, "leafUuid": None})
    for event in played.events:
        writer.event(event)
    writer.lines[0]["leafUuid"] = writer.lines[-1]["uuid"]
    return Transcripts(
        session=ids.session, stamp=ids.stamp, main=writer.lines, subagents=writer.subagents
    )


def encode_lines(lines: Sequence[Line]) -> bytes:
    """Lines as the bytes of a JSONL file."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


class _Writer:
    """Appends lines; each hangs on the one before by `parentUuid`."""

    def __init__(self, ids: Ids, project: str, *, agent: str = "") -> None:
        self.lines: list[Line] = []
        self.subagents: dict[str, list[Line]] = {}
        self._ids = ids
        self._project = project
        self._agent = agent
        self._parent: str | None = None
        self._context = _SYSTEM_TOKENS
        self._fresh = 0

    def event(self, event: Event) -> None:
        if isinstance(event.step, Compress):
            self._compaction(event.at, event.step.summary)
        elif isinstance(event.step, UserSays):
            self._user(event.at, event.step.text)
        else:
            self._turn(event, event.step)
        self._fresh += event.heard_tokens

    def _user(self, at: float, content: str | list[Line], **more: Any) -> None:
        message = {"role": "user", "content": content}
        self._append(at, {"type": "user", "message": message, **more})

    def _turn(self, event: Event, act: Act) -> None:
        message, request = self._ids.token("msg_01", 22), self._ids.token("req_011C", 21)
        blocks: list[tuple[Line, Reply | None]] = []
        if act.thought:
            thinking = {"type": "thinking", "thinking": act.thought}
            blocks.append((thinking | {"signature": self._ids.token("", 64) * 20}, None))
        if act.text:
            blocks.append(({"type": "text", "text": act.text}, None))
        for reply in event.replies:
            use: Line = {"type": "tool_use", "id": self._ids.token("toolu_01", 22)}
            use |= {"name": _name(reply.ask), "input": _input(reply.ask, act.text)}
            blocks.append((use, reply))
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": self._fresh,
            "cache_read_input_tokens": self._context,
        }
        self._context, self._fresh = self._context + self._fresh, 0
        for number, (block, answer) in enumerate(blocks, 1):
            last = number == len(blocks)
            body = {
                "model": "claude-opus-4-6",
                "id": message,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": ("tool_use" if event.replies else "end_turn") if last else None,
                "usage": usage | {"output_tokens": event.spoken_tokens if last else 2},
            }
            asking = self._append(
                event.at, {"message": body, "requestId": request, "type": "assistant"}
            )
            if answer is not None and answer.result is not None:
                self._result(answer, answer.result, block["id"], asking, event.replies)

    def _result(
        self, reply: Reply, result: Result, use: str, asking: str, siblings: Sequence[Reply]
    ) -> None:
        agent = f"a{use[-16:-8]}{self._ids.stamp}" if reply.inner else ""
        if agent:
            writer = _Writer(self._ids, self._project, agent=agent)
            prompt = UserSays(text=reply.ask.arguments["prompt"])
            for event in (Event(at=reply.inner[0].at - 1, step=prompt), *reply.inner):
                writer.event(event)
            self.subagents[agent] = writer.lines
        if result.output.count("\n") >= _PROGRESS_LINES:
            # What a long output of a command showed while it ran.
            data = {"type": "bash_progress", "fullOutput": result.output, "elapsedTimeSeconds": 2}
            self._append(reply.at, {"type": "progress", "data": data, "parentToolUseID": use})
        text = _text(reply.ask, result, siblings)
        block: Line = {"tool_use_id": use, "type": "tool_result", "content": text}
        bad = result.kind != "ok"
        if bad or reply.ask.tool == "shell":
            block["is_error"] = bad
        details = f"Error: {text}" if bad else _details(reply, result) | {"agentId": agent}
        self._user(reply.at, [block], toolUseResult=details, sourceToolAssistantUUID=asking)
        if result.kind == "refused" and not reply.ask.said:
            stopped = {"type": "text", "text": "[Request interrupted by user for tool use]"}
            self._user(reply.at, [stopped])

    def _compaction(self, at: float, summary: str) -> None:
        before, self._parent = self._parent, None
        tokens = {"trigger": "auto", "preTokens": self._context + self._fresh}
        boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": tokens}
        self._append(at, boundary | {"logicalParentUuid": before})
        text = (
            "This session is being continued from a previous conversation that ran out of context."
            f" The conversation is summarized below:\n{summary}"
        )
        self._user(at, text, isVisibleInTranscriptOnly=True, isCompactSummary=True)
        self._context, self._fresh = _SYSTEM_TOKENS, 0

    def _append(self, at: float, body: Line) -> str:
        uuid = self._ids.uuid()
        line: Line = {
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
        self.lines.append(line | body | {"uuid": uuid, "timestamp": iso(at)})
        if body["type"] != "progress":
            self._parent = uuid
        return uuid


def _name(ask: Ask) -> str:
    return _NAMES.get(ask.tool, ask.tool)


def _input(ask: Ask, text: str) -> Line:
    """The arguments under Claude Code's names."""
    given = ask.arguments
    if ask.tool == "shell":
        return {**given, "description": text.rstrip(".") or "Run the command"}
    if ask.tool == "search":
        return {**given, "output_mode": "content", "-n": True}
    if ask.tool == "subagent":
        return {**given, "subagent_type": "Explore"}
    return {_PARAMETERS.get(name, name): value for name, value in given.items()}


def _text(ask: Ask, result: Result, siblings: Sequence[Reply]) -> str:
    """What the model gets to see."""
    if result.kind == "refused":
        said = f"To tell you how to proceed, the user said:\n{ask.said}" if ask.said else _STOP
        return _REJECTED + said
    if result.kind == "nonzero_exit":
        return f"Exit code {result.exit_code}\n{result.output}"
    if result.kind != "ok":
        return f"<tool_use_error>{_complaint(ask, result, siblings)}</tool_use_error>"
    if ask.tool == "read":
        return "\n".join(f"{n:>6}→{line}" for n, line in enumerate(result.text.splitlines(), 1))
    if ask.tool == "write":
        return f"File created successfully at: {ask.arguments['path']}"
    if ask.tool == "edit":
        return f"The file {ask.arguments['path']} has been updated successfully."
    return result.output or ("No matches found" if ask.tool == "search" else "")


def _complaint(ask: Ask, result: Result, siblings: Sequence[Reply]) -> str:
    if result.kind == "cancelled":
        first = next(other.ask for other in siblings if other.result and other.result.failed)
        shown = str(next(iter(first.arguments.values())))[:40]
        return f"Cancelled: parallel tool call {_name(first)}({shown}…) errored"
    complaints = {
        "missing_file": "File does not exist.",
        "unread_file": "File has not been read yet. Read it first before writing to it.",
        "no_match": f"String to replace not found in file.\nString: {result.text}",
        "many_matches": f"Found {result.matches} matches of the string to replace, but replace_all "
        f"is false. To replace all occurrences, set replace_all to true.\nString: {result.text}",
        "unknown_tool": f"Error: No such tool available: {ask.tool}",
        "bad_arguments": f"InputValidationError: {_name(ask)} failed due to the following issue:\n"
        f"The required parameter `{_PARAMETERS.get(result.text, result.text)}` is missing",
    }
    return complaints[result.kind]


def _details(reply: Reply, result: Result) -> Line:
    """The `toolUseResult` beside the text of a call that worked."""
    if reply.ask.tool == "shell":
        return {"stdout": result.text, "stderr": result.errors, "interrupted": False}
    if reply.ask.tool in ("write", "edit"):
        kind = "create" if result.before is None else "update"
        return {"type": kind, "originalFile": result.before, "userModified": False}
    return {"content": result.text, "totalDurationMs": 900}
