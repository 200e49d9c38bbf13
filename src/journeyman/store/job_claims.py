"""What schedulers do with jobs: hold the lease, find what is due, claim it, keep it alive, and say
what became of it. Each is one transaction, and the tables' own rules hold whatever two schedulers
believe at the same time.
"""

from collections.abc import Callable, Iterable

import sqlalchemy as sa
from msgspec import Struct

from journeyman.records.job import Job, Run, RunId
from journeyman.store.engine import explained, writing
from journeyman.store.job_tables import RUNNING, job_runs, jobs, leases
from journeyman.store.jobs import (
    LEASE,
    job_of,
    lock_job,
    readable,
    run_of,
    run_values,
    standing,
)
from journeyman.store.rows import storable
from journeyman.store.values import inserting

AHEAD_S = 600.0
"""Nobody says that he is alive for so long from now on: who did had a clock that was wrong."""


def is_free(until: float, now: float) -> bool:
    """Whether a lease that lasts until then is over."""
    return not now < until <= now + AHEAD_S


class Seen(Struct, frozen=True, kw_only=True):
    """What a scheduler has to know at one moment: who holds the lease and until when, the jobs
    that are due and not running, and the runs of which no sign of life has come in time. `unread`
    are the ids of jobs that are due and cannot be read.
    """

    holder: str = ""
    until: float = 0.0
    due: tuple[Job, ...] = ()
    lost: tuple[Run, ...] = ()
    unread: tuple[str, ...] = ()

    def is_free(self, now: float) -> bool:
        """Whether nobody holds the lease."""
        return is_free(self.until, now)


class JobClaims:
    """The scheduler's side of the jobs of a store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

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
        with explained(self._engine.url, "looking for due jobs"), self._engine.connect() as one:
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
        with writing(self._engine, "setting a job aside") as connection:
            aside = {"state": "paused", "remark": storable(remark)}
            connection.execute(jobs.update().where(jobs.c.id == id_).values(aside))

    def take_lease(self, holder: str, *, now: float, until: float) -> bool:
        """Hold the lease, or hold it for longer; whether that worked. It is free when its time is
        over.
        """
        is_over = (leases.c.until == now) | _is_over(leases.c.until, now)
        free = (leases.c.holder == holder) | is_over
        with writing(self._engine, "taking the scheduler's lease") as connection:
            insert = inserting(connection.dialect.name)(leases)
            taking = insert.values(name=LEASE, holder=holder, until=until).on_conflict_do_update(
                index_elements=["name"], set_={"holder": holder, "until": until}, where=free
            )
            return connection.execute(taking.returning(leases.c.name)).first() is not None

    def release_lease(self, holder: str) -> None:
        """Let go of the lease, so that another need not wait for its time to be over."""
        mine = (leases.c.name == LEASE) & (leases.c.holder == holder)
        with writing(self._engine, "letting go of the scheduler's lease") as connection:
            connection.execute(leases.delete().where(mine))

    def claim(self, job: Job, run: Run, *, then: Job, skipped: Job, alive_until: float) -> bool:
        """Begin a run that is due: it is kept, and the job stands as in `then`. False when the
        lease is another's by now, when the job no longer stands as it was seen, when it runs, or
        when there was a run for that time already: then the job stands as in `skipped`.
        """
        mine = (leases.c.name == LEASE) & (leases.c.holder == run.holder)
        as_seen = (
            (jobs.c.id == job.id)
            & (jobs.c.state == job.state)
            & (jobs.c.next_run_at == job.next_run_at)
        )
        with writing(self._engine, "claiming a job", durable=True) as connection:
            # Locked until the end of the transaction: nobody else can take the lease meanwhile.
            held = connection.execute(
                leases.update()
                .where(mine, leases.c.until > run.started_at)
                .values(holder=run.holder)
            )
            moved = connection.execute(jobs.update().where(as_seen).values(standing(then)))
            if not held.rowcount or not moved.rowcount:
                connection.rollback()
                return False
            if _begun(connection, run, alive_until):
                return True
            if connection.execute(
                sa.select(job_runs.c.id).where(RUNNING, job_runs.c.job_id == job.id)
            ).first():
                connection.rollback()
                return False
            # A clock that was set back: this time had its run, so the job only moves on.
            this = jobs.c.id == job.id
            connection.execute(jobs.update().where(this).values(standing(skipped)))
            return False

    def begin(self, run: Run, *, alive_until: float) -> bool:
        """Begin a run by hand, which needs no lease and moves nothing; False when the job runs, or
        is gone.
        """
        with writing(self._engine, "beginning a run", durable=True) as connection:
            is_there = lock_job(connection, run.job) is not None
            return is_there and _begun(connection, run, alive_until)

    def keep_alive(self, runs: Iterable[RunId], *, until: float) -> frozenset[RunId]:
        """Give a sign of life for runs; those that are still going on, as far as is known here."""
        named = tuple(runs)
        if not named:
            return frozenset()
        open_ = sa.and_(RUNNING, job_runs.c.id.in_(named))
        with writing(self._engine, "keeping runs alive") as connection:
            connection.execute(job_runs.update().where(open_).values(alive_until=until))
            return frozenset(map(RunId, connection.scalars(sa.select(job_runs.c.id).where(open_))))

    def finish(
        self, run: Run, settle: Callable[[Job], Job], *, lost_at: float | None = None
    ) -> Job | None:
        """Say what became of a run, and let the job stand as `settle` makes it; that, or None when
        it was said before. With `lost_at`, only if there was still no sign of life then.
        """
        open_ = sa.and_(RUNNING, job_runs.c.id == run.id)
        if lost_at is not None:
            open_ &= _is_over(job_runs.c.alive_until, lost_at)
        this = jobs.c.id == run.job
        with writing(self._engine, "finishing a run", durable=True) as connection:
            row = lock_job(connection, run.job)
            over = connection.execute(job_runs.update().where(open_).values(run_values(run)))
            if not over.rowcount or row is None:
                return None
            read = next(readable([row], job_of), None)
            if read is None:  # how the run ended is kept all the same
                return None
            job = settle(read)
            connection.execute(jobs.update().where(this).values(standing(job)))
            return job

    def amend(self, run: Run) -> None:
        """Keep what became known of a run after it had ended."""
        with writing(self._engine, "keeping a run") as connection:
            this = job_runs.c.id == run.id
            connection.execute(job_runs.update().where(this).values(run_values(run)))


def _is_over(until: sa.ColumnElement[float], now: float) -> sa.ColumnElement[bool]:
    return (until < now) | (until > now + AHEAD_S)


def _begun(connection: sa.Connection, run: Run, alive_until: float) -> bool:
    insert = inserting(connection.dialect.name)(job_runs)
    values = run_values(run) | {"alive_until": alive_until}
    beginning = insert.values(values).on_conflict_do_nothing().returning(job_runs.c.id)
    return connection.execute(beginning).first() is not None
