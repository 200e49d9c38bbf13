"""Writes a played session as a Codex rollout: JSON lines of {timestamp, type, payload}. Reading and
searching are commands, and files are changed with `apply_patch`.
"""

from typing import Any

import msgspec
from tests.samples.script import (
    AgentMessage,
    CallRequest,
    CallResult,
    Compression,
    PlayedSession,
    SessionEvent,
    SessionIds,
    UserMessage,
    estimate_tokens,
    iso_time,
)
from tests.samples.workshop import WORK

_MODEL = "gpt-5.2-codex"
_SYSTEM_TOKENS = 9_000

LogLine = dict[str, Any]


def rollout_lines(played: PlayedSession) -> tuple[str, list[LogLine]]:
    """Return the id of the session and all lines that Codex would have written."""
    ids = SessionIds(played.script.name)
    writer = _RolloutWriter(ids, f"{WORK}/{played.script.project}")
    writer.begin(played.events[0].at)
    for event in played.events:
        writer.event(event)
    return ids.session, writer.lines


class _RolloutWriter:
    """Appends lines and maintains the running token counts."""

    def __init__(self, ids: SessionIds, cwd: str) -> None:
        self._ids = ids
        self._cwd = cwd
        self._context = _SYSTEM_TOKENS
        self._total: dict[str, int] = {}
        self.lines: list[LogLine] = []

    def begin(self, at: float) -> None:
        meta = {
            "id": self._ids.session,
            "timestamp": iso_time(at),
            "cwd": self._cwd,
            "originator": "codex_cli_rs",
            "cli_version": "0.104.0",
            "instructions": None,
            "source": "cli",
            "model_provider": "openai",
            "git": {"branch": "main"},
        }
        self._append(at, "session_meta", meta)
        environment = f"<environment_context>\n  <cwd>{self._cwd}</cwd>\n  <shell>bash</shell>\n"
        self._message(at, "user", environment + "</environment_context>")

    def event(self, event: SessionEvent) -> None:
        if isinstance(event.step, UserMessage):
            self._message(event.at, "user", event.step.text)
            self._event(event.at, "user_message", message=event.step.text, images=[])
            context = {"cwd": self._cwd, "approval_policy": "on-request", "model": _MODEL}
            self._append(event.at, "turn_context", context)
        elif isinstance(event.step, Compression):
            self._append(event.at, "compacted", {"message": event.step.summary})
            self._event(event.at, "context_compacted")
            self._context = _SYSTEM_TOKENS
        else:
            self._turn(event, event.step)
        self._context += event.output_tokens + event.input_tokens

    def _turn(self, event: SessionEvent, message: AgentMessage) -> None:
        if message.thought:
            self._event(event.at, "agent_reasoning", text=message.thought)
            summary = [{"type": "summary_text", "text": message.thought}]
            encrypted = self._ids.token("", 64) * 14
            self._item(event.at, "reasoning", summary=summary, encrypted_content=encrypted)
        if message.text:
            self._event(event.at, "agent_message", message=message.text)
            self._message(event.at, "assistant", message.text)
        calls = [(call, self._call(event.at, call.request)) for call in event.calls]
        self._count(event, message)
        for call, call_id in calls:
            if call.result is None:
                self._event(call.at, "turn_aborted", reason="interrupted")
            else:
                kind = (
                    "custom_tool_call_output" if _is_patch(call.request) else "function_call_output"
                )
                output = self._output(call.request, call.result)
                self._item(call.at, kind, call_id=call_id, output=output)

    def _call(self, at: float, request: CallRequest) -> str:
        call_id = self._ids.token("call_", 24)
        if _is_patch(request):
            patch = {"name": "apply_patch", "input": _patch_text(request), "status": "completed"}
            self._item(at, "custom_tool_call", call_id=call_id, **patch)
            return call_id
        name, arguments = request.tool, request.arguments
        if request.tool == "shell":
            name, arguments = "exec_command", {"cmd": request.arguments["command"]}
        text = msgspec.json.encode(arguments | {"workdir": self._cwd}).decode()
        self._item(at, "function_call", name=name, arguments=text, call_id=call_id)
        return call_id

    def _output(self, request: CallRequest, result: CallResult) -> str:
        if result.kind == "refused":
            return f"exec command rejected by user: {request.refusal}"
        if result.kind == "unknown_tool":
            return f"unsupported call: {request.tool}"
        if request.tool == "shell":
            seconds = round(0.05 + len(result.output) % 17 / 10, 1)
            return (
                f"Chunk ID: {self._ids.token('', 14)[:6]}\nWall time: {seconds} seconds\n"
                f"Process exited with code {result.exit_code}\nOutput:\n{result.output}\n"
            )
        code, path = 0, request.arguments["path"]
        output = f"Success. Updated the following files:\n{'M' if result.before else 'A'} {path}\n"
        if result.failed:
            code, output = 1, f"Failed to find expected lines in {path}:\n{result.text}\n"
        metadata = {"exit_code": code, "duration_seconds": 0.1}
        return msgspec.json.encode({"output": output, "metadata": metadata}).decode()

    def _count(self, event: SessionEvent, message: AgentMessage) -> None:
        used = {
            "input_tokens": self._context,
            "cached_input_tokens": self._context * 9 // 10,
            "output_tokens": event.output_tokens,
            "reasoning_output_tokens": estimate_tokens(message.thought) - 1,
            "total_tokens": self._context + event.output_tokens,
        }
        self._total = {name: self._total.get(name, 0) + count for name, count in used.items()}
        info = {"total_token_usage": self._total, "last_token_usage": used}
        self._event(event.at, "token_count", info=info | {"model_context_window": 272_000})

    def _message(self, at: float, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self._item(at, "message", role=role, content=[{"type": kind, "text": text}])

    def _item(self, at: float, kind: str, **payload: Any) -> None:
        self._append(at, "response_item", {"type": kind, **payload})

    def _event(self, at: float, kind: str, **payload: Any) -> None:
        self._append(at, "event_msg", {"type": kind, **payload})

    def _append(self, at: float, kind: str, payload: LogLine) -> None:
        self.lines.append({"timestamp": iso_time(at), "type": kind, "payload": payload})


def _is_patch(request: CallRequest) -> bool:
    return request.tool in ("write", "edit")


def _patch_text(request: CallRequest) -> str:
    """A write or an edit as input for `apply_patch`."""
    arguments = request.arguments
    if request.tool == "write":
        body = "".join(f"+{line}\n" for line in arguments["content"].splitlines())
        change = f"*** Add File: {arguments['path']}\n{body}"
    else:
        removed = "".join(f"-{line}\n" for line in arguments["old"].splitlines())
        added = "".join(f"+{line}\n" for line in arguments["new"].splitlines())
        change = f"*** Update File: {arguments['path']}\n@@\n{removed}{added}"
    return f"*** Begin Patch\n{change}*** End Patch"
