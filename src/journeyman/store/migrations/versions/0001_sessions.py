"""Sessions, messages, usage, the logs they came from, what was deleted, and search over text.

Search is SQLite's FTS5 or PostgreSQL's tsvector. Both split words at everything that is neither
letter nor digit, so that a part of a path is found. FTS5 reads its text through a view, so that no
text is stored twice. New rows are indexed by one statement at the end of a transaction, because a
trigger for each costs ten times as much; `messages_indexed` says up to which row that was done,
and triggers keep those rows in step.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    _sessions(row_id)
    _messages(row_id)
    _usage(row_id)
    op.create_table(
        "logs",
        sa.Column("log", sa.Text, primary_key=True),
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("mtime_ns", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table("deleted", sa.Column("id", sa.Text, primary_key=True))
    if op.get_bind().dialect.name == "sqlite":
        _search_in_sqlite()
    else:
        _search_in_postgresql()


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=default)


def _count(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def _sessions(row_id: sa.types.TypeEngine[int]) -> None:
    op.create_table(
        "sessions",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("source", sa.Text, nullable=False),
        _text("agent"),
        _text("model"),
        sa.Column("started_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        _text("end_reason"),
        sa.Column("outcome", sa.Double),
        _text("outcome_origin"),
        sa.Column("parent_id", sa.Text),
        sa.Column("lineage", sa.Text),
        _text("title"),
        _text("cwd"),
        _text("git_branch"),
        _text("log"),
        _text("tags", "[]"),
        _text("details", "{}"),
        _count("messages"),
        _count("calls"),
        _count("answered"),
        _count("generations", 1),
        _text("digest"),
    )
    for column in ("source", "started_at", "parent_id", "log"):
        op.create_index(f"ix_sessions_{column}", "sessions", [column])


def _messages(row_id: sa.types.TypeEngine[int]) -> None:
    op.create_table(
        "messages",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column(
            "session_row",
            row_id,
            sa.ForeignKey("sessions.row_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("tool_call_id", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("finish_reason", sa.Text, nullable=False),
        sa.Column("recorded", sa.Text),
        sa.Column("tool_calls", sa.Text),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("reasoning", sa.Text, nullable=False),
        sa.UniqueConstraint("session_row", "key", name="one_message_a_key"),
        sqlite_autoincrement=True,
    )


def _usage(row_id: sa.types.TypeEngine[int]) -> None:
    op.create_table(
        "usage",
        sa.Column(
            "session_row",
            row_id,
            sa.ForeignKey("sessions.row_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("at", sa.Double),
        sa.Column("api_calls", sa.Integer, nullable=False),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cache_read_tokens", sa.BigInteger),
        sa.Column("cache_write_tokens", sa.BigInteger),
        sa.Column("reasoning_tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Double),
        sa.Column("cost_origin", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


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
        # Words are gathered in memory up to this size; larger batches make fewer merges.
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
