"""Between records and rows: the one place that knows how each is spelled in the other."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from journeyman.records import (
    Lineage,
    Message,
    Recorded,
    Session,
    SessionId,
    SessionOverview,
    Step,
    Tokens,
    ToolCall,
    Usage,
)
from journeyman.records.message import message_digest, whole
from journeyman.store.tables import messages, usage

_PART = 500

_Value = TypeVar("_Value")
_Record = TypeVar("_Record", bound=msgspec.Struct)

_encode = msgspec.json.Encoder().encode
_decode_calls = msgspec.json.Decoder(tuple[ToolCall, ...]).decode
_decode_recorded = msgspec.json.Decoder(Recorded).decode
decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode
decode_details = msgspec.json.Decoder(dict[str, Any]).decode


def storable(text: str) -> str:
    """Text both databases can hold: PostgreSQL knows no NUL, and neither knows half a character."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def message_values(session_row: int, message: Message) -> dict[str, Any]:
    """A message as columns; half characters, which no encoding has, are replaced."""
    try:
        digest = message_digest(message)
    except UnicodeEncodeError:
        message = whole(message)
        digest = message_digest(message)
    recorded, calls = message.recorded, message.tool_calls
    return values_of(
        message,
        messages,
        session_row=session_row,
        digest=digest,
        recorded=None if recorded is None else _encode(recorded).decode(),
        tool_calls=_encode(calls).decode() if calls else None,
    )


MESSAGE_COLUMNS = [messages.c[name] for name in Message.__struct_fields__]


def message_of(row: Sequence[Any]) -> Message:
    """A message from its `MESSAGE_COLUMNS`, in their order."""
    found = dict(zip(Message.__struct_fields__, row, strict=True))
    calls, recorded = found["tool_calls"], found["recorded"]
    found["tool_calls"] = _decode_calls(calls) if calls else ()
    found["recorded"] = _decode_recorded(recorded) if recorded else None
    return Message(**found)


def usage_values(session_row: int, given: Usage) -> dict[str, Any]:
    """A usage as columns; a number that no counter can reach is not known."""
    values = values_of(given, usage, session_row=session_row)
    for name, value in values.items():
        if isinstance(value, int) and not -(2**31) < value < 2**53:
            values[name] = None
    return values


def record_of(kind: type[_Record], row: sa.Row[Any], **others: Any) -> _Record:
    """A record whose fields are columns of the same names, but for the `others`."""
    columns = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: getattr(row, name) for name in columns}, **others)


def values_of(record: msgspec.Struct, table: sa.Table, **others: Any) -> dict[str, Any]:
    """The columns of a table that are fields of a record, and the `others`."""
    for name in _shared_names(type(record), table):
        if name not in others:
            value = getattr(record, name)
            others[name] = storable(value) if isinstance(value, str) else value
    return others


@cache
def _shared_names(kind: type[msgspec.Struct], table: sa.Table) -> list[str]:
    return [name for name in kind.__struct_fields__ if name in table.columns]


FACTS: dict[str, Any] = {
    **dict.fromkeys(("started_at", "ended_at", "outcome")),
    **dict.fromkeys(("title", "cwd", "project", "git_branch", "agent", "model"), ""),
    **dict.fromkeys(("end_reason", "outcome_origin"), ""),
}
"""Facts of a session, and what they are before anything is known of it."""


def session_facts(session: Session) -> dict[str, Any]:
    """The columns a record sets: only the facts it knows, so that an update keeps the others."""
    facts: dict[str, Any] = {
        name: storable(value) if isinstance(value, str) else value
        for name in FACTS
        if (value := getattr(session, name)) not in (None, "")
    }
    if session.lineage is not None:
        parent = storable(session.lineage.parent)
        facts |= {"parent_id": parent, "lineage": session.lineage.kind}
    if session.tags:
        facts["tags"] = storable(_encode(session.tags).decode())
    if session.details:
        facts["details"] = storable(_encode(session.details).decode())
    return facts


def tokens_of(row: sa.Row[Any]) -> Tokens:
    """Tokens that a database has added up; its sums of whole numbers may be decimals."""
    known = {name: getattr(row, name) for name in Tokens.__struct_fields__}
    exact = {name: int(one) for name, one in known.items() if one is not None}
    return Tokens(**known | exact | {"cost_usd": row.cost_usd})


def overview_of(row: sa.Row[Any], tokens: Tokens = Tokens()) -> SessionOverview:  # noqa: B008 - a frozen value
    lineage = None
    if row.parent_id is not None:
        lineage = Lineage(parent=SessionId(row.parent_id), kind=row.lineage)
    session = record_of(
        Session,
        row,
        lineage=lineage,
        tags=decode_names(row.tags),
        details=decode_details(row.details),
    )
    return record_of(SessionOverview, row, session=session, tokens=tokens)


def json_text(value: object) -> str:
    """A value as JSON. A NUL is spelled out there, so that PostgreSQL takes it; half characters,
    which no encoding has, are replaced.
    """
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()


def inserting(dialect_name: str) -> Any:
    """The database's own insert, which can also replace. Loaded for the one in use: the other
    takes a good part of the time that a command needs to start.
    """
    return import_module(f"sqlalchemy.dialects.{dialect_name}").insert


def or_replace(insert: Any, *keys: str, where: sa.ColumnElement[bool] | None = None) -> Any:
    """An insert that sets everything but the key where the key is there already."""
    names = {column.name for column in insert.table.columns} - {"row_id", *keys}
    values = {name: insert.excluded[name] for name in sorted(names)}
    return insert.on_conflict_do_update(index_elements=keys, set_=values, where=where)


def find_beginning(one: sa.Connection, table: sa.Table, given: str) -> Sequence[sa.Row[Any]]:
    """The row with this id, or else a few of those whose id begins so."""
    begins = storable(given)
    exact = one.execute(table.select().where(table.c.id == begins)).all()
    if exact or not begins:
        return exact
    # Not LIKE: SQLite's takes capital letters for small ones.
    alike = sa.func.substr(table.c.id, 1, len(begins)) == begins
    return one.execute(table.select().where(alike).order_by(table.c.id).limit(5)).all()


def parts(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """The values in parts, because databases take only so many at once."""
    return (values[start : start + _PART] for start in range(0, len(values), _PART))


def select_in(
    one: sa.Connection, asked: sa.Select[Any], column: "sa.Column[Any]", values: Iterable[Any]
) -> Iterator[sa.Row[Any]]:
    """What is asked for, where a column has one of these values."""
    for some in parts(list(values)):
        yield from one.execute(asked.where(column.in_(some)))


def delete_in(connection: sa.Connection, column: "sa.Column[Any]", values: Iterable[Any]) -> None:
    """Delete the rows in whose column one of these values is."""
    for some in parts(list(values)):
        connection.execute(column.table.delete().where(column.in_(some)))
