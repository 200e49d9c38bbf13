"""The tables, described once for both databases. Short columns come before long text, so that
SQLite can count and list rows without reading the overflow pages of text.
"""

from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData()
row_number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def row_id() -> "sa.Column[int]":
    return sa.Column("row_id", row_number, primary_key=True)


def text(name: str, **options: Any) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, nullable=False, **options)


def texts(*names: str, **options: Any) -> "list[sa.Column[str]]":
    return columns(sa.Text, *names, nullable=False, **options)


def columns(kind: type[Any], *names: str, **options: Any) -> "list[sa.Column[Any]]":
    """Several columns of the same type."""
    return [sa.Column(name, kind, **options) for name in names]


def of_session(name: str = "session_row", **options: Any) -> "sa.Column[int]":
    """The session that a row belongs to, and is deleted with."""
    key = sa.ForeignKey("sessions.row_id", ondelete="CASCADE")
    return sa.Column(name, row_number, key, **options)


def table(name: str, *parts: sa.schema.SchemaItem, **options: Any) -> sa.Table:
    return sa.Table(name, metadata, *parts, **options)


sessions = table(
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
    # No foreign key: a parent may never have been imported, or may come later.
    sa.Column("parent_id", sa.Text, index=True),
    sa.Column("lineage", sa.Text),
    # The key of the first message, if such keys are unique everywhere: a fork has the same one.
    text("root", server_default="", index=True),
    *texts("title", "cwd", server_default=""),
    text("project", server_default="", index=True),
    text("git_branch", server_default=""),
    text("platform", server_default="", index=True),
    text("opening", server_default=""),
    text("log", server_default="", index=True),
    text("tags", server_default="[]"),
    text("details", server_default="{}"),
    *columns(sa.Integer, "messages", "calls", "answered", nullable=False, server_default="0"),
    sa.Column("generations", sa.Integer, nullable=False, server_default="1"),
    text("digest", server_default=""),
)

messages = table(
    "messages",
    row_id(),
    of_session(nullable=False),
    text("key"),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("copied", sa.Boolean, nullable=False, server_default=sa.false()),
    *texts("role", "kind"),
    sa.Column("at", sa.Double),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    *texts("model", "tool_call_id", "tool_name", "finish_reason"),
    *columns(sa.Text, "recorded", "tool_calls"),
    *texts("text", "reasoning"),
    # What a search finds in the calls; derived from them.
    sa.Column("call_text", sa.Text),
    sa.UniqueConstraint("session_row", "key", name="one_message_a_key"),
    # Row ids are never reused, so that a larger one is always newer: search relies on it.
    sqlite_autoincrement=True,
)
usage = table(
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
    # Also in the session that this one was forked from, where it counts.
    sa.Column("copied", sa.Boolean, nullable=False, server_default=sa.false()),
    # Rows are only found by their key: this saves SQLite a second tree.
    sqlite_with_rowid=False,
)

verdicts = table(
    "verdicts",
    of_session(primary_key=True),
    # The content of the session and the rules that the verdicts are for; otherwise they are stale.
    *texts("digest", "rules"),
    sa.Column("calls", sa.LargeBinary, nullable=False),
)

logs = table(
    "logs",
    sa.Column("log", sa.Text, primary_key=True),
    # Separate from the state, so that an unchanged log is recognised without decoding it.
    text("reader"),
    *columns(sa.BigInteger, "size", "mtime_ns", nullable=False),
    text("state"),
)

session_notes = table(
    "session_notes",
    # What is known of a host's session beside its log, which may be imported later or read again:
    # its opening, and for whom Journeyman started it.
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, primary_key=True),
    *texts("opening", "owner"),
)

host_sessions = table(
    "host_sessions",
    # What a session of a host started with; it keeps that when it is resumed or compressed.
    sa.Column("host", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, primary_key=True),
    *texts("state", "opening", "reason"),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    text("shown"),
    text("content"),
)

host_events = table(
    "host_events",
    row_id(),
    sa.Column("at", sa.Double, nullable=False, index=True),
    *texts("host", "session_id", "kind", "outcome"),
    sa.Column("ms", sa.Double, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    text("detail"),
)

deleted = table(
    "deleted",
    # A session that a person deleted stays deleted, even if its log grows.
    sa.Column("id", sa.Text, primary_key=True),
)

episodes = table(
    "episodes",
    row_id(),
    of_session(nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("at", sa.Double),
    text("ending"),
    # The search index, and what the episode shows; read without the texts below.
    *columns(sa.LargeBinary, "words", "call_words", "vector", "call_vector", nullable=False),
    *texts("observed", "request", "steps"),
    sa.UniqueConstraint("session_row", "number", name="one_episode_a_number"),
    sqlite_autoincrement=True,
)

mined = table(
    "mined",
    of_session(primary_key=True),
    # The state of the session when it was mined, and the rules used.
    text("digest"),
    sa.Column("outcome", sa.Double),
    *texts("end_reason", "rules", "reason"),
)

forgotten = table(
    "forgotten",
    # No foreign key: a session that is deleted and imported again stays forgotten.
    sa.Column("session_id", sa.Text, primary_key=True),
    # The number of a request, or -1 for the whole session.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
)

fact_decisions = table(
    "fact_decisions",
    # No foreign key: a decision outlives the sessions that showed the fact.
    sa.Column("project", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    *texts("state", "kind", "text"),
    sa.Column("at", sa.Double, nullable=False),
)

templates = table(
    "templates",
    row_id(),
    text("name"),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("used", sa.Integer, nullable=False, server_default="0"),
    sa.Column("last_used_at", sa.Double),
    text("body"),
    sa.UniqueConstraint("name", "version", name="one_template_a_version"),
)

schema_version = table(
    "schema_version",
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
)

revisions = table(
    "revisions",
    # Grows whenever what was learned changes, so that stale copies are recognised.
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False),
)

reviews = table(
    "reviews",
    row_id(),
    text("id", unique=True),
    # No foreign key: the journal stays when the session is deleted.
    text("session_id", index=True),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("told_at", sa.Double),
    *texts("status", "model"),
    sa.Column("iterations", sa.Integer, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    *texts("error", "drafts", "details"),
    # Row ids only grow: they order rows with equal times.
    sqlite_autoincrement=True,
)

writes = table(
    "writes",
    row_id(),
    text("id", unique=True),
    sa.Column("review_id", sa.Text, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("undone_at", sa.Double),
    *texts("provenance", "evidence", "body"),
    sqlite_autoincrement=True,
)

confirmations = table(
    "confirmations",
    # The number of the audit entry that recorded its submission.
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    text("id", unique=True),
    text("requester"),
    text("status", index=True),
    sa.Column("created_at", sa.Double, nullable=False),
    text("body"),
)

idempotency_keys = table(
    "idempotency_keys",
    sa.Column("requester", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    text("confirmation"),
)

whitelist = table(
    "whitelist",
    row_id(),
    text("id", unique=True),
    text("action", index=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    text("body"),
    sqlite_autoincrement=True,
)

credentials = table(
    "credentials",
    row_id(),
    text("id", unique=True),
    *texts("kind", "name"),
    # The secret is long and random, so a plain digest cannot be reversed by guessing.
    text("secret_digest", unique=True),
    sa.Column("revoked", sa.Boolean, nullable=False),
    text("body"),
    sa.Index("credentials_by_name", "kind", "name"),
    sqlite_autoincrement=True,
)

audit = table(
    "audit",
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    text("kind"),
    text("confirmation", index=True),
    # The exact text that the digest covers.
    *texts("entry", "digest"),
)
