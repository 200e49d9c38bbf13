"""Reader for the sessions of the pi coding agent (`~/.pi/agent/sessions/--path--/*.jsonl`). The
entries form a tree: when the user goes back to an earlier entry, what follows it is undone. A fork
repeats its parent's entries.
"""

import re
from collections.abc import Iterator
from typing import Any

from journeyman.logs.fields import (
    as_text,
    only_object,
    only_text,
    path_id,
    seconds,
    tool_call,
    whole_number,
)
from journeyman.logs.fragments import RUNNING, EventLog, LineSession
from journeyman.logs.line_reader import BadLine, Line
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Lineage,
    LogEvent,
    LogState,
    MessageKind,
    ResultFlags,
    SessionId,
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

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        return _Entries(log).events()


def _is_header(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") == "session"
        and {"id", "timestamp", "cwd"} <= value.keys()
    )


class _Entries(EventLog):
    """Turns the entries of one session file into a session. `_offsets` are those of the entries by
    id; the current entry stands at `_line`.
    """

    _line: Line
    _at: float | None = None
    _model = ""
    _last = ""

    def __init__(self, log: LogFile) -> None:
        super().__init__(log, PiReader.name)
        self._offsets: dict[str, int] = {}

    def read(self, value: dict[str, Any], line: Line) -> None:
        self._line, self._at = line, seconds(value.get("timestamp"))
        session = self.open_session(only_text(value.get("id")) or path_id(self.log))
        if _is_header(value):
            session.facts.update(cwd=only_text(value.get("cwd")), started_at=self._at)
            if found := _SESSION_FILE.search(only_text(value.get("parentSession"))):
                session.facts["lineage"] = Lineage(parent=SessionId(found[1]), kind="branch")
            return
        self._follow_tree(session, value)
        self._read_entry(session, value)

    def _follow_tree(self, session: LineSession, entry: dict[str, Any]) -> None:
        """Remember the entry, and mark as undone what the user left by going back."""
        id_, parent = only_text(entry.get("id")), only_text(entry.get("parentId"))
        if parent in self._offsets and parent != self._last:
            # The offsets are in order: the first one after the parent's starts what is undone.
            start = next(at for at in self._offsets.values() if at > self._offsets[parent])
            session.undo(start, self._line.offset)
        if id_:
            self._offsets[id_] = self._line.offset
            self._last = id_

    def _read_entry(self, session: LineSession, entry: dict[str, Any]) -> None:
        kind = entry.get("type")
        if kind == "message":
            if not isinstance(entry.get("message"), dict):
                raise BadLine("a message entry has no message")
            self._read_message(session, entry["message"])
        elif kind in ("compaction", "branch_summary"):
            session.generation += kind == "compaction"
            text = as_text(entry.get("summary"))
            self._add_note(session, text, "summary" if kind == "compaction" else "harness")
        elif kind == "custom_message":
            self._add_note(session, as_text(entry.get("content")), "harness")
        elif kind == "model_change":
            self._model = session.facts["model"] = only_text(entry.get("modelId"))
        elif kind == "session_info":
            session.facts["title"] = only_text(entry.get("name"))

    def _read_message(self, session: LineSession, message: dict[str, Any]) -> None:
        role, text = only_text(message.get("role")), as_text(message.get("content"))
        if role == "user":
            self._add_note(session, text, "plain")
            session.facts["end_reason"] = RUNNING
        elif role == "assistant":
            self._read_answer(session, message)
        elif role == "toolResult":
            self._read_result(session, message, text)
        elif role == "bashExecution":
            command = as_text(message.get("command"))
            output = as_text(message.get("output"))
            self._add_note(session, f"The user ran: {command}\n{output}", "harness")
        elif role in ("custom", "hookMessage"):
            self._add_note(session, text, "harness")
        else:
            raise BadLine(f"a message has the unknown role {role[:40]!r}")

    def _add_note(self, session: LineSession, text: str, kind: MessageKind) -> None:
        session.add(self._line, at=self._at, role="user", text=text, kind=kind)

    def _read_answer(self, session: LineSession, message: dict[str, Any]) -> None:
        content = message.get("content")
        texts, thoughts, calls = [], [], []
        for block in content if isinstance(content, list) else [content]:
            fields = only_object(block)
            if fields.get("type") == "toolCall":
                call = tool_call(fields.get("id"), fields.get("name"), fields.get("arguments"))
                calls.append(call)
            elif fields.get("type") == "thinking":
                thoughts.append(as_text(fields.get("thinking")))
            else:
                texts.append(as_text(block))
        model = only_text(message.get("model")) or self._model
        reason = session.facts["end_reason"] = only_text(message.get("stopReason"))
        text, reasoning = "\n".join(filter(None, texts)), "\n".join(filter(None, thoughts))
        if text or reasoning or calls:
            session.add(
                self._line,
                at=self._at,
                role="assistant",
                text=text,
                reasoning=reasoning,
                tool_calls=tuple(calls),
                model=model,
                finish_reason=reason,
            )
        usage = message.get("usage")
        if isinstance(usage, dict) and usage.get("totalTokens") != 0:
            session.add_usage(_usage(usage, f"@{self._line.offset}", self._at, model))

    def _read_result(self, session: LineSession, message: dict[str, Any], text: str) -> None:
        call_id, is_error = only_text(message.get("toolCallId")), message.get("isError")
        if not call_id:
            raise BadLine("a tool result has no call id")
        recorded = ResultFlags(is_error=is_error) if isinstance(is_error, bool) else None
        if is_error is True and text == _BLOCKED:
            recorded = ResultFlags(status="denied")
        session.add(
            self._line,
            at=self._at,
            role="tool",
            text=text,
            tool_call_id=call_id,
            tool_name=only_text(message.get("toolName")),
            recorded=recorded,
        )


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
