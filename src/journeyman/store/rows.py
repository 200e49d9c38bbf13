"""Conversion between records and rows, and the statements that several repositories share."""

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
    ResultFlags,
    Session,
    SessionId,
    SessionOverview,
    Step,
    Template,
    Tokens,
    ToolCall,
    Usage,
)
from journeyman.records.message import message_digest, replace_lone_surrogates
from journeyman.records.session import owner_facts
from journeyman.records.usage import validated_usage
from journeyman.store.search import call_text as searched_text
from journeyman.store.tables import messages, usage
from journeyman.text.display import readable_line

_BATCH = 500

_Value = TypeVar("_Value")
_Record = TypeVar("_Record", bound=msgspec.Struct)

_encode = msgspec.json.Encoder().encode
_decode_calls = msgspec.json.Decoder(tuple[ToolCall, ...]).decode
_decode_recorded = msgspec.json.Decoder(ResultFlags).decode
decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode
decode_details = msgspec.json.Decoder(dict[str, Any]).decode


def storable(text: str) -> str:
    """Return the text as both databases can store it: PostgreSQL accepts no NUL, and neither
    accepts lone surrogates.
    """
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def message_values(session_row: int, message: Message) -> dict[str, Any]:
    """Return the column values of a message, with lone surrogates replaced."""
    try:
        digest = message_digest(message)
    except UnicodeEncodeError:
        message = replace_lone_surrogates(message)
        digest = message_digest(message)
    recorded, calls = message.recorded, message.tool_calls
    return values_of(
        message,
        messages,
        session_row=session_row,
        digest=digest,
        recorded=None if recorded is None else _encode(recorded).decode(),
        tool_calls=_encode(calls).decode() if calls else None,
        call_text=searched_text(calls),
    )


MESSAGE_COLUMNS = [messages.c[name] for name in Message.__struct_fields__]


def message_of(row: Sequence[Any]) -> Message:
    """Return a message from the values of its `MESSAGE_COLUMNS`, in their order."""
    fields = dict(zip(Message.__struct_fields__, row, strict=True))
    calls, recorded = fields["tool_calls"], fields["recorded"]
    fields["tool_calls"] = _decode_calls(calls) if calls else ()
    fields["recorded"] = _decode_recorded(recorded) if recorded else None
    return Message(**fields)


def usage_values(session_row: int, record: Usage) -> dict[str, Any]:
    """Return the column values of a usage; what is no possible count becomes unknown."""
    return values_of(validated_usage(record), usage, session_row=session_row)


def record_of(kind: type[_Record], row: sa.Row[Any], **others: Any) -> _Record:
    """Return a record whose fields come from the columns of the same names, or from `others`."""
    columns = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: getattr(row, name) for name in columns}, **others)


def values_of(record: msgspec.Struct, table: sa.Table, **others: Any) -> dict[str, Any]:
    """Return the columns of a table that are fields of a record, and the `others`."""
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
    **dict.fromkeys(("end_reason", "outcome_origin", "platform", "opening"), ""),
}
"""The descriptive fields of a session, with their values before anything is known."""


def tags_text(tags: Sequence[str]) -> str:
    return storable(_encode(tags).decode())


def owner_values(owner: str) -> dict[str, str]:
    """Return the columns of a session that its owner decides."""
    platform, tags = owner_facts(owner)
    return {"platform": platform, "tags": tags_text(tags)}


def session_facts(session: Session) -> dict[str, Any]:
    """Return the columns that a record sets: only what it knows, so that an update keeps the
    rest.
    """
    facts: dict[str, Any] = {
        name: storable(value) if isinstance(value, str) else value
        for name in FACTS
        if (value := getattr(session, name)) not in (None, "")
    }
    # Names from folders and repositories, which are shown everywhere.
    facts |= {
        name: readable_line(facts[name]) for name in ("project", "git_branch") if name in facts
    }
    if session.lineage is not None:
        parent = storable(session.lineage.parent)
        facts |= {"parent_id": parent, "lineage": session.lineage.kind}
    if session.tags:
        facts["tags"] = tags_text(session.tags)
    if session.details:
        facts["details"] = storable(_encode(session.details).decode())
    return facts


def tokens_of(row: sa.Row[Any]) -> Tokens:
    """Return tokens that a database has summed; its sums of integers may be decimals."""
    sums = {name: getattr(row, name) for name in Tokens.__struct_fields__}
    exact = {name: int(value) for name, value in sums.items() if value is not None}
    return Tokens(**sums | exact | {"cost_usd": row.cost_usd})


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


def template_of(body: str) -> Template:
    """Return a template from its stored text."""
    return msgspec.json.decode(body, type=Template)


def json_text(value: object) -> str:
    """Return a value as JSON. JSON escapes NUL, so that PostgreSQL accepts it; lone surrogates are
    replaced.
    """
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()


def dialect_insert(dialect_name: str) -> Any:
    """Return the database's own insert, which can also replace. Only the dialect in use is loaded:
    the other takes a considerable part of a command's start-up time.
    """
    return import_module(f"sqlalchemy.dialects.{dialect_name}").insert


def upsert(insert: Any, *keys: str, where: sa.ColumnElement[bool] | None = None) -> Any:
    """Return an insert that, if the key exists, sets everything but the key."""
    names = {column.name for column in insert.table.columns} - {"row_id", *keys}
    values = {name: insert.excluded[name] for name in sorted(names)}
    return insert.on_conflict_do_update(index_elements=keys, set_=values, where=where)


def find_by_prefix(connection: sa.Connection, table: sa.Table, id_: str) -> Sequence[sa.Row[Any]]:
    """Return the row with this id, or else the first few whose id starts with it."""
    prefix = storable(id_)
    exact = connection.execute(table.select().where(table.c.id == prefix)).all()
    if exact or not prefix:
        return exact
    # Not LIKE, which ignores case on SQLite.
    is_match = sa.func.substr(table.c.id, 1, len(prefix)) == prefix
    query = table.select().where(is_match).order_by(table.c.id).limit(5)
    return connection.execute(query).all()


def batches(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """Return the values in batches, because databases limit the values of one statement."""
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))


def select_in(
    connection: sa.Connection,
    query: sa.Select[Any],
    column: sa.ColumnElement[Any],
    values: Iterable[Any],
) -> Iterator[sa.Row[Any]]:
    """Yield the rows of a query in which a column has one of these values."""
    for batch in batches(list(values)):
        yield from connection.execute(query.where(column.in_(batch)))


def delete_in(connection: sa.Connection, column: "sa.Column[Any]", values: Iterable[Any]) -> None:
    """Delete the rows in which a column has one of these values."""
    for batch in batches(list(values)):
        connection.execute(column.table.delete().where(column.in_(batch)))
