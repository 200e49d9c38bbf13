"""Jobs, their runs and their tables. People add, change and list jobs; schedulers claim them, keep
them alive and finish them. Each operation is one transaction.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from journeyman.records.errors import UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, JobState, Run, RunId
from journeyman.store.engine import Repository
from journeyman.store.rows import (
    dialect_insert,
    find_by_prefix,
    json_text,
    storable,
    upsert,
    values_of,
)
from journeyman.store.tables import columns, metadata, row_id, text, texts

_MIN_PREFIX = 4
"""The shortest id prefix that identifies a job; a shorter one is probably a typing error."""
ACTIVE_STATES: tuple[JobState, ...] = ("scheduled", "paused", "done")

AHEAD_S = 600.0
"""A lease or heartbeat that reaches further ahead than this comes from a wrong clock."""

_LEASE = "scheduler"
_STATE_COLUMNS = ("state", "next_run_at", "held_since", "runs", "failures", "remark")

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
    *columns(sa.Double, "next_run_at", "held_since"),
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


def is_lease_free(until: float, now: float) -> bool:
    """Return whether a lease that lasts until then has ended."""
    return not now < until <= now + AHEAD_S


class SchedulerSnapshot(Struct, frozen=True, kw_only=True):
    """What a scheduler acts on: the lease, the due jobs that are not running, and the `lost` runs,
    which have no heartbeat.
    """

    holder: str = ""
    until: float = 0.0
    due: tuple[Job, ...] = ()
    lost: tuple[Run, ...] = ()


class Jobs(Repository):
    """The jobs of a store."""

    def add(self, job: Job) -> None:
        """Store a new job. Raise WrongInput if its name is taken."""
        with self._writing("storing a job", durable=True) as connection:
            try:
                connection.execute(jobs.insert().values(job_values(job)))
            except sa.exc.IntegrityError:
                raise WrongInput(
                    f"A job named {job.name!r} already exists. Choose another --name, or change "
                    "that job with --replace."
                ) from None

    def change(self, name: str, change: Callable[[Job], Job]) -> Job:
        """Change a job in one transaction and return it. Raise UnknownJob or WrongInput."""
        with self._writing("changing a job", durable=True) as connection:
            locked = _lock_job(connection, _find(connection, name).id)
            if locked is None:
                raise _unknown(name)
            job = change(_job_of(locked))
            try:
                _set_job(connection, locked.id, job_values(job))
            except sa.exc.IntegrityError:
                raise WrongInput(
                    f"Another job is now named {job.name!r}. Remove that job first."
                ) from None
            return job

    def delete(self, name: str) -> list[Run]:
        """Delete a job and its runs; return the runs. Raise UnknownJob, or WrongInput while it
        runs.
        """
        with self._writing("deleting a job", durable=True) as connection:
            job = _find(connection, name)
            _lock_job(connection, job.id)
            of_job = job_runs.c.job_id == job.id
            rows = connection.execute(job_runs.select().where(of_job)).all()
            if any(row.status == "running" for row in rows):
                raise WrongInput(f"The job {job.name!r} is running. Wait until it has ended.")
            connection.execute(job_runs.delete().where(of_job))
            connection.execute(jobs.delete().where(jobs.c.id == job.id))
            return list(map(_run_of, rows))

    def get(self, name: str) -> Job:
        """Return a job by its name, its id or a prefix of the id. Raise UnknownJob."""
        with self._reading("reading jobs") as connection:
            return _find(connection, name)

    def list(self, states: Iterable[JobState] = ACTIVE_STATES) -> Sequence[Job]:
        """Return jobs, the next to run first; those without a next run last, by name."""
        query = (
            jobs.select()
            .where(jobs.c.state.in_(tuple(states)))
            .order_by(jobs.c.next_run_at.is_(None), jobs.c.next_run_at, jobs.c.name)
        )
        return list(map(_job_of, self._read("reading jobs", query)))

    def runs(self, job: JobId, *, limit: int | None = None) -> Sequence[Run]:
        """Return the runs of a job, newest first."""
        query = job_runs.select().where(job_runs.c.job_id == job)
        newest = query.order_by(job_runs.c.started_at.desc(), job_runs.c.row_id.desc())
        return list(map(_run_of, self._read("reading jobs", newest.limit(limit))))

    def last_runs(self) -> dict[JobId, Run]:
        """Return the newest run of each job."""
        runs = sa.select(sa.func.max(job_runs.c.row_id)).where(job_runs.c.status != "missed")
        newest = runs.group_by(job_runs.c.job_id)
        rows = self._read("reading jobs", job_runs.select().where(job_runs.c.row_id.in_(newest)))
        return {run.job: run for run in map(_run_of, rows)}

    def lease(self) -> tuple[str, float] | None:
        """Return the current or last holder of the scheduler's lease, and when the lease ends."""
        rows = self._read("reading jobs", leases.select().where(leases.c.name == _LEASE))
        return (rows[0].holder, rows[0].until) if rows else None

    def look(self, now: float, *, most: int) -> SchedulerSnapshot:
        """Return what there is to do, in three queries that each read only an index."""
        is_running = sa.exists().where(job_runs.c.job_id == jobs.c.id, RUNNING)
        due = (
            jobs.select()
            .where(jobs.c.state == "scheduled", jobs.c.next_run_at <= now, ~is_running)
            .order_by(jobs.c.next_run_at)
            .limit(most)
        )
        lost = job_runs.select().where(RUNNING, _is_over(job_runs.c.alive_until, now))
        with self._reading("looking for due jobs") as connection:
            lease = connection.execute(leases.select().where(leases.c.name == _LEASE)).one_or_none()
            return SchedulerSnapshot(
                holder=lease.holder if lease else "",
                until=lease.until if lease else 0.0,
                due=tuple(map(_job_of, connection.execute(due))),
                lost=tuple(map(_run_of, connection.execute(lost))),
            )

    def take_lease(self, holder: str, *, now: float, until: float) -> bool:
        """Take or extend the lease if it is free or held by `holder`; return whether that
        worked.
        """
        is_over = (leases.c.until == now) | _is_over(leases.c.until, now)
        free = (leases.c.holder == holder) | is_over
        with self._writing("taking the scheduler's lease") as connection:
            insert = dialect_insert(connection.dialect.name)(leases)
            values = {"name": _LEASE, "holder": holder, "until": until}
            statement = upsert(insert.values(values), "name", where=free)
            return connection.execute(statement.returning(leases.c.name)).first() is not None

    def release_lease(self, holder: str) -> None:
        """Release the lease, so that another scheduler need not wait until it ends."""
        mine = (leases.c.name == _LEASE) & (leases.c.holder == holder)
        with self._writing("releasing the scheduler's lease") as connection:
            connection.execute(leases.delete().where(mine))

    def claim(
        self,
        job: Job,
        run: Run,
        *,
        then: Job,
        skipped: Job,
        alive_until: float,
        missed: Run | None = None,
    ) -> bool:
        """Begin a due run, record the due times that were `missed` before it, and set the job's
        state to that of `then`. Return False if another scheduler has the lease, or if the job's
        state has changed or it is running; also if this scheduled time already had its run: the job
        then gets the state of `skipped`.
        """
        mine = (leases.c.name == _LEASE) & (leases.c.holder == run.holder)
        as_seen = [jobs.c[name] == getattr(job, name) for name in ("id", "state", "next_run_at")]
        with self._writing("claiming a job", durable=True) as connection:
            # Locked until the transaction ends: no other scheduler can take the lease meanwhile.
            lock = leases.update().where(mine, leases.c.until > run.started_at)
            held = connection.execute(lock.values(holder=run.holder))
            moved = connection.execute(jobs.update().where(*as_seen).values(_state_values(then)))
            is_mine = held.rowcount and moved.rowcount
            if is_mine and _insert_run(connection, run, alive_until):
                if missed is not None:
                    _insert_run(connection, missed, alive_until)
                return True
            running = sa.select(job_runs.c.id).where(RUNNING, job_runs.c.job_id == job.id)
            if not is_mine or connection.execute(running).first():
                connection.rollback()
            else:  # the clock was set back: this time had its run, so the job only moves on
                _set_job(connection, job.id, _state_values(skipped))
            return False

    def begin(self, run: Run, *, alive_until: float) -> bool:
        """Begin a manual run, without a lease; return False if the job is running or gone."""
        with self._writing("starting a run", durable=True) as connection:
            exists = _lock_job(connection, run.job) is not None
            return exists and _insert_run(connection, run, alive_until)

    def keep_alive(self, runs: Iterable[RunId], *, until: float) -> frozenset[RunId]:
        """Renew the heartbeat of runs; return those that are still stored as running."""
        ids = tuple(runs)
        if not ids:
            return frozenset()
        open_ = sa.and_(RUNNING, job_runs.c.id.in_(ids))
        with self._writing("keeping runs alive") as connection:
            connection.execute(job_runs.update().where(open_).values(alive_until=until))
            return frozenset(map(RunId, connection.scalars(sa.select(job_runs.c.id).where(open_))))

    def finish(
        self, run: Run, settle: Callable[[Job], Job], *, lost_at: float | None = None
    ) -> Job | None:
        """Store the result of a run, and the job as changed by `settle`; return that job, or None
        if the run had already ended, or if the job is gone.
        """
        open_ = sa.and_(RUNNING, job_runs.c.id == run.id)
        if lost_at is not None:
            open_ &= _is_over(job_runs.c.alive_until, lost_at)
        with self._writing("finishing a run", durable=True) as connection:
            row = _lock_job(connection, run.job)
            ended = connection.execute(job_runs.update().where(open_).values(run_values(run)))
            if not ended.rowcount or row is None:
                return None
            job = settle(_job_of(row))
            _set_job(connection, job.id, _state_values(job))
            return job

    def amend(self, run: Run) -> None:
        """Store what became known about a run after it ended."""
        with self._writing("storing a run") as connection:
            this = job_runs.c.id == run.id
            connection.execute(job_runs.update().where(this).values(run_values(run)))


def job_values(job: Job) -> dict[str, Any]:
    """Return the column values of a job."""
    return values_of(job, jobs, body=json_text(job))


def _state_values(job: Job) -> dict[str, Any]:
    values = values_of(job, jobs)
    return {name: values[name] for name in _STATE_COLUMNS}


def run_values(run: Run) -> dict[str, Any]:
    """Return the column values of a run, except its heartbeat."""
    return values_of(run, job_runs, job_id=run.job, body=json_text(run))


def _job_of(row: sa.Row[Any]) -> Job:
    job = msgspec.json.decode(row.body, type=Job)
    return msgspec.structs.replace(job, **{name: getattr(row, name) for name in _STATE_COLUMNS})


def _run_of(row: sa.Row[Any]) -> Run:
    return msgspec.json.decode(row.body, type=Run)


def _lock_job(connection: sa.Connection, id_: str) -> sa.Row[Any] | None:
    """Lock a job's row until the transaction ends and return it, or None if there is none. A
    transaction that also writes runs locks the job first: another order could deadlock.
    """
    return connection.execute(jobs.select().where(jobs.c.id == id_).with_for_update()).one_or_none()


def _set_job(connection: sa.Connection, id_: str, values: Mapping[str, object]) -> None:
    connection.execute(jobs.update().where(jobs.c.id == id_).values(values))


def _find(connection: sa.Connection, name: str) -> Job:
    """Return a job by its name, its id or a prefix of the id; a removed job only as a last
    resort.
    """
    named = jobs.select().where(jobs.c.name == storable(name)).order_by(jobs.c.id)
    rows = list(connection.execute(named))
    begin = find_by_prefix(connection, jobs, name)
    by_id = [row for row in begin if len(name) >= _MIN_PREFIX or row.id == name]
    matches = [row for row in rows if row.state != "removed"] or by_id or rows
    if not matches:
        raise _unknown(name)
    if len(matches) > 1:
        ids = ", ".join(row.id for row in matches)
        raise UnknownJob(f"More than one job matches {name!r}: {ids}. Use the whole id.")
    return _job_of(matches[0])


def _unknown(name: str) -> UnknownJob:
    return UnknownJob(
        f"No job is named {name!r} or has an id that starts with it. List the jobs with: "
        "journeyman jobs list"
    )


def _is_over(until: sa.ColumnElement[float], now: float) -> sa.ColumnElement[bool]:
    return (until < now) | (until > now + AHEAD_S)


def _insert_run(connection: sa.Connection, run: Run, alive_until: float) -> bool:
    insert = dialect_insert(connection.dialect.name)(job_runs)
    values = run_values(run) | {"alive_until": alive_until}
    beginning = insert.values(values).on_conflict_do_nothing().returning(job_runs.c.id)
    return connection.execute(beginning).first() is not None
