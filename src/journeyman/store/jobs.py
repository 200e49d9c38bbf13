"""Jobs and their runs: added, changed, listed and shown by people; found, claimed, kept alive and
finished by schedulers. Each of these is one transaction.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from journeyman.records.errors import UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, JobState, JobTotals, Run, RunId
from journeyman.store.engine import Repository
from journeyman.store.job_tables import (
    LEASE,
    RUNNING,
    job_of,
    job_runs,
    job_values,
    jobs,
    leases,
    lock_job,
    readable,
    run_of,
    run_values,
    standing,
)
from journeyman.store.rows import inserting, or_replace, storable

_SHORTEST = 4
"""The fewest letters of an id that name a job: fewer are a slip."""
LIVING: tuple[JobState, ...] = ("scheduled", "paused", "done")

AHEAD_S = 600.0
"""A sign of life that reaches further ahead than this came from a clock that was wrong."""


def is_free(until: float, now: float) -> bool:
    """Whether a lease that lasts until then is over."""
    return not now < until <= now + AHEAD_S


class Seen(Struct, frozen=True, kw_only=True):
    """What a scheduler has to know: the lease, the jobs that are due and not running, the ids of
    `unread` ones that cannot be read, and the runs without a sign of life.
    """

    holder: str = ""
    until: float = 0.0
    due: tuple[Job, ...] = ()
    lost: tuple[Run, ...] = ()
    unread: tuple[str, ...] = ()


class Jobs(Repository):
    """The jobs of a store."""

    def add(self, job: Job) -> None:
        """Keep a new job. Raises WrongInput when its name is taken."""
        with self._writing("keeping a job", durable=True) as connection:
            try:
                connection.execute(jobs.insert().values(job_values(job)))
            except sa.exc.IntegrityError:
                raise WrongInput(
                    f"There is a job {job.name!r} already. Take another --name, or change that job "
                    "with --replace."
                ) from None

    def change(self, name: str, change: Callable[[Job], Job]) -> Job:
        """Change a job in one transaction; how it is then. Raises UnknownJob and WrongInput."""
        with self._writing("changing a job", durable=True) as connection:
            locked = lock_job(connection, _find(connection, name).id)
            if locked is None:
                raise _unknown(name)
            job = change(job_of(locked))
            try:
                _set_job(connection, locked.id, job_values(job))
            except sa.exc.IntegrityError:
                raise WrongInput(
                    f"There is another job {job.name!r} by now. Remove that one first."
                ) from None
            return job

    def delete(self, name: str) -> list[Run]:
        """Forget a job and its runs; those. Raises UnknownJob, WrongInput while it runs."""
        with self._writing("deleting a job", durable=True) as connection:
            job = _find(connection, name)
            lock_job(connection, job.id)
            of_job = job_runs.c.job_id == job.id
            rows = connection.execute(job_runs.select().where(of_job)).all()
            if any(row.status == "running" for row in rows):
                raise WrongInput(f"The job {job.name!r} is running. Wait for it to end.")
            connection.execute(job_runs.delete().where(of_job))
            connection.execute(jobs.delete().where(jobs.c.id == job.id))
            return list(readable(rows, run_of))

    def get(self, name: str) -> Job:
        """A job by its name, its id or the beginning of that. Raises UnknownJob."""
        with self._reading("reading jobs") as connection:
            return _find(connection, name)

    def list(self, states: Iterable[JobState] = LIVING) -> Sequence[Job]:
        """Jobs, the next to run first; those with nothing to come after them, by name."""
        asked = (
            jobs.select()
            .where(jobs.c.state.in_(tuple(states)))
            .order_by(jobs.c.next_run_at.is_(None), jobs.c.next_run_at, jobs.c.name)
        )
        return list(readable(self._read("reading jobs", asked), job_of))

    def runs(self, job: JobId, *, limit: int | None = None) -> Sequence[Run]:
        """The runs of a job, newest first."""
        asked = job_runs.select().where(job_runs.c.job_id == job)
        newest = asked.order_by(job_runs.c.started_at.desc(), job_runs.c.row_id.desc())
        return list(readable(self._read("reading jobs", newest.limit(limit)), run_of))

    def last_runs(self) -> dict[JobId, Run]:
        """The newest run of each job."""
        newest = sa.select(sa.func.max(job_runs.c.row_id)).group_by(job_runs.c.job_id)
        rows = self._read("reading jobs", job_runs.select().where(job_runs.c.row_id.in_(newest)))
        return {run.job: run for run in readable(rows, run_of)}

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
        rows = self._read("reading jobs", asked)
        tokens = [int(row.tokens) for row in rows if row.tokens is not None]
        costs = [row.cost_usd for row in rows if row.cost_usd is not None]
        return JobTotals(
            statuses={row.status: row.ended for row in rows},
            tokens=sum(tokens) if tokens else None,
            cost_usd=sum(costs) if costs else None,
        )

    def lease(self) -> tuple[str, float] | None:
        """Who runs jobs now or did last, and until when that holds."""
        found = self._read("reading jobs", leases.select().where(leases.c.name == LEASE))
        return (found[0].holder, found[0].until) if found else None

    def look(self, now: float, *, most: int) -> Seen:
        """What there is to do, in three queries that each look at an index only."""
        is_running = sa.exists().where(job_runs.c.job_id == jobs.c.id, RUNNING)
        due = (
            jobs.select()
            .where(jobs.c.state == "scheduled", jobs.c.next_run_at <= now, ~is_running)
            .order_by(jobs.c.next_run_at)
            .limit(most)
        )
        lost = job_runs.select().where(RUNNING, _is_over(job_runs.c.alive_until, now))
        with self._reading("looking for due jobs") as one:
            lease = one.execute(leases.select().where(leases.c.name == LEASE)).one_or_none()
            rows = one.execute(due).all()
            jobs_due = tuple(readable(rows, job_of))
            return Seen(
                holder=lease.holder if lease else "",
                until=lease.until if lease else 0.0,
                due=jobs_due,
                lost=tuple(readable(one.execute(lost), run_of)),
                unread=tuple({row.id for row in rows} - {job.id for job in jobs_due}),
            )

    def set_aside(self, id_: str, remark: str) -> None:
        """Let a job that cannot be read not come up again."""
        with self._writing("setting a job aside") as connection:
            _set_job(connection, id_, {"state": "paused", "remark": storable(remark)})

    def take_lease(self, holder: str, *, now: float, until: float) -> bool:
        """Hold the lease, or hold it for longer, if it is free or one's own; whether it worked."""
        is_over = (leases.c.until == now) | _is_over(leases.c.until, now)
        free = (leases.c.holder == holder) | is_over
        with self._writing("taking the scheduler's lease") as connection:
            insert = inserting(connection.dialect.name)(leases)
            values = {"name": LEASE, "holder": holder, "until": until}
            taking = or_replace(insert.values(values), "name", where=free)
            return connection.execute(taking.returning(leases.c.name)).first() is not None

    def release_lease(self, holder: str) -> None:
        """Let go of the lease, so that another need not wait for its time to be over."""
        mine = (leases.c.name == LEASE) & (leases.c.holder == holder)
        with self._writing("letting go of the scheduler's lease") as connection:
            connection.execute(leases.delete().where(mine))

    def claim(self, job: Job, run: Run, *, then: Job, skipped: Job, alive_until: float) -> bool:
        """Begin a run that is due: the job then stands as in `then`. False when the lease is
        another's, when the job stands otherwise or runs; or when that time had its run: then as in
        `skipped`.
        """
        mine = (leases.c.name == LEASE) & (leases.c.holder == run.holder)
        as_seen = [jobs.c[name] == getattr(job, name) for name in ("id", "state", "next_run_at")]
        with self._writing("claiming a job", durable=True) as connection:
            # Locked until the end of the transaction: nobody else can take the lease meanwhile.
            still = leases.update().where(mine, leases.c.until > run.started_at)
            held = connection.execute(still.values(holder=run.holder))
            moved = connection.execute(jobs.update().where(*as_seen).values(standing(then)))
            is_mine = held.rowcount and moved.rowcount
            if is_mine and _begun(connection, run, alive_until):
                return True
            running = sa.select(job_runs.c.id).where(RUNNING, job_runs.c.job_id == job.id)
            if not is_mine or connection.execute(running).first():
                connection.rollback()
            else:  # a clock that was set back: this time had its run, so the job only moves on
                _set_job(connection, job.id, standing(skipped))
            return False

    def begin(self, run: Run, *, alive_until: float) -> bool:
        """Begin a run by hand, without a lease; False when the job runs, or is gone."""
        with self._writing("beginning a run", durable=True) as connection:
            is_there = lock_job(connection, run.job) is not None
            return is_there and _begun(connection, run, alive_until)

    def keep_alive(self, runs: Iterable[RunId], *, until: float) -> frozenset[RunId]:
        """Give a sign of life for runs; those that are still going on, as far as is known here."""
        named = tuple(runs)
        if not named:
            return frozenset()
        open_ = sa.and_(RUNNING, job_runs.c.id.in_(named))
        with self._writing("keeping runs alive") as connection:
            connection.execute(job_runs.update().where(open_).values(alive_until=until))
            return frozenset(map(RunId, connection.scalars(sa.select(job_runs.c.id).where(open_))))

    def finish(
        self, run: Run, settle: Callable[[Job], Job], *, lost_at: float | None = None
    ) -> Job | None:
        """Say what became of a run; the job as `settle` makes it, None if it was said before."""
        open_ = sa.and_(RUNNING, job_runs.c.id == run.id)
        if lost_at is not None:
            open_ &= _is_over(job_runs.c.alive_until, lost_at)
        with self._writing("finishing a run", durable=True) as connection:
            row = lock_job(connection, run.job)
            over = connection.execute(job_runs.update().where(open_).values(run_values(run)))
            if not over.rowcount or row is None:
                return None
            read = next(readable([row], job_of), None)
            if read is None:  # how the run ended is kept all the same
                return None
            job = settle(read)
            _set_job(connection, job.id, standing(job))
            return job

    def amend(self, run: Run) -> None:
        """Keep what became known of a run after it had ended."""
        with self._writing("keeping a run") as connection:
            this = job_runs.c.id == run.id
            connection.execute(job_runs.update().where(this).values(run_values(run)))


def _set_job(connection: sa.Connection, id_: str, values: Mapping[str, object]) -> None:
    connection.execute(jobs.update().where(jobs.c.id == id_).values(values))


def _find(connection: sa.Connection, name: str) -> Job:
    """A job by its name, its id or the beginning of that; a removed one only if no other fits."""
    said = storable(name)
    # Not LIKE: SQLite's takes capital letters for small ones.
    begins = sa.func.substr(jobs.c.id, 1, max(_SHORTEST, len(said))) == said
    by_name = sa.case((jobs.c.name == said, 0), else_=1)
    asked = jobs.select().where((jobs.c.name == said) | begins).order_by(by_name, jobs.c.id)
    rows = connection.execute(asked.limit(20)).all() if said else []
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


def _unknown(name: str) -> UnknownJob:
    return UnknownJob(
        f"No job is called {name!r}, and no id begins so. See them with: journeyman jobs list"
    )


def _is_over(until: sa.ColumnElement[float], now: float) -> sa.ColumnElement[bool]:
    return (until < now) | (until > now + AHEAD_S)


def _begun(connection: sa.Connection, run: Run, alive_until: float) -> bool:
    insert = inserting(connection.dialect.name)(job_runs)
    values = run_values(run) | {"alive_until": alive_until}
    beginning = insert.values(values).on_conflict_do_nothing().returning(job_runs.c.id)
    return connection.execute(beginning).first() is not None
