"""A played session as a Codex rollout: JSON lines of {timestamp, type, payload}.

Codex works through a shell: reading and searching are commands, and files are changed with
`apply_patch`. Newer sessions use `exec_command` and a tool of its own for patches.
"""

from typing import Any

import msgspec

from journeyman.testing.recording import Ids, estimate_tokens, heard_back, iso, joined, spoken
from journeyman.testing.script import Compressed, Heard, Played, Reply, Result, Turn
from journeyman.testing.workshop import WORK

MODEL = "gpt-5.2-codex"
VERSION = "0.104.0"

Line = dict[str, Any]


def roll_out(played: Played, *, unified_exec: bool) -> tuple[str, list[Line]]:
    """The id of the session and all lines that Codex would have written. With `unified_exec`
    the tools are those of newer versions.
    """
    writer = _Writer(Ids(played.script.name), played, unified_exec=unified_exec)
    writer.opening()
    for event in played.events:
        if isinstance(event, Heard):
            writer.user(event)
        elif isinstance(event, Turn):
            writer.turn(event)
        elif isinstance(event, Compressed):
            writer.compaction(event)
    return writer.session, writer.lines


class _Writer:
    """Appends lines and keeps the running token counts."""

    def __init__(self, ids: Ids, played: Played, *, unified_exec: bool) -> None:
        self._ids = ids
        self._played = played
        self._cwd = f"{WORK}/{played.script.project}"
        self._unified = unified_exec
        self._context = 9_000
        self._total = dict.fromkeys(_TOKENS, 0)
        self.session = ids.session
        self.lines: list[Line] = []

    def opening(self) -> None:
        at = self._played.started_at
        meta = {
            "id": self.session,
            "timestamp": iso(at),
            "cwd": self._cwd,
            "originator": "codex_cli_rs",
            "cli_version": VERSION,
            "instructions": None,
            "source": "cli",
            "model_provider": "openai",
            "git": {"branch": "main"},
        }
        self._append(at, "session_meta", meta)
        around = f"<environment_context>\n  <cwd>{self._cwd}</cwd>\n  <shell>bash</shell>\n"
        self._message(at, "user", around + "</environment_context>")

    def user(self, heard: Heard) -> None:
        self._context += estimate_tokens(heard.text)
        self._message(heard.at, "user", heard.text)
        said = {"type": "user_message", "message": heard.text, "images": []}
        self._append(heard.at, "event_msg", said)
        context = {
            "cwd": self._cwd,
            "approval_policy": "on-request",
            "sandbox_policy": {"mode": "workspace-write", "network_access": False},
            "model": MODEL,
            "effort": "medium",
            "summary": "auto",
        }
        self._append(heard.at, "turn_context", context)

    def turn(self, turn: Turn) -> None:
        act = turn.act
        if act.thought:
            self._event(turn.at, {"type": "agent_reasoning", "text": act.thought})
            summary = [{"type": "summary_text", "text": act.thought}]
            hidden = {"content": None, "encrypted_content": self._ids.scribble(900)}
            self._item(turn.at, {"type": "reasoning", "summary": summary, **hidden})
        if act.text:
            self._event(turn.at, {"type": "agent_message", "message": act.text})
            self._message(turn.at, "assistant", act.text)
        calls = [(reply, self._call(turn.at, reply)) for reply in turn.replies]
        self._count(turn)
        for reply, call in calls:
            if reply.result is None:
                self._event(reply.at, {"type": "turn_aborted", "reason": "interrupted"})
            else:
                kind = "custom_tool_call" if self._is_patch_tool(reply) else "function_call"
                output = {"type": f"{kind}_output", "call_id": call, "output": self._output(reply)}
                self._item(reply.at, output)

    def compaction(self, event: Compressed) -> None:
        self._append(event.at, "compacted", {"message": event.summary})
        self._event(event.at, {"type": "context_compacted"})
        self._context = 9_000 + estimate_tokens(event.summary)

    def _call(self, at: float, reply: Reply) -> str:
        call = self._ids.token("call_", 24)
        if self._is_patch_tool(reply):
            body = {"status": "completed", "name": "apply_patch", "input": patch(reply)}
            self._item(at, {"type": "custom_tool_call", **body, "call_id": call})
            return call
        name, arguments = self._function(reply)
        text = reply.ask.malformed or msgspec.json.encode(arguments).decode()
        body = {"name": name, "arguments": text, "call_id": call}
        self._item(at, {"type": "function_call", **body})
        return call

    def _is_patch_tool(self, reply: Reply) -> bool:
        return self._unified and reply.ask.tool in ("write", "edit")

    def _function(self, reply: Reply) -> tuple[str, Line]:
        ask = reply.ask
        name = "exec_command" if self._unified else "shell"
        if ask.tool in ("write", "edit"):
            return "shell", {"command": ["apply_patch", patch(reply)], "workdir": self._cwd}
        if ask.tool != "shell":
            return ask.tool, ask.arguments
        command = ask.arguments.get("command")
        if command is None:
            return name, ask.arguments
        if self._unified:
            return name, {"cmd": command, "workdir": self._cwd, "yield_time_ms": 10_000}
        return name, {"command": ["bash", "-lc", command], "workdir": self._cwd}

    def _output(self, reply: Reply) -> str:
        ask, result = reply.ask, reply.result
        assert result is not None
        if result.kind == "refused":
            return f"exec command rejected by user{f': {ask.said}' if ask.said else ''}"
        if result.kind == "unknown_tool":
            return f"unsupported call: {ask.tool}"
        if result.kind == "bad_arguments":
            column = len(msgspec.json.encode(ask.arguments))
            field = "cmd" if self._unified else "command"
            reason = f"missing field `{field}` at line 1 column {column}"
            return f"failed to parse function arguments: {reason}"
        output, code = _outcome(reply, result)
        seconds = round(0.05 + len(output) % 17 / 10, 1)
        if self._unified and ask.tool == "shell":
            return (
                f"Chunk ID: {self._ids.scribble(6).lower()}\nWall time: {seconds} seconds\n"
                f"Process exited with code {code}\nOutput:\n{output}"
            )
        metadata = {"exit_code": code, "duration_seconds": seconds}
        return msgspec.json.encode({"output": output, "metadata": metadata}).decode()

    def _count(self, turn: Turn) -> None:
        cached = self._context * 9 // 10
        used = {
            "input_tokens": self._context,
            "cached_input_tokens": cached,
            "output_tokens": spoken(turn),
            "reasoning_output_tokens": estimate_tokens(turn.act.thought) - 1,
        }
        used["total_tokens"] = used["input_tokens"] + used["output_tokens"]
        self._total = {name: self._total[name] + used[name] for name in _TOKENS}
        info = {
            "total_token_usage": self._total,
            "last_token_usage": used,
            "model_context_window": 272_000,
        }
        self._event(turn.at, {"type": "token_count", "info": info, "rate_limits": None})
        self._context += spoken(turn) + heard_back(turn)

    def _message(self, at: float, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text}]
        self._item(at, {"type": "message", "role": role, "content": content})

    def _item(self, at: float, payload: Line) -> None:
        self._append(at, "response_item", payload)

    def _event(self, at: float, payload: Line) -> None:
        self._append(at, "event_msg", payload)

    def _append(self, at: float, kind: str, payload: Line) -> None:
        self.lines.append({"timestamp": iso(at), "type": kind, "payload": payload})


_TOKENS = (
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)


def patch(reply: Reply) -> str:
    """A write or an edit in the form that `apply_patch` takes."""
    given = reply.ask.arguments
    if reply.ask.tool == "write":
        body = "".join(f"+{line}\n" for line in given["content"].splitlines())
        change = f"*** Add File: {given['path']}\n{body}"
    else:
        gone = "".join(f"-{line}\n" for line in given["old"].splitlines())
        come = "".join(f"+{line}\n" for line in given["new"].splitlines())
        change = f"*** Update File: {given['path']}\n@@\n{gone}{come}"
    return f"*** Begin Patch\n{change}*** End Patch"


def _outcome(reply: Reply, result: Result) -> tuple[str, int]:
    path = reply.ask.arguments.get("path", "")
    if result.exit_code is not None:
        return joined(result.text, result.errors) + "\n", result.exit_code
    if result.kind == "ok":
        mark = "A" if result.before is None else "M"
        return f"Success. Updated the following files:\n{mark} {path}\n", 0
    if result.kind == "missing_file":
        return f"Failed to read file to update {path}: No such file or directory (os error 2)\n", 1
    return f"Failed to find expected lines in {path}:\n{result.text}\n", 1
