"""Verdicts on the calls of a session, so that each session is judged once."""

from journeyman.store.migrations import create_tables

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    create_tables("verdicts")
