"""The tables of jobs, and the conversion of their rows to records."""

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
_STATE_COLUMNS = ("state", "next_run_at", "runs", "failures", "remark")
_Record = TypeVar("_Record", Job, Run)

RUNNING = sa.text("job_runs.status = 'running'")
"""A literal, not a bound value: only then can a database use an index with this condition."""

jobs = sa.Table(
    "jobs",
    metadata,
    row_id(),
    text("id", unique=True),
    text("name"),
    # The job's state. The body has the user's definition, so that neither overwrites the other.
    text("state"),
    sa.Column("next_run_at", sa.Double),
    *columns(sa.Integer, "runs", "failures", nullable=False),
    *texts("remark", "body"),
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
    # Enforced by the database, whatever several schedulers believe: no scheduled time has two runs,
    # and (in schema.py) no job runs twice at the same moment.
    sa.Index("job_runs_once", "job_id", "due_at", unique=True),
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
    """Return the column values of a job."""
    return values_of(job, jobs, body=json_text(job))


def state_values(job: Job) -> dict[str, Any]:
    """Return the column values of a job's state."""
    values = values_of(job, jobs)
    return {name: values[name] for name in _STATE_COLUMNS}


def run_values(run: Run) -> dict[str, Any]:
    """Return the column values of a run, except its heartbeat."""
    return values_of(run, job_runs, job_id=run.job, body=json_text(run))


def job_of(row: sa.Row[Any]) -> Job:
    """Return the job in a row. Raise StoreUnavailable if it cannot be decoded."""
    job = _decoded(row, Job)
    return msgspec.structs.replace(job, **{name: getattr(row, name) for name in _STATE_COLUMNS})


def run_of(row: sa.Row[Any]) -> Run:
    """Return the run in a row. Raise StoreUnavailable if it cannot be decoded."""
    return _decoded(row, Run)


def readable(
    rows: Iterable[sa.Row[Any]], decode: Callable[[sa.Row[Any]], _Record]
) -> Iterator[_Record]:
    """Yield the records in rows, except those that this version of the program cannot decode."""
    for row in rows:
        try:
            yield decode(row)
        except StoreUnavailable as error:
            logger.warning("%s", error)


def lock_job(connection: sa.Connection, id_: str) -> sa.Row[Any] | None:
    """Lock a job's row until the transaction ends and return it, or None if there is none. A
    transaction that also writes runs locks the job first: another order could deadlock.
    """
    return connection.execute(jobs.select().where(jobs.c.id == id_).with_for_update()).one_or_none()


def _decoded(row: sa.Row[Any], kind: type[_Record]) -> _Record:
    try:
        return msgspec.json.decode(row.body, type=kind)
    except msgspec.DecodeError as error:
        raise StoreUnavailable(
            f"The {kind.__name__.lower()} {row.id} in the database cannot be read: {error}. A "
            "newer version of Journeyman may have written it: upgrade this one."
        ) from error
