"""Jobs and their runs as people handle them: added, changed, listed, shown. What schedulers do with
them is in `job_claims`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from journeyman.records.errors import StoreUnavailable, UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, JobState, JobTotals, Run
from journeyman.store.engine import explained, writing
from journeyman.store.job_tables import job_runs, jobs, leases
from journeyman.store.rows import storable
from journeyman.store.values import inserting, json_text

_decode_job = msgspec.json.Decoder(Job).decode
_decode_run = msgspec.json.Decoder(Run).decode

logger = logging.getLogger(__name__)

_Kept = TypeVar("_Kept", Job, Run)

_SHORTEST = 4
"""So many letters of an id at least: fewer are a slip."""
LEASE = "scheduler"
LIVING: tuple[JobState, ...] = ("scheduled", "paused", "done")


class Jobs:
    """The jobs of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def add(self, job: Job) -> None:
        """Keep a new job. Raises WrongInput when its name is taken."""
        values = {"id": job.id, "name": storable(job.name), "body": json_text(job), **standing(job)}
        with writing(self._engine, "keeping a job", durable=True) as connection:
            insert = inserting(connection.dialect.name)
            # Not the count of rows, which PostgreSQL's driver does not tell of an insert.
            adding = insert(jobs).values(values).on_conflict_do_nothing().returning(jobs.c.id)
            if connection.execute(adding).first() is None:
                raise WrongInput(
                    f"There is a job {job.name!r} already. Take another --name, or change that job "
                    "with --replace."
                )

    def change(self, name: str, change: Callable[[Job], Job]) -> Job:
        """Change a job in one transaction; how it is then. Raises UnknownJob, WrongInput when the
        name it would have is taken.
        """
        with writing(self._engine, "changing a job", durable=True) as connection:
            id_ = find_job(connection, name).id
            locked = lock_job(connection, id_)
            if locked is None:
                raise _unknown(name)
            job = change(job_of(locked))
            taken = (jobs.c.name == storable(job.name)) & (jobs.c.id != id_)
            if (
                job.state != "removed"
                and connection.execute(
                    sa.select(jobs.c.id).where(taken, jobs.c.state != "removed")
                ).first()
            ):
                raise WrongInput(
                    f"There is another job {job.name!r} by now. Remove that one first."
                )
            values = {"name": storable(job.name), "body": json_text(job), **standing(job)}
            connection.execute(jobs.update().where(jobs.c.id == id_).values(values))
            return job

    def delete(self, name: str) -> list[Run]:
        """Forget a job and its runs; those. Raises UnknownJob, WrongInput while it runs."""
        with writing(self._engine, "deleting a job", durable=True) as connection:
            job = find_job(connection, name)
            lock_job(connection, job.id)
            of_job = job_runs.c.job_id == job.id
            rows = connection.execute(job_runs.select().where(of_job)).all()
            if any(row.status == "running" for row in rows):
                raise WrongInput(f"The job {job.name!r} is running. Wait for it to end.")
            gone = list(readable(rows, run_of))
            connection.execute(job_runs.delete().where(of_job))
            connection.execute(jobs.delete().where(jobs.c.id == job.id))
            return gone

    def get(self, name: str) -> Job:
        """A job by its name, its id or the beginning of that. Raises UnknownJob."""
        with explained(self._engine.url, "reading jobs"), self._engine.connect() as connection:
            return find_job(connection, name)

    def list(self, states: Iterable[JobState] = LIVING) -> Sequence[Job]:
        """Jobs, the next to run first; those with nothing to come after them, by name."""
        asked = (
            jobs.select()
            .where(jobs.c.state.in_(tuple(states)))
            .order_by(jobs.c.next_run_at.is_(None), jobs.c.next_run_at, jobs.c.name)
        )
        return list(readable(self._read(asked), job_of))

    def runs(self, job: JobId, *, limit: int | None = None) -> Sequence[Run]:
        """The runs of a job, newest first."""
        asked = job_runs.select().where(job_runs.c.job_id == job)
        newest = asked.order_by(job_runs.c.started_at.desc(), job_runs.c.row_id.desc())
        return list(readable(self._read(newest.limit(limit)), run_of))

    def last_runs(self) -> dict[JobId, Run]:
        """The newest run of each job."""
        newest = sa.select(sa.func.max(job_runs.c.row_id)).group_by(job_runs.c.job_id)
        rows = self._read(job_runs.select().where(job_runs.c.row_id.in_(newest)))
        return {run.job: run for run in readable(rows, run_of)}

    def run(self, id_: str) -> Run:
        """A run by its id. Raises UnknownJob."""
        found = self._read(job_runs.select().where(job_runs.c.id == storable(id_)))
        if not found:
            raise UnknownJob(f"No run has the id {id_!r}. See them with: journeyman jobs show NAME")
        return run_of(found[0])

    def totals(self, job: JobId) -> JobTotals:
        """All runs of a job, summed up."""
        columns = job_runs.c
        asked: sa.Select[Any] = (
            sa.select(
                columns.status,
                sa.func.count().label("ended"),
                sa.func.sum(columns.tokens).label("tokens"),
                sa.func.sum(columns.cost_usd).label("cost_usd"),
            )
            .where(columns.job_id == job)
            .group_by(columns.status)
            .order_by(sa.desc("ended"))
        )
        rows = self._read(asked)
        tokens = [int(row.tokens) for row in rows if row.tokens is not None]
        costs = [float(row.cost_usd) for row in rows if row.cost_usd is not None]
        return JobTotals(
            statuses={row.status: row.ended for row in rows},
            tokens=sum(tokens) if tokens else None,
            cost_usd=sum(costs) if costs else None,
        )

    def lease(self) -> tuple[str, float] | None:
        """Who runs jobs now or did last, and until when that holds."""
        found = self._read(leases.select().where(leases.c.name == LEASE))
        return (found[0].holder, found[0].until) if found else None

    def _read(self, asked: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with explained(self._engine.url, "reading jobs"), self._engine.connect() as connection:
            return connection.execute(asked).all()


def find_job(connection: sa.Connection, name: str) -> Job:
    """A job by its name, its id or the beginning of that; a removed one only if no other fits."""
    said = storable(name)
    # Not LIKE: SQLite's takes capital letters for small ones.
    begins = sa.func.substr(jobs.c.id, 1, max(_SHORTEST, len(said))) == said
    by_name = sa.case((jobs.c.name == said, 0), else_=1)
    asked = jobs.select().where((jobs.c.name == said) | begins).order_by(by_name, jobs.c.id)
    asked = asked.limit(20)
    rows = connection.execute(asked).all() if said else []
    for found in (
        [row for row in rows if row.name == said and row.state != "removed"],
        [row for row in rows if row.id == said],
        [row for row in rows if row.name == said],
        rows,
    ):
        if len(found) == 1:
            return job_of(found[0])
        if found:
            ids = ", ".join(row.id for row in found)
            raise UnknownJob(f"More than one job could be meant by {name!r}: {ids}. Give the id.")
    raise _unknown(name)


def lock_job(connection: sa.Connection, id_: str) -> sa.Row[Any] | None:
    """A job's row, which is nobody else's until the transaction ends; None if there is none. Who
    also writes runs locks the job first: two in another order would wait for each other.
    """
    return connection.execute(jobs.select().where(jobs.c.id == id_).with_for_update()).one_or_none()


def _unknown(name: str) -> UnknownJob:
    return UnknownJob(
        f"No job is called {name!r}, and no id begins so. See them with: journeyman jobs list"
    )


def standing(job: Job) -> dict[str, object]:
    """How a job stands, as columns."""
    return {
        "state": job.state,
        "next_run_at": job.next_run_at,
        "runs": job.runs,
        "failures": job.failures,
        "remark": storable(job.remark),
    }


def run_values(run: Run) -> dict[str, object]:
    """A run as columns, but for how long it is known to be alive."""
    return {
        "id": run.id,
        "job_id": run.job,
        "due_at": run.due_at,
        "started_at": run.started_at,
        "status": run.status,
        "holder": storable(run.holder),
        "tokens": run.tokens,
        "cost_usd": run.cost_usd,
        "body": json_text(run),
    }


def readable(rows: Iterable[sa.Row[Any]], read: Callable[[sa.Row[Any]], _Kept]) -> Iterator[_Kept]:
    """What is in rows, without those that this version of the program cannot read: one of them is
    no reason not to have the others.
    """
    for row in rows:
        try:
            yield read(row)
        except StoreUnavailable as error:
            logger.warning("%s", error)


def job_of(row: sa.Row[Any]) -> Job:
    """The job in a row. Raises StoreUnavailable when it cannot be read."""
    return msgspec.structs.replace(
        _decoded(_decode_job, row, "job"),
        state=row.state,
        next_run_at=row.next_run_at,
        runs=row.runs,
        failures=row.failures,
        remark=row.remark,
    )


def run_of(row: sa.Row[Any]) -> Run:
    """The run in a row. Raises StoreUnavailable when it cannot be read."""
    return _decoded(_decode_run, row, "run")


def _decoded(decode: Callable[[str], _Kept], row: sa.Row[Any], what: str) -> _Kept:
    try:
        return decode(row.body)
    except msgspec.DecodeError as error:
        raise StoreUnavailable(
            f"The {what} {row.id} in the database cannot be read: {error}. A newer Journeyman may "
            "have written it: upgrade this one."
        ) from error
