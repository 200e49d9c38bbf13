"""Search finds the tools and arguments of calls.

The searched text of the calls is stored, because neither database can take it out of JSON that may
be malformed. Existing messages get it here, and the search index is built anew: about a minute for
each gigabyte of SQLite, during which the file grows by as much as the index is large.
"""

import msgspec
import sqlalchemy as sa
from alembic import op

from journeyman.records import ToolCall
from journeyman.store.search import call_text

revision = "0013"
down_revision = "0012"

_BATCH = 2_000


def upgrade() -> None:
    op.add_column("messages", sa.Column("call_text", sa.Text))
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        # Before the texts are filled in, so that no trigger updates the index row by row.
        for kind, name in _SQLITE_PARTS:
            op.execute(f"DROP {kind} {name}")
        _fill(connection)
        _search_in_sqlite()
    else:
        op.drop_column("messages", "search")
        _fill(connection)
        _search_in_postgresql()


def _fill(connection: sa.Connection) -> None:
    """Set the searched text of the calls of all messages, in batches of rows."""
    decode = msgspec.json.Decoder(tuple[ToolCall, ...]).decode
    names = ("row_id", "tool_calls", "call_text")
    messages = sa.table("messages", *map(sa.column, names))
    this = messages.c.row_id == sa.bindparam("this_row")
    update = messages.update().where(this).values(call_text=sa.bindparam("calls"))
    query = (
        sa.select(messages.c.row_id, messages.c.tool_calls)
        .where(messages.c.tool_calls.is_not(None), messages.c.row_id > sa.bindparam("after"))
        .order_by(messages.c.row_id)
        .limit(_BATCH)
    )
    after = 0
    while batch := connection.execute(query, {"after": after}).all():
        after = batch[-1].row_id
        values = [{"this_row": row, "calls": call_text(decode(calls))} for row, calls in batch]
        connection.execute(update, values)


_SQLITE_PARTS = (
    ("TRIGGER", "messages_removed"),
    ("TRIGGER", "messages_changed"),
    ("TABLE", "messages_search"),
    ("VIEW", "messages_searched"),
)


def _head(row: str) -> str:
    return f"substr({row}text, 1, CASE {row}role WHEN 'tool' THEN 1000 ELSE 16000 END)"


def _search_in_sqlite() -> None:
    remove = (
        "INSERT INTO messages_search(messages_search, rowid, text, calls) "
        f"VALUES ('delete', old.row_id, {_head('old.')}, old.call_text);"
    )
    add = (
        "INSERT INTO messages_search(rowid, text, calls) "
        f"VALUES (new.row_id, {_head('new.')}, new.call_text);"
    )
    indexed = "WHEN old.row_id <= (SELECT up_to FROM messages_indexed)"
    for statement in (
        f"CREATE VIEW messages_searched AS SELECT row_id, {_head('')} AS text, "
        "call_text AS calls FROM messages",
        "CREATE VIRTUAL TABLE messages_search USING fts5(text, calls, "
        "content='messages_searched', content_rowid='row_id', "
        "tokenize='unicode61 remove_diacritics 0')",
        # Words are collected in memory up to this size; larger batches need fewer merges.
        "INSERT INTO messages_search(messages_search, rank) VALUES ('hashsize', 8388608)",
        "INSERT INTO messages_search(messages_search) VALUES ('rebuild')",
        "UPDATE messages_indexed SET up_to = (SELECT coalesce(max(row_id), 0) FROM messages)",
        f"CREATE TRIGGER messages_removed AFTER DELETE ON messages {indexed} BEGIN {remove} END",
        "CREATE TRIGGER messages_changed AFTER UPDATE OF text, role, call_text ON messages "
        f"{indexed} BEGIN {remove} {add} END",
    ):
        op.execute(statement)


def _search_in_postgresql() -> None:
    text, calls = (
        f"to_tsvector('simple', regexp_replace({column}, '[^[:alnum:]]+', ' ', 'g'))"
        for column in (_head(""), "coalesce(call_text, '')")
    )
    op.execute(
        "ALTER TABLE messages ADD COLUMN search tsvector GENERATED ALWAYS AS "
        f"(setweight({text}, 'A') || setweight({calls}, 'B')) STORED"
    )
    op.execute("CREATE INDEX messages_search ON messages USING gin (search)")
