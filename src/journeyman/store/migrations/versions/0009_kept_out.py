"""What rules excluded from learning, what a person decided about it, and what people asked to
forget.
"""

from journeyman.store.migrations import create_tables

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    create_tables("kept_out", "quarantine_decisions", "forgotten")
