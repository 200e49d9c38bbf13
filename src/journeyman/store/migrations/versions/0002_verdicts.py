"""Verdicts, so that a session is judged once.

They are kept as one value for each session, because they are derived: read whole, and made anew
whenever the session or the rules change.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "verdicts",
        sa.Column(
            "session_row",
            row_id,
            sa.ForeignKey("sessions.row_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("rules", sa.Text, nullable=False),
        sa.Column("calls", sa.LargeBinary, nullable=False),
    )
