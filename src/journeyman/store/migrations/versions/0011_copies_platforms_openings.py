"""The platform and the opening of a session, and messages that are copies of others."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    for name in ("platform", "opening"):
        column = sa.Column(name, sa.Text, nullable=False, server_default="")
        op.add_column("sessions", column)
    copied = sa.Column("copied", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("messages", copied)
