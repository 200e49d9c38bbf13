"""The tables of jobs, and their rows as records."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from journeyman.records.errors import StoreUnavailable
from journeyman.records.job import Job, Run
from journeyman.store.rows import json_text, values_of
from journeyman.store.tables import columns, metadata, row_id, text, texts

logger = logging.getLogger(__name__)

LEASE = "scheduler"
_STANDING = ("state", "next_run_at", "runs", "failures", "remark")
_Record = TypeVar("_Record", Job, Run)

_THERE = sa.text("state <> 'removed'")
RUNNING = sa.text("job_runs.status = 'running'")
"""Not a value to be bound: only so can a database know that an index with this condition serves."""
_RUNNING = sa.text("status = 'running'")

jobs = sa.Table(
    "jobs",
    metadata,
    row_id(),
    text("id", unique=True),
    text("name"),
    # How it stands. The body has what the user wrote, so that the two never overwrite each other.
    text("state"),
    sa.Column("next_run_at", sa.Double),
    *columns(sa.Integer, "runs", "failures", nullable=False),
    *texts("remark", "body"),
    sa.Index("jobs_named", "name", unique=True, sqlite_where=_THERE, postgresql_where=_THERE),
    sa.Index("jobs_due", "state", "next_run_at"),
)

job_runs = sa.Table(
    "job_runs",
    metadata,
    row_id(),
    text("id", unique=True),
    text("job_id"),
    sa.Column("due_at", sa.Double),
    sa.Column("started_at", sa.Double, nullable=False),
    *texts("status", "holder"),
    sa.Column("alive_until", sa.Double, nullable=False),
    sa.Column("tokens", sa.BigInteger),
    sa.Column("cost_usd", sa.Double),
    text("body"),
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
    text("holder"),
    sa.Column("until", sa.Double, nullable=False),
)


def job_values(job: Job) -> dict[str, Any]:
    """A job as columns."""
    return values_of(job, jobs, body=json_text(job))


def standing(job: Job) -> dict[str, Any]:
    """How a job stands, as columns."""
    values = values_of(job, jobs)
    return {name: values[name] for name in _STANDING}


def run_values(run: Run) -> dict[str, Any]:
    """A run as columns, but for how long it is known to be alive."""
    return values_of(run, job_runs, job_id=run.job, body=json_text(run))


def job_of(row: sa.Row[Any]) -> Job:
    """The job in a row. Raises StoreUnavailable when it cannot be read."""
    job = _decoded(row, Job)
    return msgspec.structs.replace(job, **{name: getattr(row, name) for name in _STANDING})


def run_of(row: sa.Row[Any]) -> Run:
    """The run in a row. Raises StoreUnavailable when it cannot be read."""
    return _decoded(row, Run)


def readable(
    rows: Iterable[sa.Row[Any]], read: Callable[[sa.Row[Any]], _Record]
) -> Iterator[_Record]:
    """What is in rows, without those that this version of the program cannot read."""
    for row in rows:
        try:
            yield read(row)
        except StoreUnavailable as error:
            logger.warning("%s", error)


def lock_job(connection: sa.Connection, id_: str) -> sa.Row[Any] | None:
    """A job's row, which is nobody else's until the transaction ends; None if there is none. Who
    also writes runs locks the job first: two in another order would wait for each other.
    """
    return connection.execute(jobs.select().where(jobs.c.id == id_).with_for_update()).one_or_none()


def _decoded(row: sa.Row[Any], kind: type[_Record]) -> _Record:
    try:
        return msgspec.json.decode(row.body, type=kind)
    except msgspec.DecodeError as error:
        raise StoreUnavailable(
            f"The {kind.__name__.lower()} {row.id} in the database cannot be read: {error}. A "
            "newer Journeyman may have written it: upgrade this one."
        ) from error
