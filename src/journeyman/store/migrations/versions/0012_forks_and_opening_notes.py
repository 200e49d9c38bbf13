"""What is needed to count shared messages of forks once, and notes on openings. Logs that may
contain copies are read again once: how far they were read is forgotten.
"""

import sqlalchemy as sa
from alembic import op

from journeyman.store.migrations import create_tables

revision = "0012"
down_revision = "0011"

_READERS = ("claude_code", "codex", "hermes", "hermes_export")


def upgrade() -> None:
    op.add_column("sessions", sa.Column("root", sa.Text, nullable=False, server_default=""))
    op.create_index("ix_sessions_root", "sessions", ["root"])
    is_summary = sa.text("kind = 'summary'")
    op.create_index(
        "ix_messages_summary",
        "messages",
        ["key"],
        sqlite_where=is_summary,
        postgresql_where=is_summary,
    )
    copied = sa.Column("copied", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("usage", copied)
    create_tables("opening_notes")
    logs = sa.table("logs", sa.column("reader"))
    op.execute(logs.delete().where(logs.c.reader.in_(_READERS)))
