"""A played session as a Claude Code transcript: JSON lines, one for each part of a message.

Results stand between the calls of one message, as Claude Code writes them; the results' details
(`toolUseResult`) are in `claude_code_results.py`. A subagent gets a transcript of its own.
"""

from typing import Any

import msgspec

from journeyman.testing.claude_code_results import (
    details,
    result_text,
    tool_input,
    tool_name,
)
from journeyman.testing.recording import Ids, estimate_tokens, heard_back, iso, joined, spoken
from journeyman.testing.script import Compressed, Heard, Played, Reply, Turn
from journeyman.testing.workshop import WORK

MODEL = "claude-opus-4-6"
VERSION = "2.1.160"

Line = dict[str, Any]


class Transcripts(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a session, and of each subagent by its id."""

    session: str
    stamp: str
    main: list[Line]
    subagents: dict[str, list[Line]]


def transcribe(played: Played) -> Transcripts:
    """All lines that Claude Code would have written."""
    writer = _Writer(Ids(played.script.name), played.script.project)
    writer.summary(played.script.title)
    writer.session_start(played.started_at)
    turn_began = played.started_at
    for event, following in zip(played.events, (*played.events[1:], None), strict=True):
        if isinstance(event, Heard):
            turn_began = event.at
            writer.user(event)
        elif isinstance(event, Compressed):
            writer.compaction(event)
        else:
            writer.turn(event)
            answered = not event.replies and (following is None or isinstance(following, Heard))
            if answered:
                writer.turn_duration(event.at, turn_began)
    writer.finish()
    return Transcripts(
        session=writer.ids.session,
        stamp=writer.ids.stamp,
        main=writer.lines,
        subagents=writer.subagents,
    )


class _Writer:
    """Appends lines; each hangs on the one before by `parentUuid`."""

    def __init__(self, ids: Ids, project: str, *, session: str = "", agent: str = "") -> None:
        self.ids = ids
        self.lines: list[Line] = []
        self.subagents: dict[str, list[Line]] = {}
        self._project = project
        self._session = session or ids.session
        self._agent = agent
        self._slug = f"{project}-{self._session[9:13]}-{self._session[14:18]}"
        self._parent: str | None = None
        self._context = 18_000
        self._fresh = 0

    def summary(self, title: str) -> None:
        """A title stands first and names the last message, so it is completed by `finish`."""
        self.lines.append({"type": "summary", "summary": title, "leafUuid": None})

    def finish(self) -> None:
        self.lines[0]["leafUuid"] = self._parent

    def session_start(self, at: float) -> None:
        hook = self.ids.uuid()
        data = {
            "type": "hook_progress",
            "hookEvent": "SessionStart",
            "hookName": "SessionStart:startup",
            "command": "sh ${CLAUDE_PROJECT_DIR}/.claude/hooks/session-start.sh",
        }
        self._append(
            at, {"type": "progress", "data": data, "parentToolUseID": hook, "toolUseID": hook}
        )

    def user(self, heard: Heard) -> None:
        uuid = self.ids.uuid()
        snapshot = {"messageId": uuid, "trackedFileBackups": {}, "timestamp": iso(heard.at)}
        if not self._agent:
            self.lines.append(
                {
                    "type": "file-history-snapshot",
                    "messageId": uuid,
                    "snapshot": snapshot,
                    "isSnapshotUpdate": False,
                }
            )
        self._fresh += estimate_tokens(heard.text)
        message = {"role": "user", "content": heard.text}
        self._append(heard.at, {"type": "user", "message": message}, uuid=uuid)

    def turn(self, turn: Turn) -> None:
        message = self.ids.token("msg_01", 22)
        request = self.ids.token("req_011C", 21)
        blocks: list[tuple[Line, Reply | None]] = []
        if turn.act.thought:
            signature = self.ids.scribble(700 + len(turn.act.thought) * 3)
            thinking = {"type": "thinking", "thinking": turn.act.thought, "signature": signature}
            blocks.append((thinking, None))
        if turn.act.text:
            blocks.append(({"type": "text", "text": turn.act.text}, None))
        for reply in turn.replies:
            use = {
                "type": "tool_use",
                "id": self.ids.token("toolu_01", 22),
                "name": tool_name(reply.ask),
                "input": tool_input(reply.ask, turn.act.text),
            }
            blocks.append((use, reply))
        usage = self._usage(turn)
        for number, (block, answer) in enumerate(blocks):
            last = number == len(blocks) - 1
            body = self._assistant(message, request, block, usage, last=last)
            asking = self._append(turn.at, body)
            if answer is not None:
                self._progress(answer, block["id"])
                self._result(answer, block["id"], asking, turn)
        self._fresh += heard_back(turn)

    def compaction(self, event: Compressed) -> None:
        logical, self._parent = self._parent, None
        boundary = {
            "logicalParentUuid": logical,
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "auto", "preTokens": self._context + self._fresh},
        }
        self._append(event.at, boundary)
        text = (
            "This session is being continued from a previous conversation that ran out of context."
            f" The conversation is summarized below:\n{event.summary}"
        )
        self._append(
            event.at,
            {
                "type": "user",
                "message": {"role": "user", "content": text},
                "isVisibleInTranscriptOnly": True,
                "isCompactSummary": True,
            },
        )
        self._context, self._fresh = 18_000, estimate_tokens(text)

    def turn_duration(self, at: float, began: float) -> None:
        duration = {"durationMs": round((at - began) * 1000), "isMeta": False}
        self._append(at, {"type": "system", "subtype": "turn_duration", **duration})

    def _append(self, at: float, body: Line, uuid: str = "") -> str:
        uuid = uuid or self.ids.uuid()
        line: Line = {
            "parentUuid": self._parent,
            "isSidechain": bool(self._agent),
            "userType": "external",
            "cwd": f"{WORK}/{self._project}",
            "sessionId": self._session,
            "version": VERSION,
            "gitBranch": "main",
            "slug": self._slug,
        }
        if self._agent:
            line["agentId"] = self._agent
        line |= body
        line |= {"uuid": uuid, "timestamp": iso(at)}
        self.lines.append(line)
        if line["type"] != "progress":
            self._parent = uuid
        return uuid

    def _usage(self, turn: Turn) -> Line:
        written, read = self._fresh, self._context
        self._context += self._fresh
        self._fresh = 0
        return {
            "input_tokens": 3,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": spoken(turn),
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "inference_geo": "not_available",
        }

    def _assistant(
        self, message: str, request: str, block: Line, usage: Line, *, last: bool
    ) -> Line:
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        return {
            "message": {
                "model": MODEL,
                "id": message,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": stop if last else None,
                "stop_sequence": None,
                "usage": usage if last else {**usage, "output_tokens": 2},
            },
            "requestId": request,
            "type": "assistant",
        }

    def _progress(self, reply: Reply, tool_use: str) -> None:
        result = reply.result
        if result is None or result.exit_code is None:
            return
        output = joined(result.text, result.errors)
        lines = output.splitlines()
        if len(lines) < 25:
            return
        data = {
            "type": "bash_progress",
            "output": "\n".join(lines[-5:]),
            "fullOutput": output,
            "elapsedTimeSeconds": 2,
            "totalLines": len(lines),
        }
        ids = {"toolUseID": f"bash-progress-{len(self.lines)}", "parentToolUseID": tool_use}
        self._append(reply.at, {"type": "progress", "data": data, **ids})

    def _result(self, reply: Reply, tool_use: str, asking: str, turn: Turn) -> None:
        if reply.result is None:
            return
        if reply.inner:
            self._subagent(reply, tool_use)
        text = result_text(reply, [other for other in turn.replies if other is not reply])
        block: Line = {"tool_use_id": tool_use, "type": "tool_result", "content": text}
        bad = reply.result.kind != "ok"
        if bad or reply.ask.tool == "shell":
            block["is_error"] = bad
        if reply.inner:
            block["content"] = [{"type": "text", "text": text}]
        more = details(reply, text, agent=self._agent_of(tool_use), tokens=self._context)
        body = {"message": {"role": "user", "content": [block]}, "toolUseResult": more}
        self._append(reply.at, {"type": "user", **body, "sourceToolAssistantUUID": asking})
        if reply.result.kind == "refused" and not reply.ask.said:
            stopped = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
            self._append(
                reply.at, {"type": "user", "message": {"role": "user", "content": stopped}}
            )

    def _agent_of(self, tool_use: str) -> str:
        return f"a{tool_use[-16:-8]}{self.ids.stamp}"

    def _subagent(self, reply: Reply, tool_use: str) -> None:
        agent = self._agent_of(tool_use)
        writer = _Writer(self.ids, self._project, session=self._session, agent=agent)
        began = reply.inner[0].at - 1
        writer.user(Heard(at=began, text=reply.ask.arguments["prompt"]))
        for turn in reply.inner:
            writer.turn(turn)
        self.subagents[agent] = writer.lines
        for line in writer.lines:
            kept = ("type", "message", "toolUseResult", "uuid", "timestamp")
            shown = {name: line[name] for name in kept if name in line}
            data = {"type": "agent_progress", "message": shown, "prompt": "", "agentId": agent}
            ids = {"toolUseID": f"agent_{line['uuid']}", "parentToolUseID": tool_use}
            self._append(reply.at, {"type": "progress", "data": data, **ids})


def encode_lines(lines: list[Line]) -> bytes:
    """Lines as the bytes of a JSONL file."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
