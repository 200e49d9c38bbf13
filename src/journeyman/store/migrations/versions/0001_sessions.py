"""Sessions, messages, usage, the logs they came from, deleted sessions, and full-text search.

Search uses SQLite's FTS5 or PostgreSQL's tsvector. Both split words at everything that is neither
letter nor digit, so that a part of a path is found. FTS5 reads its text through a view, so that no
text is stored twice. New rows are indexed by one statement at the end of a transaction, because a
trigger per row costs ten times as much; `messages_indexed` holds the last indexed row, and triggers
keep the indexed rows up to date.
"""

import sqlalchemy as sa
from alembic import op

from journeyman.store.migrations import create_tables
from journeyman.store.tables import columns, of_session, row_id, text, texts

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        row_id(),
        text("id", unique=True),
        text("source", index=True),
        *texts("agent", "model", server_default=""),
        sa.Column("started_at", sa.Double, index=True),
        sa.Column("ended_at", sa.Double),
        text("end_reason", server_default=""),
        sa.Column("outcome", sa.Double),
        text("outcome_origin", server_default=""),
        sa.Column("parent_id", sa.Text, index=True),
        sa.Column("lineage", sa.Text),
        *texts("title", "cwd", "git_branch", server_default=""),
        text("log", server_default="", index=True),
        text("tags", server_default="[]"),
        text("details", server_default="{}"),
        *columns(sa.Integer, "messages", "calls", "answered", nullable=False, server_default="0"),
        sa.Column("generations", sa.Integer, nullable=False, server_default="1"),
        text("digest", server_default=""),
    )
    op.create_table(
        "messages",
        row_id(),
        of_session(nullable=False),
        text("key"),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        *texts("role", "kind"),
        sa.Column("at", sa.Double),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        *texts("model", "tool_call_id", "tool_name", "finish_reason"),
        *columns(sa.Text, "recorded", "tool_calls"),
        *texts("text", "reasoning"),
        sa.UniqueConstraint("session_row", "key", name="one_message_a_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "usage",
        of_session(primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        *texts("model", "task"),
        sa.Column("at", sa.Double),
        sa.Column("api_calls", sa.Integer, nullable=False),
        *columns(sa.BigInteger, "input_tokens", "output_tokens", "cache_read_tokens"),
        *columns(sa.BigInteger, "cache_write_tokens", "reasoning_tokens"),
        sa.Column("cost_usd", sa.Double),
        text("cost_origin"),
        sqlite_with_rowid=False,
    )
    create_tables("logs", "deleted")
    if op.get_bind().dialect.name == "sqlite":
        _search_in_sqlite()
    else:
        _search_in_postgresql()


def _searched(row: str) -> str:
    return f"substr({row}text, 1, CASE {row}role WHEN 'tool' THEN 1000 ELSE 16000 END)"


def _search_in_sqlite() -> None:
    remove = (
        "INSERT INTO messages_search(messages_search, rowid, text) "
        f"VALUES ('delete', old.row_id, {_searched('old.')});"
    )
    add = f"INSERT INTO messages_search(rowid, text) VALUES (new.row_id, {_searched('new.')});"
    indexed = "WHEN old.row_id <= (SELECT up_to FROM messages_indexed)"
    for statement in (
        f"CREATE VIEW messages_searched AS SELECT row_id, {_searched('')} AS text FROM messages",
        "CREATE VIRTUAL TABLE messages_search USING fts5(text, content='messages_searched', "
        "content_rowid='row_id', tokenize='unicode61 remove_diacritics 0')",
        # Words are collected in memory up to this size; larger batches need fewer merges.
        "INSERT INTO messages_search(messages_search, rank) VALUES ('hashsize', 8388608)",
        "CREATE TABLE messages_indexed (up_to INTEGER NOT NULL)",
        "INSERT INTO messages_indexed VALUES (0)",
        f"CREATE TRIGGER messages_removed AFTER DELETE ON messages {indexed} BEGIN {remove} END",
        "CREATE TRIGGER messages_changed AFTER UPDATE OF text, role ON messages "
        f"{indexed} BEGIN {remove} {add} END",
    ):
        op.execute(statement)


def _search_in_postgresql() -> None:
    words = f"regexp_replace({_searched('')}, '[^[:alnum:]]+', ' ', 'g')"
    op.execute(
        "ALTER TABLE messages ADD COLUMN search tsvector "
        f"GENERATED ALWAYS AS (to_tsvector('simple', {words})) STORED"
    )
    op.execute("CREATE INDEX messages_search ON messages USING gin (search)")
