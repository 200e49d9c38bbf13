"""Jobs, their runs, and the lease of the one scheduler that is at work."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "jobs",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("next_run_at", sa.Double),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("remark", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    there = sa.text("state <> 'removed'")
    op.create_index(
        "jobs_named", "jobs", ["name"], unique=True, sqlite_where=there, postgresql_where=there
    )
    op.create_index("jobs_due", "jobs", ["state", "next_run_at"])
    op.create_table(
        "job_runs",
        sa.Column("row_id", row_id, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("due_at", sa.Double),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("alive_until", sa.Double, nullable=False),
        sa.Column("tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Double),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("job_runs_once", "job_runs", ["job_id", "due_at"], unique=True)
    running = sa.text("status = 'running'")
    op.create_index(
        "job_runs_one_at_a_time",
        "job_runs",
        ["job_id"],
        unique=True,
        sqlite_where=running,
        postgresql_where=running,
    )
    op.create_index("job_runs_of_job", "job_runs", ["job_id", "started_at"])
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
