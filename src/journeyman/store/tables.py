"""The tables, described once for both databases. The migrations make them; a test holds the two
against each other.

Small columns come before long text, so that SQLite can count and list without touching the pages
that text overflows to.
"""

from typing import Any

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
    sa.Column("project", sa.Text, nullable=False, server_default="", index=True),
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


def _of_session(name: str, **options: Any) -> "sa.Column[int]":
    return sa.Column(name, _row_id, sa.ForeignKey("sessions.row_id", ondelete="CASCADE"), **options)


def _of_pattern() -> "sa.Column[int]":
    key = sa.ForeignKey("patterns.row_id", ondelete="CASCADE")
    return sa.Column("pattern_row", _row_id, key, primary_key=True)


patterns = sa.Table(
    "patterns",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    # The session as whose it is shown: when that goes, its words go.
    _of_session("origin_row", nullable=False, index=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("task_type", sa.Text, nullable=False),
    sa.Column("quarantined", sa.Text, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("shown_at", sa.Double),
    # Counted from the sightings whenever those change.
    sa.Column("times", sa.Integer, nullable=False, server_default="0"),
    sa.Column("session_count", sa.Integer, nullable=False, server_default="0"),
    sa.Column("first_seen", sa.Double),
    sa.Column("last_seen", sa.Double),
    sa.Column("models", sa.Text, nullable=False, server_default="[]"),
    sa.Column("intent", sa.Text, nullable=False),
    sa.Column("steps", sa.Text, nullable=False),
    # They are counted by hooks, and must not be read for it.
    sa.Index("patterns_by_kind", "quarantined", "kind"),
    sqlite_autoincrement=True,
)

episodes = sa.Table(
    "episodes",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    _of_session("session_row", nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("at", sa.Double),
    sa.Column("ending", sa.Text, nullable=False),
    sa.Column("quarantined", sa.Text, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    # What it is found by, and what playbooks count; read without the texts below.
    sa.Column("words", sa.LargeBinary, nullable=False),
    sa.Column("call_words", sa.LargeBinary, nullable=False),
    sa.Column("vector", sa.LargeBinary, nullable=False),
    sa.Column("call_vector", sa.LargeBinary, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("steps", sa.Text, nullable=False),
    sa.UniqueConstraint("session_row", "number", name="one_episode_a_number"),
    sqlite_autoincrement=True,
)

sightings = sa.Table(
    "sightings",
    metadata,
    _of_pattern(),
    _of_session("session_row", primary_key=True, index=True),
    sa.Column("times", sa.Integer, nullable=False),
    sa.Column("first_seen", sa.Double),
    sa.Column("last_seen", sa.Double),
    sa.Column("models", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)

mined = sa.Table(
    "mined",
    metadata,
    _of_session("session_row", primary_key=True),
    # What the session was when it was mined, and by which rules.
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("outcome", sa.Double),
    sa.Column("end_reason", sa.Text, nullable=False),
    sa.Column("rules", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

kept_out = sa.Table(
    "kept_out",
    metadata,
    _of_session("session_row", primary_key=True),
    sa.Column("key", sa.Text, primary_key=True, index=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)

quarantine_decisions = sa.Table(
    "quarantine_decisions",
    metadata,
    # By key alone: a decision holds for every session that has it, also for those to come.
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("decided_at", sa.Double, nullable=False),
    sa.Column("decided_by", sa.Text, nullable=False),
)

forgotten = sa.Table(
    "forgotten",
    metadata,
    # No foreign key: a session that is deleted and read again stays forgotten.
    sa.Column("session_id", sa.Text, primary_key=True),
    # The number of a request, or -1 for the whole session.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
)

templates = sa.Table(
    "templates",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("used", sa.Integer, nullable=False, server_default="0"),
    sa.Column("last_used_at", sa.Double),
    sa.Column("body", sa.Text, nullable=False),
    sa.UniqueConstraint("name", "version", name="one_template_a_version"),
)

effects = sa.Table(
    "effects",
    metadata,
    # Of a pattern by its id, of a template by `template:` and its name and version.
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tried", sa.Integer, nullable=False),
    sa.Column("gained", sa.Double, nullable=False),
)

revisions = sa.Table(
    "revisions",
    metadata,
    # Grows whenever what it names changes, so that what was read before is known to be stale.
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
)

reviews = sa.Table(
    "reviews",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    # No foreign key: the journal stays when the session goes.
    sa.Column("session_id", sa.Text, nullable=False, index=True),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("iterations", sa.Integer, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),
    # Row ids only grow: they say what came later where two have one time.
    sqlite_autoincrement=True,
)

writes = sa.Table(
    "writes",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("review_id", sa.Text, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("undone_at", sa.Double),
    sa.Column("provenance", sa.Text, nullable=False),
    sa.Column("evidence", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
