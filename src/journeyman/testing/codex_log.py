"""A played session as a Codex rollout: JSON lines of {timestamp, type, payload}. Reading and
searching are commands, and files are changed with `apply_patch`.
"""

from typing import Any

import msgspec

from journeyman.testing.script import (
    Act,
    Ask,
    Compress,
    Event,
    Ids,
    Played,
    Result,
    UserSays,
    estimate_tokens,
    iso,
)
from journeyman.testing.workshop import WORK

_MODEL = "gpt-5.2-codex"
_SYSTEM_TOKENS = 9_000

Line = dict[str, Any]


def roll_out(played: Played) -> tuple[str, list[Line]]:
    """The id of the session and all lines that Codex would have written."""
    ids = Ids(played.script.name)
    writer = _Writer(ids, f"{WORK}/{played.script.project}")
    writer.begin(played.events[0].at)
    for event in played.events:
        writer.event(event)
    return ids.session, writer.lines


class _Writer:
    """Appends lines and keeps the running token counts."""

    def __init__(self, ids: Ids, cwd: str) -> None:
        self._ids = ids
        self._cwd = cwd
        self._context = _SYSTEM_TOKENS
        self._total: dict[str, int] = {}
        self.lines: list[Line] = []

    def begin(self, at: float) -> None:
        meta = {
            "id": self._ids.session,
            "timestamp": iso(at),
            "cwd": self._cwd,
            "originator": "codex_cli_rs",
            "cli_version": "0.104.0",
            "instructions": None,
            "source": "cli",
            "model_provider": "openai",
            "git": {"branch": "main"},
        }
        self._append(at, "session_meta", meta)
        around = f"<environment_context>\n  <cwd>{self._cwd}</cwd>\n  <shell>bash</shell>\n"
        self._message(at, "user", around + "</environment_context>")

    def event(self, event: Event) -> None:
        if isinstance(event.step, UserSays):
            self._message(event.at, "user", event.step.text)
            self._event(event.at, "user_message", message=event.step.text, images=[])
            context = {"cwd": self._cwd, "approval_policy": "on-request", "model": _MODEL}
            self._append(event.at, "turn_context", context)
        elif isinstance(event.step, Compress):
            self._append(event.at, "compacted", {"message": event.step.summary})
            self._event(event.at, "context_compacted")
            self._context = _SYSTEM_TOKENS
        else:
            self._turn(event, event.step)
        self._context += event.spoken_tokens + event.heard_tokens

    def _turn(self, event: Event, act: Act) -> None:
        if act.thought:
            self._event(event.at, "agent_reasoning", text=act.thought)
            summary = [{"type": "summary_text", "text": act.thought}]
            hidden = self._ids.token("", 64) * 14
            self._item(event.at, "reasoning", summary=summary, encrypted_content=hidden)
        if act.text:
            self._event(event.at, "agent_message", message=act.text)
            self._message(event.at, "assistant", act.text)
        calls = [(reply, self._call(event.at, reply.ask)) for reply in event.replies]
        self._count(event, act)
        for reply, call in calls:
            if reply.result is None:
                self._event(reply.at, "turn_aborted", reason="interrupted")
            else:
                kind = "custom_tool_call_output" if _patches(reply.ask) else "function_call_output"
                output = self._output(reply.ask, reply.result)
                self._item(reply.at, kind, call_id=call, output=output)

    def _call(self, at: float, ask: Ask) -> str:
        call = self._ids.token("call_", 24)
        if _patches(ask):
            patch = {"name": "apply_patch", "input": _patch(ask), "status": "completed"}
            self._item(at, "custom_tool_call", call_id=call, **patch)
            return call
        name, arguments = ask.tool, ask.arguments
        if ask.tool == "shell":
            name, arguments = "exec_command", {"cmd": ask.arguments["command"]}
        text = msgspec.json.encode(arguments | {"workdir": self._cwd}).decode()
        self._item(at, "function_call", name=name, arguments=text, call_id=call)
        return call

    def _output(self, ask: Ask, result: Result) -> str:
        if result.kind == "refused":
            return f"exec command rejected by user: {ask.said}"
        if result.kind == "unknown_tool":
            return f"unsupported call: {ask.tool}"
        if ask.tool == "shell":
            seconds = round(0.05 + len(result.output) % 17 / 10, 1)
            return (
                f"Chunk ID: {self._ids.token('', 14)[:6]}\nWall time: {seconds} seconds\n"
                f"Process exited with code {result.exit_code}\nOutput:\n{result.output}\n"
            )
        code, path = 0, ask.arguments["path"]
        output = f"Success. Updated the following files:\n{'M' if result.before else 'A'} {path}\n"
        if result.failed:
            code, output = 1, f"Failed to find expected lines in {path}:\n{result.text}\n"
        metadata = {"exit_code": code, "duration_seconds": 0.1}
        return msgspec.json.encode({"output": output, "metadata": metadata}).decode()

    def _count(self, event: Event, act: Act) -> None:
        used = {
            "input_tokens": self._context,
            "cached_input_tokens": self._context * 9 // 10,
            "output_tokens": event.spoken_tokens,
            "reasoning_output_tokens": estimate_tokens(act.thought) - 1,
            "total_tokens": self._context + event.spoken_tokens,
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

    def _append(self, at: float, kind: str, payload: Line) -> None:
        self.lines.append({"timestamp": iso(at), "type": kind, "payload": payload})


def _patches(ask: Ask) -> bool:
    return ask.tool in ("write", "edit")


def _patch(ask: Ask) -> str:
    """A write or an edit in the form that `apply_patch` takes."""
    given = ask.arguments
    if ask.tool == "write":
        body = "".join(f"+{line}\n" for line in given["content"].splitlines())
        change = f"*** Add File: {given['path']}\n{body}"
    else:
        gone = "".join(f"-{line}\n" for line in given["old"].splitlines())
        come = "".join(f"+{line}\n" for line in given["new"].splitlines())
        change = f"*** Update File: {given['path']}\n@@\n{gone}{come}"
    return f"*** Begin Patch\n{change}*** End Patch"
