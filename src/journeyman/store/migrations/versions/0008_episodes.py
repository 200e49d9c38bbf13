"""Episodes: each request with the calls that served it, and what it is found by. Patterns are no
longer searched; what was learned before is learned again under the new rules.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "episodes",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column(
            "session_row",
            row_id,
            sa.ForeignKey("sessions.row_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", sa.Double),
        sa.Column("ending", sa.Text, nullable=False),
        sa.Column("quarantined", sa.Text, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
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
    op.drop_table("pattern_vectors")
