"""Between records and rows: the one place that knows how each is spelled in the other."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from journeyman.records import (
    Lineage,
    Message,
    Recorded,
    Session,
    SessionId,
    SessionOverview,
    Tokens,
    ToolCall,
    Usage,
)
from journeyman.records.digest import message_digest
from journeyman.records.message import whole
from journeyman.store.tables import messages

_encode = msgspec.json.Encoder().encode
_decode_calls = msgspec.json.Decoder(tuple[ToolCall, ...]).decode
_decode_recorded = msgspec.json.Decoder(Recorded).decode
_decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_details = msgspec.json.Decoder(dict[str, Any]).decode


def storable(text: str) -> str:
    """Text both databases can hold: PostgreSQL knows no NUL, and neither knows half a character."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def message_values(session_row: int, message: Message) -> tuple[Any, ...]:
    """A message in the order of the table's columns; half characters, which no encoding has, are
    replaced.
    """
    try:
        return _message_values(session_row, message)
    except UnicodeEncodeError:
        return _message_values(session_row, whole(message))


def _message_values(session_row: int, message: Message) -> tuple[Any, ...]:
    calls = message.tool_calls
    return (
        session_row,
        storable(message.key),
        message.position,
        message.generation,
        message.role,
        message.kind,
        message.at,
        message_digest(message),
        storable(message.model),
        storable(message.tool_call_id),
        storable(message.tool_name),
        storable(message.finish_reason),
        None if message.recorded is None else _encode(message.recorded).decode(),
        _encode(calls).decode() if calls else None,
        storable(message.text),
        storable(message.reasoning) if message.reasoning else "",
    )


MESSAGE_COLUMNS = [messages.c[name] for name in Message.__struct_fields__]


def message_of(row: Sequence[Any]) -> Message:
    """A message from its `MESSAGE_COLUMNS`, which are taken by place: that is twice as fast as by
    name, and learning reads every message.
    """
    key, position, role, text, kind, reasoning, calls, call_id, tool, recorded, *rest = row
    at, model, finish_reason, generation = rest
    return Message(
        key=key,
        position=position,
        role=role,
        text=text,
        kind=kind,
        reasoning=reasoning,
        tool_calls=_decode_calls(calls) if calls else (),
        tool_call_id=call_id,
        tool_name=tool,
        recorded=_decode_recorded(recorded) if recorded else None,
        at=at,
        model=model,
        finish_reason=finish_reason,
        generation=generation,
    )


def usage_values(session_row: int, usage: Usage) -> tuple[Any, ...]:
    """A usage row in the order of the table's columns, which is that of the record's fields."""
    return (session_row, *map(_countable, msgspec.structs.astuple(usage)))


def _countable(value: Any) -> Any:
    """A column of usage; a number that no counter can reach is not known."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int) and not -(2**31) < value < 2**53:
        return None
    return value


def usage_of(row: sa.Row[Any]) -> Usage:
    fields = {name: getattr(row, name) for name in Usage.__struct_fields__}
    return Usage(**fields)


def session_facts(session: Session) -> dict[str, Any]:
    """The columns a record sets: only the facts it knows, so that an update keeps the others."""
    facts: dict[str, Any] = {
        name: getattr(session, name)
        for name in (
            "title",
            "cwd",
            "project",
            "git_branch",
            "agent",
            "model",
            "started_at",
            "ended_at",
            "end_reason",
            "outcome",
            "outcome_origin",
        )
    }
    facts = {
        name: storable(value) if isinstance(value, str) else value
        for name, value in facts.items()
        if value not in (None, "")
    }
    if session.lineage is not None:
        parent = storable(session.lineage.parent)
        facts |= {"parent_id": parent, "lineage": session.lineage.kind}
    if session.tags:
        facts["tags"] = storable(_encode(session.tags).decode())
    if session.details:
        facts["details"] = storable(_encode(session.details).decode())
    return facts


def overview_of(row: sa.Row[Any], tokens: Tokens) -> SessionOverview:
    lineage = None
    if row.parent_id is not None:
        lineage = Lineage(parent=SessionId(row.parent_id), kind=row.lineage)
    session = Session(
        id=SessionId(row.id),
        source=row.source,
        title=row.title,
        cwd=row.cwd,
        project=row.project,
        git_branch=row.git_branch,
        agent=row.agent,
        model=row.model,
        started_at=row.started_at,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        outcome=row.outcome,
        outcome_origin=row.outcome_origin,
        lineage=lineage,
        log=row.log,
        tags=_decode_tags(row.tags),
        details=_decode_details(row.details),
    )
    return SessionOverview(
        session=session,
        messages=row.messages,
        calls=row.calls,
        answered=row.answered,
        generations=row.generations,
        tokens=tokens,
        digest=row.digest,
    )
