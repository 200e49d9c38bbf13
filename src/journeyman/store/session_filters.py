"""Selecting sessions and messages: filters, and full-text search by SQLite's FTS5 or PostgreSQL's
tsvector.

A search is for words, all of which must occur, and phrases in double quotes. It never uses the
query language of the databases, so no query is a syntax error.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import msgspec
import sqlalchemy as sa

from journeyman.store.tables import messages, sessions

_WORD = re.compile(r"[^\W_]+")
_SNIPPET_CHARACTERS = 150


class SessionFilters(TypedDict, total=False):
    """Filters on sessions, by their properties. `origin` is a source or a platform."""

    project: str | None
    source: str | None
    platform: str | None
    origin: str | None
    model: str | None
    tag: str | None
    since: float | None
    until: float | None
    min_messages: int
    subagents: bool


def conditions(**filters: Unpack[SessionFilters]) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on a session; without filters, every session matches."""
    values: dict[str, Any] = {**filters}
    return [_CONDITIONS[name](value) for name, value in values.items() if value is not None]


def in_project(name: str) -> sa.ColumnElement[bool]:
    """The condition that a session belongs to a project, ignoring case: its project is the one
    named, or ends with it (`cli` and `acme/cli` match `github.com/acme/cli`), or is only the last
    part of the name (sessions of a folder that is not on this machine belong to `cli`). The empty
    name matches sessions without a known project.
    """
    name = name.rstrip("/")
    last = name.rpartition("/")[2]
    ending = "%/" + re.sub(r"([\\%_])", r"\\\1", name)
    # The database lowers both sides: each treats letters beyond ASCII differently.
    stored, lower = sa.func.lower(sessions.c.project), sa.func.lower
    return sa.or_(stored.in_((lower(name), lower(last))), stored.like(lower(ending), escape="\\"))


def _has_tag(tag: str) -> sa.ColumnElement[bool]:
    # Contained, with the same case: LIKE differs between the databases.
    tags, written = sessions.c.tags, msgspec.json.encode(tag).decode()
    return sa.func.replace(tags, written, "") != tags


_CONDITIONS: dict[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "project": in_project,
    "source": lambda name: sessions.c.source == name,
    "platform": lambda name: sessions.c.platform == name,
    "origin": lambda name: sa.or_(sessions.c.source == name, sessions.c.platform == name),
    "model": lambda name: sessions.c.model == name,
    "tag": _has_tag,
    "since": lambda at: sessions.c.started_at >= at,
    "until": lambda at: sessions.c.started_at < at,
    "min_messages": lambda count: sessions.c.messages >= count,
    "subagents": lambda too: (
        sa.true() if too else sa.func.coalesce(sessions.c.lineage, "") != "subagent"
    ),
}


def phrases(query: str) -> list[list[str]]:
    """Split a query into phrases of one or more words."""
    split = []
    for quoted, word in re.findall(r'"([^"]*)"|(\S+)', query):
        words = _WORD.findall(quoted or word)
        if words:
            split.append(words)
    return split


def index_new_messages(connection: sa.Connection) -> None:
    """Add the messages of this transaction to the search index; PostgreSQL does so
    automatically.
    """
    if connection.dialect.name != "sqlite":
        return
    connection.exec_driver_sql(
        "INSERT INTO messages_search(rowid, text) SELECT row_id, text FROM messages_searched "
        "WHERE row_id > (SELECT up_to FROM messages_indexed)"
    )
    connection.exec_driver_sql(
        "UPDATE messages_indexed SET up_to = "
        "max(up_to, (SELECT coalesce(max(row_id), 0) FROM messages))"
    )


def erase_deleted_words(connection: sa.Connection) -> None:
    """Remove the words of deleted messages from the index itself, where they would otherwise stay
    until SQLite merges it.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(
            "INSERT INTO messages_search(messages_search) VALUES ('optimize')"
        )


def search_statement(
    dialect: str, query: str, filters: Sequence[sa.ColumnElement[bool]], limit: int
) -> sa.Select[Any] | None:
    """Return the statement that searches the filtered sessions, or None if the query contains no
    word.
    """
    query_phrases = phrases(query)
    if not query_phrases:
        return None
    head = sa.case((messages.c.role == "tool", 1_000), else_=16_000)
    statement = sa.select(
        *(sessions.c.id.label("session"), sessions.c.source, *messages.c["key", "role", "at"]),
        sa.func.substr(messages.c.text, 1, head).label("snippet"),
    ).join_from(messages, sessions, sessions.c.row_id == messages.c.session_row)
    match = _match_in_sqlite if dialect == "sqlite" else _match_in_postgresql
    statement = statement.where(match(query_phrases), *filters)
    newest = (messages.c.at.is_(None), messages.c.at.desc(), messages.c.row_id.desc())
    return statement.order_by(*newest).limit(limit)


def _match_in_sqlite(query_phrases: list[list[str]]) -> sa.ColumnElement[bool]:
    query = " AND ".join('"' + " ".join(words) + '"' for words in query_phrases)
    matches = sa.text("SELECT rowid FROM messages_search WHERE messages_search MATCH :query")
    return messages.c.row_id.in_(matches.bindparams(query=query).columns(sa.column("rowid")))


def _match_in_postgresql(query_phrases: list[list[str]]) -> sa.ColumnElement[bool]:
    index: sa.ColumnElement[Any] = sa.literal_column("messages.search")
    tsqueries = (sa.func.phraseto_tsquery("simple", " ".join(words)) for words in query_phrases)
    return sa.and_(*(index.op("@@")(tsquery) for tsquery in tsqueries))


def snippet(text: str, query: str) -> str:
    """Return the text around the first match, with each match in brackets."""
    matching = "|".join(r"[\W_]+".join(map(re.escape, words)) for words in phrases(query))
    pattern = re.compile(rf"(?<![^\W_])(?:{matching})(?![^\W_])", re.IGNORECASE)
    first = pattern.search(text)
    start = 0 if first is None else max(0, first.start() - _SNIPPET_CHARACTERS // 3)
    end = start + _SNIPPET_CHARACTERS
    shown = pattern.sub(lambda match: f"[{match[0]}]", text[start:end])
    cut = ("…" if start else "", "…" if end < len(text) else "")
    return cut[0] + " ".join(shown.split()) + cut[1]
