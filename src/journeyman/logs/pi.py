"""Reader for the sessions of the pi coding agent (`~/.pi/agent/sessions/--path--/*.jsonl`). The
entries form a tree: when the user goes back to an earlier entry, what follows it is undone. A fork
repeats its parent's entries.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from journeyman.logs.fields import (
    as_json,
    as_text,
    only_object,
    only_text,
    path_id,
    seconds,
    whole_number,
)
from journeyman.logs.line_reader import BadLine, Line, memory_of, read_resumable
from journeyman.logs.line_session import RUNNING, LineSession
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Lineage,
    LogEvent,
    LogState,
    ResultFlags,
    SessionId,
    ToolCall,
    Usage,
)

_BLOCKED = "Tool execution was blocked"
"""The result of a call that an extension blocked without giving a reason."""

_SESSION_FILE = re.compile(r"[^/\\]*_([0-9a-f-]{36})\.jsonl\Z")


class PiReader:
    """Reads the sessions of pi."""

    name = "pi"
    about = "pi coding agent sessions (~/.pi/agent/sessions/**/*.jsonl)"

    def recognises(self, log: LogFile) -> bool:
        return log.is_object and any(_is_header(value) for value in log.first_lines[:1])

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Read the file's only session, from where the last read ended."""
        return read_resumable(self.name, log, since, _TreeState, lambda saved: _Entries(log, saved))


def _is_header(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") == "session"
        and {"id", "timestamp", "cwd"} <= value.keys()
    )


class _TreeState(Struct):
    """State needed to resume reading. `entries` are the offsets of the entries by id."""

    session: str = ""
    model: str = ""
    generation: int = 0
    entries: dict[str, int] = {}
    last: str = ""


class _Entries:
    """Turns the entries of one session file into a session."""

    def __init__(self, log: LogFile, saved: _TreeState | None) -> None:
        self.ready: list[LogEvent] = []
        self._log = log
        self._state = saved or _TreeState()
        self._offsets = sorted(self._state.entries.values())
        self._resumed = saved is not None
        self._session: LineSession | None = None

    def memory(self) -> dict[str, Any]:
        return memory_of(self._state)

    def close(self, read_bytes: int) -> Iterator[LogEvent]:
        if self._session is not None:
            yield from self._session.fragments(read_bytes)

    def handle(self, value: Any, line: Line) -> None:
        """Process one entry. Raises BadLine."""
        if not isinstance(value, dict):
            raise BadLine(f"expected a JSON object, found {type(value).__name__}")
        if self._session is None:
            self._state.session = (
                self._state.session or only_text(value.get("id")) or path_id(self._log)
            )
            self._session = LineSession(
                self._log, PiReader.name, self._state.session, resumed=self._resumed
            )
        if _is_header(value):
            self._read_header(self._session, value)
            return
        self._follow_tree(self._session, value, line)
        self._read_entry(self._session, value, line)
        if line.whole and self._session.is_full:
            self.ready += self._session.fragments(line.offset)

    def _read_header(self, session: LineSession, header: dict[str, Any]) -> None:
        session.facts["cwd"] = only_text(header.get("cwd"))
        session.facts["started_at"] = seconds(header.get("timestamp"))
        parent = only_text(header.get("parentSession"))
        if found := _SESSION_FILE.search(parent):
            session.facts["lineage"] = Lineage(parent=SessionId(found[1]), kind="branch")

    def _follow_tree(self, session: LineSession, entry: dict[str, Any], line: Line) -> None:
        """Remember the entry, and mark as undone what the user left by going back."""
        entries, parent = self._state.entries, only_text(entry.get("parentId"))
        if parent in entries and parent != self._state.last:
            following = bisect_right(self._offsets, entries[parent])
            session.undo(self._offsets[following], line.offset)
        if id_ := only_text(entry.get("id")):
            entries[id_] = line.offset
            self._offsets.append(line.offset)
            self._state.last = id_

    def _read_entry(self, session: LineSession, entry: dict[str, Any], line: Line) -> None:
        kind, at = entry.get("type"), seconds(entry.get("timestamp"))
        if kind == "message":
            if not isinstance(entry.get("message"), dict):
                raise BadLine("a message entry has no message")
            self._read_message(session, entry["message"], at, line)
        elif kind == "compaction":
            self._state.generation += 1
            text = as_text(entry.get("summary"))
            self._add(session, line, at, role="user", text=text, kind="summary")
        elif kind == "branch_summary":
            text = as_text(entry.get("summary"))
            self._add(session, line, at, role="user", text=text, kind="harness")
        elif kind == "custom_message":
            text = as_text(entry.get("content"))
            self._add(session, line, at, role="user", text=text, kind="harness")
        elif kind == "model_change":
            self._state.model = only_text(entry.get("modelId"))
            session.facts["model"] = self._state.model
        elif kind == "session_info":
            session.facts["title"] = only_text(entry.get("name"))

    def _read_message(
        self, session: LineSession, message: dict[str, Any], at: float | None, line: Line
    ) -> None:
        role = only_text(message.get("role"))
        if role == "user":
            self._add(session, line, at, role="user", text=as_text(message.get("content")))
            session.facts["end_reason"] = RUNNING
        elif role == "assistant":
            self._read_answer(session, message, at, line)
        elif role == "toolResult":
            self._read_result(session, message, at, line)
        elif role == "bashExecution":
            self._read_user_command(session, message, at, line)
        elif role in ("custom", "hookMessage"):
            text = as_text(message.get("content"))
            self._add(session, line, at, role="user", text=text, kind="harness")
        else:
            raise BadLine(f"a message has the unknown role {role[:40]!r}")

    def _read_answer(
        self, session: LineSession, message: dict[str, Any], at: float | None, line: Line
    ) -> None:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        texts, thoughts, calls = [], [], []
        for block in blocks:
            fields = only_object(block)
            if fields.get("type") == "toolCall":
                arguments = as_json(fields.get("arguments", {}))
                name = only_text(fields.get("name"))
                calls.append(
                    ToolCall(id=only_text(fields.get("id")), name=name, arguments=arguments)
                )
            elif fields.get("type") == "thinking":
                thoughts.append(as_text(fields.get("thinking")))
            else:
                texts.append(as_text(block))
        model = only_text(message.get("model")) or self._state.model
        reason = only_text(message.get("stopReason"))
        text, reasoning = "\n".join(filter(None, texts)), "\n".join(filter(None, thoughts))
        session.facts["end_reason"] = reason
        if text or reasoning or calls:
            self._add(
                *(session, line, at),
                role="assistant",
                text=text,
                reasoning=reasoning,
                tool_calls=tuple(calls),
                model=model,
                finish_reason=reason,
            )
        usage = message.get("usage")
        if isinstance(usage, dict) and usage.get("totalTokens") != 0:
            session.add_usage(_usage(usage, f"@{line.offset}", at, model))

    def _read_result(
        self, session: LineSession, message: dict[str, Any], at: float | None, line: Line
    ) -> None:
        call_id = only_text(message.get("toolCallId"))
        if not call_id:
            raise BadLine("a tool result has no call id")
        text, is_error = as_text(message.get("content")), message.get("isError")
        recorded = ResultFlags(is_error=is_error) if isinstance(is_error, bool) else None
        if is_error is True and text == _BLOCKED:
            recorded = ResultFlags(status="denied")
        self._add(
            *(session, line, at),
            role="tool",
            text=text,
            tool_call_id=call_id,
            tool_name=only_text(message.get("toolName")),
            recorded=recorded,
        )

    def _read_user_command(
        self, session: LineSession, message: dict[str, Any], at: float | None, line: Line
    ) -> None:
        """Read a command that the user ran: a call, but not the agent's."""
        arguments = as_json({"command": as_text(message.get("command"))})
        call = ToolCall(id=f"user@{line.offset}", name="bash", arguments=arguments)
        self._add(session, line, at, role="user", kind="harness", tool_calls=(call,))
        code = whole_number(message.get("exitCode"))
        interrupted = True if message.get("cancelled") is True else None
        self._add(
            *(session, line, at),
            role="tool",
            text=as_text(message.get("output")),
            tool_call_id=call.id,
            tool_name=call.name,
            recorded=ResultFlags(exit_code=code, interrupted=interrupted),
        )

    def _add(self, session: LineSession, line: Line, at: float | None, **fields: Any) -> None:
        session.add(line, at=at, generation=self._state.generation, **fields)


def _usage(usage: dict[str, Any], key: str, at: float | None, model: str) -> Usage:
    # pi records 0 for a model whose price it does not know.
    cost = only_object(usage.get("cost")).get("total") or None
    return Usage(
        key=key,
        model=model,
        at=at,
        input_tokens=whole_number(usage.get("input")),
        output_tokens=whole_number(usage.get("output")),
        cache_read_tokens=whole_number(usage.get("cacheRead")),
        cache_write_tokens=whole_number(usage.get("cacheWrite")),
        cost_usd=cost,
        cost_origin="" if cost is None else "estimated",
    )
