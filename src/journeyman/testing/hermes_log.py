"""Played sessions as a Hermes `state.db`, schema version 30.

Compression is recorded in both of Hermes's ways: by rotation (the session ends and a child goes
on) and in place (old rows are archived, the tail is copied behind a summary row).
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from journeyman.testing.hermes_results import result_text, tool_arguments, tool_name
from journeyman.testing.recording import Ids, estimate_tokens, heard_back, spoken
from journeyman.testing.script import Compressed, Event, Heard, Played, Reply, Turn
from journeyman.testing.workshop import WORK

MODEL = "hermes-4-405b"
PROMPT = (
    "You are Hermes, an agent in a terminal. Use your tools to do what the user asks; say what "
    "you found and what you changed."
)
TAIL_ROWS = 4

_SCHEMA = Path(__file__).parent / "hermes_schema.sql"

_SUMMARY_START = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted"
_SUMMARY_END = (
    "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
)

Row = dict[str, Any]


class HermesSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it stands in the database: the events that belong to it, and its parent."""

    id: str
    played: Played
    events: tuple[Event, ...]
    parent: str = ""
    rotated: bool = False


def sessions_of(played: Played, *, rotate: bool) -> list[HermesSession]:
    """One session, or one for each side of every compression when it rotates."""
    parts: list[list[Event]] = [[]]
    for event in played.events:
        if rotate and isinstance(event, Compressed):
            parts.append([])
        parts[-1].append(event)
    sessions: list[HermesSession] = []
    for number, events in enumerate(parts):
        sessions.append(
            HermesSession(
                id=_session_id(f"{played.script.name} {number}", events[0].at),
                played=played,
                events=tuple(events),
                parent=sessions[-1].id if sessions else "",
                rotated=number < len(parts) - 1,
            )
        )
    return sessions


def _session_id(name: str, at: float) -> str:
    stamp = Ids(f"hermes {name}").stamp
    return f"{datetime.fromtimestamp(at, UTC):%Y%m%d_%H%M%S}_{stamp}"


def write_state(file: Path, sessions: Sequence[HermesSession]) -> None:
    """Write the database."""
    file.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(file)
    database.executescript(_SCHEMA.read_text("utf-8"))
    database.execute("INSERT INTO schema_version VALUES (30)")
    digest = hashlib.sha256(PROMPT.encode()).hexdigest()
    _insert(database, "system_prompts", {"hash": digest, "prompt": PROMPT})
    for session in sessions:
        rows = message_rows(session)
        _insert(database, "sessions", _session_row(session, rows, digest))
        for row in rows:
            _insert(database, "messages", row)
        for usage in _usage_rows(session):
            _insert(database, "session_model_usage", usage)
    database.commit()
    database.close()


def _insert(database: sqlite3.Connection, table: str, row: Row) -> None:
    names, marks = ", ".join(row), ", ".join("?" for _ in row)
    statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608  our own names
    database.execute(statement, tuple(row.values()))


def message_rows(session: HermesSession) -> list[Row]:
    """The rows of a session in the order of their ids."""
    ids = Ids(f"hermes {session.id}")
    rows: list[Row] = []
    for event in session.events:
        if isinstance(event, Heard):
            rows.append(_row(session, "user", event.at, content=event.text))
        elif isinstance(event, Turn):
            rows += _turn_rows(session, event, ids)
        else:
            tail = [dict(row) for row in rows[-TAIL_ROWS:]]
            for row in rows:
                row |= {"active": 0, "compacted": 1}
            text = f"{_SUMMARY_START}.\n\n{event.summary}\n\n{_SUMMARY_END}"
            rows.append(_row(session, "user", event.at, content=text, _compressed_summary=1))
            rows += tail
    return rows


def _turn_rows(session: HermesSession, turn: Turn, ids: Ids) -> list[Row]:
    calls, results = [], []
    for reply in turn.replies:
        call = ids.token("call_", 24)
        arguments = reply.ask.malformed or json.dumps(tool_arguments(reply.ask))
        function = {"name": tool_name(reply.ask), "arguments": arguments}
        calls.append({"id": call, "type": "function", "function": function})
        if reply.result is not None:
            results.append(_result_row(session, reply, call))
    said = _row(
        session,
        "assistant",
        turn.at,
        content=turn.act.text,
        tool_calls=json.dumps(calls) if calls else None,
        finish_reason="tool_calls" if calls else "stop",
        reasoning=turn.act.thought or None,
        token_count=spoken(turn),
    )
    return [said, *results]


def _result_row(session: HermesSession, reply: Reply, call: str) -> Row:
    assert reply.result is not None
    untouched = reply.result.kind in ("refused", "cancelled")
    return _row(
        session,
        "tool",
        reply.at,
        content=result_text(reply),
        tool_call_id=call,
        tool_name=tool_name(reply.ask),
        effect_disposition="none" if untouched else None,
    )


def _row(session: HermesSession, role: str, at: float, **more: Any) -> Row:
    return {"session_id": session.id, "role": role, "timestamp": at, **more}


def _session_row(session: HermesSession, rows: list[Row], digest: str) -> Row:
    turns = [event for event in session.events if isinstance(event, Turn)]
    lost = any(reply.result is None for turn in turns for reply in turn.replies)
    live = [row for row in rows if row.get("active", 1)]
    title = session.played.script.title
    return {
        "id": session.id,
        "source": "cli",
        "model": MODEL,
        "model_config": json.dumps({"provider": "openrouter"}),
        "system_prompt_hash": digest,
        "parent_session_id": session.parent or None,
        "started_at": session.events[0].at,
        "ended_at": None if lost else session.events[-1].at + 30,
        "end_reason": "compression" if session.rotated else None if lost else "cli_close",
        "message_count": len(live),
        "tool_call_count": sum(len(turn.replies) for turn in turns),
        **_tokens(turns),
        "cwd": f"{WORK}/{session.played.script.project}",
        "git_branch": "main",
        "title": f"{title} #2" if session.parent else title,
        "title_source": "llm",
        "api_call_count": len(turns),
    }


def _tokens(turns: Sequence[Turn]) -> Row:
    """Sums over a session; each request reads the context before it from the cache."""
    context, fresh, read = 6_000, 0, 0
    for turn in turns:
        read += context
        context += spoken(turn) + heard_back(turn)
        fresh += 40 + heard_back(turn)
    return {
        "input_tokens": fresh,
        "output_tokens": sum(spoken(turn) for turn in turns),
        "cache_read_tokens": read,
        "cache_write_tokens": 0,
        "reasoning_tokens": sum(estimate_tokens(turn.act.thought) - 1 for turn in turns),
    }


def _usage_rows(session: HermesSession) -> list[Row]:
    turns = [event for event in session.events if isinstance(event, Turn)]
    first, last = session.events[0].at, session.events[-1].at
    where = {
        "session_id": session.id,
        "model": MODEL,
        "billing_provider": "openrouter",
        "billing_base_url": "",
        "billing_mode": "",
    }
    seen = {"first_seen": first, "last_seen": last}
    rows = [{**where, "task": "", "api_call_count": len(turns), **_tokens(turns), **seen}]
    titling = {"input_tokens": 310, "output_tokens": 12}
    rows.append({**where, "task": "title_generation", "api_call_count": 1, **titling, **seen})
    for event in session.events:
        if isinstance(event, Compressed):
            squeezed = {"input_tokens": 41_000, "output_tokens": estimate_tokens(event.summary)}
            rows.append({**where, "task": "compression", "api_call_count": 1, **squeezed, **seen})
    return rows
