"""Jobs, their runs, and the lease of the active scheduler."""

from journeyman.store.migrations import create_tables

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    create_tables("jobs", "job_runs", "leases")
