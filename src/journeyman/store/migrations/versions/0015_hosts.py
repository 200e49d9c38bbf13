"""What the sessions of hosts started with, and what happened between Journeyman and the hosts."""

from journeyman.store.migrations import create_tables

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    create_tables("host_sessions", "host_events")
