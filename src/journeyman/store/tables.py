"""The tables, described once for both databases. The migrations make them; a test holds the two
against each other.

Small columns come before long text, so that SQLite can count and list without touching the pages
that text overflows to.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

_row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("source", sa.Text, nullable=False, index=True),
    sa.Column("agent", sa.Text, nullable=False, server_default=""),
    sa.Column("model", sa.Text, nullable=False, server_default=""),
    sa.Column("started_at", sa.Double, index=True),
    sa.Column("ended_at", sa.Double),
    sa.Column("end_reason", sa.Text, nullable=False, server_default=""),
    sa.Column("outcome", sa.Double),
    sa.Column("outcome_origin", sa.Text, nullable=False, server_default=""),
    # No foreign key: a parent may never have been imported, or may come later.
    sa.Column("parent_id", sa.Text, index=True),
    sa.Column("lineage", sa.Text),
    sa.Column("title", sa.Text, nullable=False, server_default=""),
    sa.Column("cwd", sa.Text, nullable=False, server_default=""),
    sa.Column("git_branch", sa.Text, nullable=False, server_default=""),
    sa.Column("log", sa.Text, nullable=False, server_default="", index=True),
    sa.Column("tags", sa.Text, nullable=False, server_default="[]"),
    sa.Column("details", sa.Text, nullable=False, server_default="{}"),
    sa.Column("messages", sa.Integer, nullable=False, server_default="0"),
    sa.Column("calls", sa.Integer, nullable=False, server_default="0"),
    sa.Column("answered", sa.Integer, nullable=False, server_default="0"),
    sa.Column("generations", sa.Integer, nullable=False, server_default="1"),
    sa.Column("digest", sa.Text, nullable=False, server_default=""),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column(
        "session_row",
        _row_id,
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
    # Row ids are never used again, so that "above this one" means new: search relies on it.
    sqlite_autoincrement=True,
)

usage = sa.Table(
    "usage",
    metadata,
    sa.Column(
        "session_row",
        _row_id,
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
    # Rows are found by their key alone: then SQLite needs no second tree.
    sqlite_with_rowid=False,
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column(
        "session_row",
        _row_id,
        sa.ForeignKey("sessions.row_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    # For which content of the session, and made by which rules: they hold for nothing else.
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("rules", sa.Text, nullable=False),
    sa.Column("calls", sa.LargeBinary, nullable=False),
)

logs = sa.Table(
    "logs",
    metadata,
    sa.Column("log", sa.Text, primary_key=True),
    # Beside the state, so that a log that has not changed is known without decoding it.
    sa.Column("reader", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("mtime_ns", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)

deleted = sa.Table(
    "deleted",
    metadata,
    # What a person deleted stays deleted, also when its log grows.
    sa.Column("id", sa.Text, primary_key=True),
)
