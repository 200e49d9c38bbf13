"""What rules kept out of what is learned, what a person decided about it, and what a person wants
forgotten.
"""

from journeyman.store.migrations import create_tables

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    create_tables("kept_out", "quarantine_decisions", "forgotten")
