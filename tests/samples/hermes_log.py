"""Writes played sessions as a Hermes `state.db`, schema version 30, and as OpenAI chat messages.
Compression is recorded by rotation (the session ends and a child continues) or in place (old rows
are archived, and the last ones are copied after a summary row).
"""

import difflib
import hashlib
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
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
)
from tests.samples.workshop import WORK

_MODEL = "hermes-4-405b"
_PROMPT = (
    "You are Hermes, an agent in a terminal. Use your tools to do what the user asks; say what "
    "you found and what you changed."
)
_PROMPT_HASH = hashlib.sha256(_PROMPT.encode()).hexdigest()
_TAIL_ROWS = 4
_SCHEMA = Path(__file__).parent / "hermes_schema.sql"
_NAMES = {
    "shell": "terminal",
    "read": "read_file",
    "write": "write_file",
    "edit": "patch",
    "search": "search_files",
}
_PARAMETERS = {"old": "old_string", "new": "new_string"}

Row = dict[str, Any]


class HermesSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the database: its events, and its parent."""

    id: str
    played: PlayedSession
    events: tuple[SessionEvent, ...]
    parent: str = ""
    rotated: bool = False


def split_sessions(played: PlayedSession, *, rotate: bool) -> list[HermesSession]:
    """Return one session; with `rotate`, split it at every compression."""
    parts: list[list[SessionEvent]] = [[]]
    for event in played.events:
        if rotate and isinstance(event.step, Compression):
            parts.append([])
        parts[-1].append(event)
    sessions: list[HermesSession] = []
    for number, events in enumerate(parts):
        started = datetime.fromtimestamp(events[0].at, UTC)
        sessions.append(
            HermesSession(
                id=f"{started:%Y%m%d_%H%M%S}_{SessionIds(f'{played.script.name} {number}').stamp}",
                played=played,
                events=tuple(events),
                parent=sessions[-1].id if sessions else "",
                rotated=number < len(parts) - 1,
            )
        )
    return sessions


def write_state(file: Path, sessions: Sequence[HermesSession]) -> None:
    """Write the database, replacing an existing one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    database = sqlite3.connect(file)
    database.executescript(_SCHEMA.read_text("utf-8"))
    database.execute("INSERT INTO schema_version VALUES (30)")
    _insert(database, "system_prompts", {"hash": _PROMPT_HASH, "prompt": _PROMPT})
    for session in sessions:
        rows = _message_rows(session)
        _insert(database, "sessions", _session_row(session, rows))
        for row in rows:
            _insert(database, "messages", row)
        for usage in _usage_rows(session):
            _insert(database, "session_model_usage", usage)
    database.commit()
    database.close()


def chat_record(played: PlayedSession) -> Row:
    """Return {"id", "model", "messages", "reward"}, as trainers and evaluation tools write it."""
    (session,) = split_sessions(played, rotate=False)
    messages: list[Row] = [{"role": "system", "content": _PROMPT}]
    for row in _message_rows(session):
        message = {"role": row["role"], "content": row["content"]}
        if row.get("tool_calls"):
            message["tool_calls"] = json.loads(row["tool_calls"])
        if row["role"] == "tool":
            message["tool_call_id"] = row["tool_call_id"]
        messages.append(message)
    reward = played.script.reward
    return {"id": session.id, "model": "gpt-4.1-mini", "messages": messages, "reward": reward}


def _insert(database: sqlite3.Connection, table: str, row: Row) -> None:
    names, marks = ", ".join(row), ", ".join("?" for _ in row)
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"
    database.execute(statement, tuple(row.values()))


def _message_rows(session: HermesSession) -> list[Row]:
    """The message rows of a session in the order of their ids."""
    ids = SessionIds(f"hermes {session.id}")
    rows: list[Row] = []
    for event in session.events:
        row: Row = {"session_id": session.id, "role": "user", "timestamp": event.at}
        if isinstance(event.step, UserMessage):
            rows.append(row | {"content": event.step.text})
        elif isinstance(event.step, AgentMessage):
            rows += _turn_rows(row, event, event.step, ids)
        else:
            tail = [dict(row) for row in rows[-_TAIL_ROWS:]]
            for archived in rows:
                archived |= {"active": 0, "compacted": 1}
            text = (
                "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n\n"
                f"{event.step.summary}\n\n--- END OF CONTEXT SUMMARY — respond to the message "
                "below, not the summary above ---"
            )
            rows.append(row | {"content": text, "_compressed_summary": 1})
            rows += tail
    return rows


def _turn_rows(row: Row, event: SessionEvent, message: AgentMessage, ids: SessionIds) -> list[Row]:
    tool_calls, results = [], []
    for call in event.calls:
        call_id, name = ids.token("call_", 24), _name(call.request)
        arguments = {
            _PARAMETERS.get(key, key): value for key, value in call.request.arguments.items()
        }
        if call.request.tool == "edit":
            arguments = {"mode": "replace", **arguments}
        elif call.request.tool == "search":
            arguments["target"] = "content"
        function = {"name": name, "arguments": json.dumps(arguments)}
        tool_calls.append({"id": call_id, "type": "function", "function": function})
        if call.result is None:
            continue
        answer = {"role": "tool", "timestamp": call.at, "tool_call_id": call_id, "tool_name": name}
        answer["content"] = _content(call.request, call.result)
        answer["effect_disposition"] = "none" if call.result.kind == "refused" else None
        results.append(row | answer)
    reply = {
        "role": "assistant",
        "content": message.text,
        "tool_calls": json.dumps(tool_calls) if tool_calls else None,
        "finish_reason": "tool_calls" if tool_calls else "stop",
        "reasoning": message.thought or None,
        "token_count": event.output_tokens,
    }
    return [row | reply, *results]


def _session_row(session: HermesSession, rows: list[Row]) -> Row:
    turns = [event for event in session.events if isinstance(event.step, AgentMessage)]
    lost = any(call.result is None for turn in turns for call in turn.calls)
    title = session.played.script.title
    return {
        "id": session.id,
        "source": "cli",
        "model": _MODEL,
        "model_config": json.dumps({"provider": "openrouter"}),
        "system_prompt_hash": _PROMPT_HASH,
        "parent_session_id": session.parent or None,
        "started_at": session.events[0].at,
        "ended_at": None if lost else session.events[-1].at + 30,
        "end_reason": "compression" if session.rotated else None if lost else "cli_close",
        "message_count": sum(row.get("active", 1) for row in rows),
        "tool_call_count": sum(len(turn.calls) for turn in turns),
        **_tokens(turns),
        "cwd": f"{WORK}/{session.played.script.project}",
        "git_branch": "main",
        "title": f"{title} #2" if session.parent else title,
        "api_call_count": len(turns),
    }


def _tokens(turns: Sequence[SessionEvent]) -> Row:
    """Token totals of a session; each request reads the earlier context from the cache."""
    context, fresh, read = 6_000, 0, 0
    for turn in turns:
        read += context
        context += turn.output_tokens + turn.input_tokens
        fresh += 40 + turn.input_tokens
    return {
        "input_tokens": fresh,
        "output_tokens": sum(turn.output_tokens for turn in turns),
        "cache_read_tokens": read,
    }


def _usage_rows(session: HermesSession) -> list[Row]:
    turns = [event for event in session.events if isinstance(event.step, AgentMessage)]
    times = {"first_seen": session.events[0].at, "last_seen": session.events[-1].at}
    where = {"session_id": session.id, "model": _MODEL, "billing_provider": "openrouter", **times}
    rows = [{**where, "task": "", "api_call_count": len(turns), **_tokens(turns)}]
    for event in session.events:
        if isinstance(event.step, Compression):
            used = {"input_tokens": 41_000, "output_tokens": estimate_tokens(event.step.summary)}
            rows.append({**where, "task": "compression", "api_call_count": 1, **used})
    return rows


def _name(request: CallRequest) -> str:
    return _NAMES.get(request.tool, request.tool)


def _content(request: CallRequest, result: CallResult) -> str:
    """The content of the tool row."""
    if result.kind == "unknown_tool":
        known = ", ".join(sorted(_NAMES.values()))
        return f"Tool '{request.tool}' does not exist. Available tools: {known}"
    worked = result.kind == "ok" or result.exit_code is not None
    answer = _success_content(request, result) if worked else _error_content(request, result)
    return json.dumps(answer, ensure_ascii=False)


def _error_content(request: CallRequest, result: CallResult) -> Row:
    if result.kind == "bad_arguments":
        return {"error": f"Tool execution failed: {_name(request)}: Missing: {result.text}"}
    if result.kind == "refused":
        error = f"BLOCKED: User denied this command. {request.refusal}"
        return {"output": "", "exit_code": -1, "error": error, "status": "blocked"}
    if result.kind == "missing_file" and request.tool == "search":
        return {"total_count": 0, "error": f"Path not found: {result.text}"}
    if result.kind == "missing_file":
        return {"error": f"File not found: {result.text}", "similar_files": []}
    error = "Could not find a match for old_string in the file"
    if result.kind == "many_matches":
        error = f"Found {result.matches} matches for old_string. Provide more context."
    return {"success": False, "error": error}


def _success_content(request: CallRequest, result: CallResult) -> Row:
    if request.tool == "shell":
        return {"output": result.output, "exit_code": result.exit_code, "error": None}
    path = request.arguments["path"]
    if request.tool == "read":
        lines = result.text.splitlines()
        content = "\n".join(f"{number}|{line}" for number, line in enumerate(lines, 1))
        size = len(result.text.encode())
        return {"content": content, "total_lines": len(lines), "file_size": size}
    if request.tool == "write":
        return {"bytes_written": len(result.after.encode()), "files_modified": [path]}
    if request.tool == "edit":
        old, new = (result.before or "").splitlines(), result.after.splitlines()
        diff = "\n".join(difflib.unified_diff(old, new, f"a{path}", f"b{path}", lineterm=""))
        return {"success": True, "diff": diff, "files_modified": [path]}
    hits = [line.split(":", 2) for line in result.text.splitlines()]
    matches = [{"path": p, "line": int(number), "content": text} for p, number, text in hits]
    return {"total_count": result.matches, "matches": matches}
