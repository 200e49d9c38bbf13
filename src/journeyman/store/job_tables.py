"""The tables of jobs, described once for both databases. The migrations make them; a test holds the
two against each other.
"""

import sqlalchemy as sa

from journeyman.store.tables import metadata

_row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_THERE = sa.text("state <> 'removed'")
RUNNING = sa.text("job_runs.status = 'running'")
"""Not a value to be bound: only so can a database know that an index with this condition serves."""
_RUNNING = sa.text("status = 'running'")

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    # How it stands. The body has what the user wrote, so that the two never overwrite each other.
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("next_run_at", sa.Double),
    sa.Column("runs", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("remark", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Index("jobs_named", "name", unique=True, sqlite_where=_THERE, postgresql_where=_THERE),
    sa.Index("jobs_due", "state", "next_run_at"),
)

job_runs = sa.Table(
    "job_runs",
    metadata,
    sa.Column("row_id", _row_id, primary_key=True),
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
    # What the database itself sees to: no time on a schedule has two runs, and no job runs twice at
    # the same moment, whatever several schedulers believe.
    sa.Index("job_runs_once", "job_id", "due_at", unique=True),
    sa.Index(
        "job_runs_one_at_a_time",
        "job_id",
        unique=True,
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    ),
    sa.Index("job_runs_of_job", "job_id", "started_at"),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("until", sa.Double, nullable=False),
)
