"""Which sessions and messages are meant: filters, and search over text by SQLite's FTS5 or
PostgreSQL's tsvector.

A search is for words, all of which must be there, and phrases in double quotes; it is never the
databases' own query language, so no query is a syntax error.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import msgspec
import sqlalchemy as sa

from journeyman.store.tables import messages, sessions

_WORD = re.compile(r"[^\W_]+")
_SNIPPET_CHARACTERS = 150


class Chosen(TypedDict, total=False):
    """Which sessions are meant, by what they are."""

    project: str | None
    source: str | None
    model: str | None
    tag: str | None
    since: float | None
    until: float | None
    min_messages: int
    subagents: bool


def conditions(**chosen: Unpack[Chosen]) -> list[sa.ColumnElement[bool]]:
    """What has to hold of a session; no choice means all of them."""
    given: dict[str, Any] = {**chosen}
    return [_CONDITIONS[name](value) for name, value in given.items() if value is not None]


def in_project(name: str) -> sa.ColumnElement[bool]:
    """Whether a session belongs to a project, whatever the case: its project is the one named, or
    ends in it (`cli` and `acme/cli` mean `github.com/acme/cli`), or is known only by its last part
    (sessions of a folder that is not on this machine belong to `cli`). The empty name means the
    sessions whose project is not known.
    """
    name = name.rstrip("/")
    last = name.rpartition("/")[2]
    ending = "%/" + re.sub(r"([\\%_])", r"\\\1", name)
    # The database lowers both sides: each has its own idea of letters beyond ASCII.
    stored, lower = sa.func.lower(sessions.c.project), sa.func.lower
    return sa.or_(stored.in_((lower(name), lower(last))), stored.like(lower(ending), escape="\\"))


def _has_tag(tag: str) -> sa.ColumnElement[bool]:
    # Contained, and with the same case: LIKE means different things to the databases.
    tags, written = sessions.c.tags, msgspec.json.encode(tag).decode()
    return sa.func.replace(tags, written, "") != tags


_CONDITIONS: dict[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    "project": in_project,
    "source": lambda name: sessions.c.source == name,
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
    """The query as phrases of one or more words."""
    found = []
    for quoted, word in re.findall(r'"([^"]*)"|(\S+)', query):
        words = _WORD.findall(quoted or word)
        if words:
            found.append(words)
    return found


def index_new_messages(connection: sa.Connection) -> None:
    """Make the messages of this transaction findable; PostgreSQL does so by itself."""
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


def forget_deleted_words(connection: sa.Connection) -> None:
    """Take the words of deleted messages out of the index itself, where they would stay until
    SQLite merges it some day.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(
            "INSERT INTO messages_search(messages_search) VALUES ('optimize')"
        )


def search_statement(
    dialect: str, query: str, chosen: Sequence[sa.ColumnElement[bool]], limit: int
) -> sa.Select[Any] | None:
    """The statement that finds a query in the chosen sessions, or None when there is no word in
    it.
    """
    wanted = phrases(query)
    if not wanted:
        return None
    head = sa.case((messages.c.role == "tool", 1_000), else_=16_000)
    statement = sa.select(
        *(sessions.c.id.label("session"), sessions.c.source, *messages.c["key", "role", "at"]),
        sa.func.substr(messages.c.text, 1, head).label("snippet"),
    ).join_from(messages, sessions, sessions.c.row_id == messages.c.session_row)
    match = _match_in_sqlite if dialect == "sqlite" else _match_in_postgresql
    statement = statement.where(match(wanted), *chosen)
    newest = (messages.c.at.is_(None), messages.c.at.desc(), messages.c.row_id.desc())
    return statement.order_by(*newest).limit(limit)


def _match_in_sqlite(wanted: list[list[str]]) -> sa.ColumnElement[bool]:
    query = " AND ".join('"' + " ".join(words) + '"' for words in wanted)
    found = sa.text("SELECT rowid FROM messages_search WHERE messages_search MATCH :query")
    return messages.c.row_id.in_(found.bindparams(query=query).columns(sa.column("rowid")))


def _match_in_postgresql(wanted: list[list[str]]) -> sa.ColumnElement[bool]:
    index: sa.ColumnElement[Any] = sa.literal_column("messages.search")
    return sa.and_(
        *(index.op("@@")(sa.func.phraseto_tsquery("simple", " ".join(words))) for words in wanted)
    )


def snippet(text: str, query: str) -> str:
    """The words around the first match, each match between brackets."""
    matching = "|".join(r"[\W_]+".join(map(re.escape, words)) for words in phrases(query))
    pattern = re.compile(rf"(?<![^\W_])(?:{matching})(?![^\W_])", re.IGNORECASE)
    first = pattern.search(text)
    start = 0 if first is None else max(0, first.start() - _SNIPPET_CHARACTERS // 3)
    end = start + _SNIPPET_CHARACTERS
    shown = pattern.sub(lambda match: f"[{match[0]}]", text[start:end])
    cut = ("…" if start else "", "…" if end < len(text) else "")
    return cut[0] + " ".join(shown.split()) + cut[1]
