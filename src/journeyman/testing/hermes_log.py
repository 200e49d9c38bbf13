"""Played sessions as a Hermes `state.db`, schema version 30, and as OpenAI chat messages.
Compression is recorded by rotation (the session ends and a child goes on) and in place (old rows
are archived, the tail is copied behind a summary row).
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
)
from journeyman.testing.workshop import WORK

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
    """A session as it stands in the database: the events that belong to it, and its parent."""

    id: str
    played: Played
    events: tuple[Event, ...]
    parent: str = ""
    rotated: bool = False


def split_sessions(played: Played, *, rotate: bool) -> list[HermesSession]:
    """One session, or one for each side of every compression when it rotates."""
    parts: list[list[Event]] = [[]]
    for event in played.events:
        if rotate and isinstance(event.step, Compress):
            parts.append([])
        parts[-1].append(event)
    sessions: list[HermesSession] = []
    for number, events in enumerate(parts):
        began = datetime.fromtimestamp(events[0].at, UTC)
        sessions.append(
            HermesSession(
                id=f"{began:%Y%m%d_%H%M%S}_{Ids(f'{played.script.name} {number}').stamp}",
                played=played,
                events=tuple(events),
                parent=sessions[-1].id if sessions else "",
                rotated=number < len(parts) - 1,
            )
        )
    return sessions


def write_state(file: Path, sessions: Sequence[HermesSession]) -> None:
    """Write the database, anew if it was there."""
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


def chat_record(played: Played) -> Row:
    """{"id", "model", "messages", "reward"} as trainers and evaluation tools write it."""
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
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608  our own names
    database.execute(statement, tuple(row.values()))


def _message_rows(session: HermesSession) -> list[Row]:
    """The rows of a session in the order of their ids."""
    ids = Ids(f"hermes {session.id}")
    rows: list[Row] = []
    for event in session.events:
        row: Row = {"session_id": session.id, "role": "user", "timestamp": event.at}
        if isinstance(event.step, UserSays):
            rows.append(row | {"content": event.step.text})
        elif isinstance(event.step, Act):
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


def _turn_rows(row: Row, event: Event, act: Act, ids: Ids) -> list[Row]:
    calls, results = [], []
    for reply in event.replies:
        call, name = ids.token("call_", 24), _name(reply.ask)
        given = {_PARAMETERS.get(key, key): value for key, value in reply.ask.arguments.items()}
        if reply.ask.tool == "edit":
            given = {"mode": "replace", **given}
        elif reply.ask.tool == "search":
            given["target"] = "content"
        function = {"name": name, "arguments": json.dumps(given)}
        calls.append({"id": call, "type": "function", "function": function})
        if reply.result is None:
            continue
        answer = {"role": "tool", "timestamp": reply.at, "tool_call_id": call, "tool_name": name}
        answer["content"] = _content(reply.ask, reply.result)
        answer["effect_disposition"] = "none" if reply.result.kind == "refused" else None
        results.append(row | answer)
    said = {
        "role": "assistant",
        "content": act.text,
        "tool_calls": json.dumps(calls) if calls else None,
        "finish_reason": "tool_calls" if calls else "stop",
        "reasoning": act.thought or None,
        "token_count": event.spoken_tokens,
    }
    return [row | said, *results]


def _session_row(session: HermesSession, rows: list[Row]) -> Row:
    turns = [event for event in session.events if isinstance(event.step, Act)]
    lost = any(reply.result is None for turn in turns for reply in turn.replies)
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
        "tool_call_count": sum(len(turn.replies) for turn in turns),
        **_tokens(turns),
        "cwd": f"{WORK}/{session.played.script.project}",
        "git_branch": "main",
        "title": f"{title} #2" if session.parent else title,
        "api_call_count": len(turns),
    }


def _tokens(turns: Sequence[Event]) -> Row:
    """Sums over a session; each request reads the context before it from the cache."""
    context, fresh, read = 6_000, 0, 0
    for turn in turns:
        read += context
        context += turn.spoken_tokens + turn.heard_tokens
        fresh += 40 + turn.heard_tokens
    return {
        "input_tokens": fresh,
        "output_tokens": sum(turn.spoken_tokens for turn in turns),
        "cache_read_tokens": read,
    }


def _usage_rows(session: HermesSession) -> list[Row]:
    turns = [event for event in session.events if isinstance(event.step, Act)]
    times = {"first_seen": session.events[0].at, "last_seen": session.events[-1].at}
    where = {"session_id": session.id, "model": _MODEL, "billing_provider": "openrouter", **times}
    rows = [{**where, "task": "", "api_call_count": len(turns), **_tokens(turns)}]
    for event in session.events:
        if isinstance(event.step, Compress):
            used = {"input_tokens": 41_000, "output_tokens": estimate_tokens(event.step.summary)}
            rows.append({**where, "task": "compression", "api_call_count": 1, **used})
    return rows


def _name(ask: Ask) -> str:
    return _NAMES.get(ask.tool, ask.tool)


def _content(ask: Ask, result: Result) -> str:
    """The content of the tool row."""
    if result.kind == "unknown_tool":
        known = ", ".join(sorted(_NAMES.values()))
        return f"Tool '{ask.tool}' does not exist. Available tools: {known}"
    worked = result.kind == "ok" or result.exit_code is not None
    answer = _answer(ask, result) if worked else _complaint(ask, result)
    return json.dumps(answer, ensure_ascii=False)


def _complaint(ask: Ask, result: Result) -> Row:
    if result.kind == "bad_arguments":
        return {"error": f"Tool execution failed: {_name(ask)}: Missing: {result.text}"}
    if result.kind == "refused":
        error = f"BLOCKED: User denied this command. {ask.said}"
        return {"output": "", "exit_code": -1, "error": error, "status": "blocked"}
    if result.kind == "missing_file" and ask.tool == "search":
        return {"total_count": 0, "error": f"Path not found: {result.text}"}
    if result.kind == "missing_file":
        return {"error": f"File not found: {result.text}", "similar_files": []}
    error = "Could not find a match for old_string in the file"
    if result.kind == "many_matches":
        error = f"Found {result.matches} matches for old_string. Provide more context."
    return {"success": False, "error": error}


def _answer(ask: Ask, result: Result) -> Row:
    if ask.tool == "shell":
        return {"output": result.output, "exit_code": result.exit_code, "error": None}
    path = ask.arguments["path"]
    if ask.tool == "read":
        lines = result.text.splitlines()
        content = "\n".join(f"{number}|{line}" for number, line in enumerate(lines, 1))
        size = len(result.text.encode())
        return {"content": content, "total_lines": len(lines), "file_size": size}
    if ask.tool == "write":
        return {"bytes_written": len(result.after.encode()), "files_modified": [path]}
    if ask.tool == "edit":
        old, new = (result.before or "").splitlines(), result.after.splitlines()
        diff = "\n".join(difflib.unified_diff(old, new, f"a{path}", f"b{path}", lineterm=""))
        return {"success": True, "diff": diff, "files_modified": [path]}
    found = [line.split(":", 2) for line in result.text.splitlines()]
    matches = [{"path": p, "line": int(number), "content": text} for p, number, text in found]
    return {"total_count": result.matches, "matches": matches}
