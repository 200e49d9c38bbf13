"""Patterns and templates: what was learned from sessions.

A pattern is shown as one session had it, and goes when that session is deleted. How often it was
seen is kept for each session, so that a session that changed can be counted anew. Templates are
values of their own: they hold copies, and stay.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def of_session(name: str, **options: Any) -> "sa.Column[int]":
        key = sa.ForeignKey("sessions.row_id", ondelete="CASCADE")
        return sa.Column(name, row_id, key, **options)

    def of_pattern() -> "sa.Column[int]":
        key = sa.ForeignKey("patterns.row_id", ondelete="CASCADE")
        return sa.Column("pattern_row", row_id, key, primary_key=True)

    op.create_table(
        "patterns",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        of_session("origin_row", nullable=False, index=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("task_type", sa.Text, nullable=False),
        sa.Column("quarantined", sa.Text, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("shown_at", sa.Double),
        sa.Column("times", sa.Integer, nullable=False, server_default="0"),
        sa.Column("session_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("first_seen", sa.Double),
        sa.Column("last_seen", sa.Double),
        sa.Column("models", sa.Text, nullable=False, server_default="[]"),
        sa.Column("intent", sa.Text, nullable=False),
        sa.Column("steps", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("patterns_by_kind", "patterns", ["quarantined", "kind"])
    op.create_table(
        "pattern_vectors",
        of_pattern(),
        sa.Column("words", sa.LargeBinary, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "sightings",
        of_pattern(),
        of_session("session_row", primary_key=True, index=True),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("first_seen", sa.Double),
        sa.Column("last_seen", sa.Double),
        sa.Column("models", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "mined",
        of_session("session_row", primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("outcome", sa.Double),
        sa.Column("end_reason", sa.Text, nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "templates",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer, nullable=False, server_default="0"),
        sa.Column("last_used_at", sa.Double),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("name", "version", name="one_template_a_version"),
    )
    op.create_table(
        "effects",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tried", sa.Integer, nullable=False),
        sa.Column("gained", sa.Double, nullable=False),
    )
    op.create_table(
        "revisions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.execute("INSERT INTO revisions (name, number) VALUES ('patterns', 0)")
