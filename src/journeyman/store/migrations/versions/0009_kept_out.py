"""What rules kept out of what is learned, what a person decided about it, and what a person wants
forgotten.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "kept_out",
        sa.Column(
            "session_row",
            row_id,
            sa.ForeignKey("sessions.row_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("ix_kept_out_key", "kept_out", ["key"])
    op.create_table(
        "quarantine_decisions",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("decided_at", sa.Double, nullable=False),
        sa.Column("decided_by", sa.Text, nullable=False),
    )
    op.create_table(
        "forgotten",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
    )
