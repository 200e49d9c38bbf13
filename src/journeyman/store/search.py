"""Full-text search in messages and tool calls, by SQLite's FTS5 or PostgreSQL's tsvector.

A search is for words, all of which must occur in one message, for phrases in double quotes, and for
words that begin like `pyt*`. It never passes the databases' own query language on, so no query is a
syntax error.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from journeyman.records import SearchHit, ToolCall
from journeyman.store.tables import messages, sessions

_WORD = re.compile(r"[^\W_]+")
_SNIPPET_CHARACTERS = 150
_CALL_CHARACTERS = 4_000
_CALLS_CHARACTERS = 64_000
"""The searched part of a call, and of all calls of one message."""

_AROUND = 10
"""How many messages before and after a hit are read for secrets that they reveal."""

_MAX_WORDS = 100
_LONGEST_WORD = 500
"""Limits of a query. PostgreSQL indexes no word longer than about 2,000 bytes."""


def _argument_texts(arguments: str) -> Iterator[str]:
    """Yield the texts and numbers in a call's arguments; all as one text if they are not JSON."""
    try:
        pending = [msgspec.json.decode(arguments)]
    except (ValueError, RecursionError):
        yield arguments
        return
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            items = value.values() if isinstance(value, dict) else value
            pending += [*items][::-1]
        elif value is not None and not isinstance(value, bool):
            yield str(value)


def call_text(calls: Iterable[ToolCall]) -> str | None:
    """Return the searched text of a message's calls, their tools and arguments; None without
    calls.
    """
    texts = []
    for call in calls:
        room = _CALL_CHARACTERS
        texts.append(call.name)
        for text in _argument_texts(call.arguments):
            texts.append(text[:room])
            room -= len(text)
            if room <= 0:
                break
    # Decoded JSON may contain NUL, which PostgreSQL does not accept.
    return "\n".join(texts)[:_CALLS_CHARACTERS].replace("\x00", " ") if texts else None


class Phrase(NamedTuple):
    """Words that must occur together; the last may be only the beginning of one."""

    words: tuple[str, ...]
    is_prefix: bool


def phrases(query: str) -> list[Phrase]:
    """Split a query into phrases of one or more words."""
    split = []
    for quoted, word in re.findall(r'"([^"]*)"|([^\s"]+)', query):
        text = quoted or word
        if words := tuple(_WORD.findall(text)):
            split.append(Phrase(words, is_prefix=text.rstrip().endswith(f"{words[-1]}*")))
    return split


def index_new_messages(connection: sa.Connection) -> None:
    """Add the messages of this transaction to the search index; PostgreSQL does so
    automatically.
    """
    if connection.dialect.name != "sqlite":
        return
    connection.exec_driver_sql(
        "INSERT INTO messages_search(rowid, text, calls) SELECT row_id, text, calls "
        "FROM messages_searched WHERE row_id > (SELECT up_to FROM messages_indexed)"
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


def find_messages(
    connection: sa.Connection,
    query: str,
    filters: Sequence[sa.ColumnElement[bool]],
    *,
    limit: int,
    redacted: bool,
) -> list[SearchHit]:
    """Return the best matches in the filtered sessions; none if the query contains no word or too
    many. Copies of messages are left out. If `redacted`, secrets are replaced in what is shown.
    """
    query_phrases = phrases(query)
    words = [word for phrase in query_phrases for word in phrase.words]
    if not 0 < len(words) <= _MAX_WORDS or max(map(len, words)) > _LONGEST_WORD:
        return []
    # The texts are read in a second step: the first one visits every match.
    matches = connection.execute(_ranking(connection, query_phrases, filters).limit(limit))
    row_ids = [row.row_id for row in matches]
    if not row_ids:
        return []
    found = connection.execute(_FOUND.where(messages.c.row_id.in_(row_ids))).all()
    by_row = {row.row_id: row for row in found}
    pattern = _pattern(query_phrases)
    hits = []
    for row in (by_row[row_id] for row_id in row_ids if row_id in by_row):
        clean = _redaction(connection, row) if redacted else str
        hits.append(_hit(connection, row, pattern, clean))
    return hits


def _redaction(connection: sa.Connection, row: sa.Row[Any]) -> Callable[[str], str]:
    """Return what redacts a hit. It knows the secrets that the message and those around it reveal:
    a call and its result reveal secrets of each other.
    """
    from journeyman.redaction.redactor import Redactor  # noqa: PLC0415 - loads slowly

    near = messages.c.position.between(row.position - _AROUND, row.position + _AROUND)
    query = sa.select(_TEXT, messages.c.tool_calls).where(
        messages.c.session_row == row.session_row, near
    )
    redactor = Redactor()
    for text, calls in connection.execute(query):
        redactor.text(text)
        for call in _decode_calls(calls or b"[]"):
            redactor.text(call.arguments)
    return redactor.text


# More than is searched: the rest may reveal that a part of the beginning is a secret.
_TEXT = sa.func.substr(messages.c.text, 1, 64_000)
_FOUND: sa.Select[Any] = sa.select(
    *messages.c["row_id", "session_row", "position", "key", "role", "at"],
    *messages.c["tool_name", "tool_calls"],
    *(sessions.c.id.label("session"), sessions.c.source, _TEXT.label("text")),
).join_from(messages, sessions, sessions.c.row_id == messages.c.session_row)

_fts = sa.table("messages_search", sa.column("rowid"), sa.column("rank"))
_tsvector: sa.ColumnElement[Any] = sa.literal_column("messages.search")


def _ranking(
    connection: sa.Connection,
    query_phrases: Sequence[Phrase],
    filters: Sequence[sa.ColumnElement[bool]],
) -> sa.Select[Any]:
    """The statement that finds the row ids of the matches, in order."""
    statement: sa.Select[Any] = sa.select(messages.c.row_id)
    if connection.dialect.name == "sqlite":
        query = " AND ".join(map(_fts5_phrase, query_phrases))
        matches = sa.literal_column("messages_search").op("MATCH")(query)
        statement = statement.join_from(_fts, messages, messages.c.row_id == _fts.c.rowid)
        rank: sa.ColumnElement[Any] = _fts.c.rank
    else:
        tsquery = sa.func.to_tsquery("simple", " & ".join(map(_tsquery_phrase, query_phrases)))
        matches = _tsvector.op("@@")(tsquery)
        rank = sa.desc(sa.func.ts_rank(_tsvector, tsquery, 1))  # less for a match in a long text
    statement = statement.where(matches, sa.not_(messages.c.copied), *filters)
    if filters:
        statement = statement.join(sessions, sessions.c.row_id == messages.c.session_row)
    newest = (messages.c.at.is_(None), messages.c.at.desc(), messages.c.row_id.desc())
    return statement.order_by(rank, *newest)


def _fts5_phrase(phrase: Phrase) -> str:
    return '"' + " ".join(phrase.words) + '"' + ("*" if phrase.is_prefix else "")


def _tsquery_phrase(phrase: Phrase) -> str:
    """The phrase in PostgreSQL's syntax."""
    words = " <-> ".join(f"'{word}'" for word in phrase.words)
    return f"({words}{':*' if phrase.is_prefix else ''})"


_decode_calls = msgspec.json.Decoder(tuple[ToolCall, ...]).decode


def _hit(
    connection: sa.Connection,
    row: sa.Row[Any],
    pattern: re.Pattern[str],
    clean: Callable[[str], str],
) -> SearchHit:
    places = [("", clean(row.text))]
    for call in _decode_calls(row.tool_calls or b"[]"):
        texts = _argument_texts(clean(call.arguments))
        places.append((call.name, "\n".join((call.name, *texts))))
    # Where most of the query is; the text of the message wins a tie.
    tool, text = max(places, key=lambda place: _distinct_matches(pattern, place[1]))
    before = (messages.c.session_row == row.session_row, messages.c.position <= row.position)
    return SearchHit(
        session=row.session,
        source=row.source,
        key=row.key,
        role=row.role,
        at=row.at,
        message=connection.execute(sa.select(sa.func.count()).where(*before)).scalar_one(),
        tool=clean(row.tool_name or tool),
        snippet=_snippet(text, pattern),
    )


def _distinct_matches(pattern: re.Pattern[str], text: str) -> int:
    return len({match.lastgroup for match in pattern.finditer(text)})


def _pattern(query_phrases: Sequence[Phrase]) -> re.Pattern[str]:
    """A pattern that matches the phrases, each as a group of its own."""
    between, rest = r"[\W_]+", r"[^\W_]*"
    groups = (
        f"(?P<phrase{number}>{between.join(phrase.words)}{rest if phrase.is_prefix else ''})"
        for number, phrase in enumerate(query_phrases)
    )
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(groups)})(?![^\W_])", re.IGNORECASE)


def _snippet(text: str, pattern: re.Pattern[str]) -> str:
    """Return the text around the first match, with each match in brackets."""
    first = pattern.search(text)
    start = 0 if first is None else max(0, first.start() - _SNIPPET_CHARACTERS // 3)
    end = start + _SNIPPET_CHARACTERS
    shown = pattern.sub(lambda match: f"[{match[0]}]", text[start:end])
    cut = ("…" if start else "", "…" if end < len(text) else "")
    return cut[0] + " ".join(shown.split()) + cut[1]
