"""The scheduler: holds the lease, claims and starts due jobs, and marks lost runs. The transaction
of the claim ensures that nothing runs twice; the lease only keeps schedulers apart.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from journeyman.jobs import lifecycle
from journeyman.jobs.delivery import TERMINAL
from journeyman.jobs.lifecycle import apply_result, end_run
from journeyman.jobs.occurrences import latest_due
from journeyman.jobs.runner import JobRunner
from journeyman.records.errors import JourneymanError, StoreUnavailable, WrongInput
from journeyman.records.job import Job, Run, RunId, RunStatus
from journeyman.store.jobs import Jobs as StoredJobs
from journeyman.store.jobs import SchedulerSnapshot, is_lease_free

logger = logging.getLogger(__name__)

ALIVE_S = 60.0
"""A run without a heartbeat for this long counts as lost."""
LEASE_S = 30.0
"""How long the lease lasts without renewal; after a crash, nothing runs for this long."""
LATE_S = 60.0
"""A run that starts this long after its time counts as late."""
GRACE_S = 180.0
"""How long a run may continue after its time limit, to deliver its result."""
_MAX_RETRY_DELAY_S = 30.0
_STOP_TIMEOUT_S = 30.0
_TICK_S = 1.0
_STORE_RETRY_S = 5.0
_CLOCK_STEP_S = 5.0
_CLOCK_SET_BACK_S = 60.0
_UNKNOWN_ZONE_RETRY_S = 600.0
"""When to retry a job with a time zone that this machine does not know."""

LOST = (
    "The program ended abruptly during the run, or lost its database: its heartbeat stopped. What "
    "the run had done by then is not undone; it is not repeated automatically."
)
_NOT_STOPPED = "The run was still stopping when the program ended."
_STUCK = "The run did not stop after its time limit, and was abandoned."


@contextmanager
def heartbeat(
    jobs: StoredJobs,
    active_runs: Callable[[], Iterable[RunId]],
    clock: Callable[[], float],
    on_lost: Callable[[RunId], None],
    interval_s: float = ALIVE_S / 4,
) -> Iterator[None]:
    """Send heartbeats for the active runs of this process. `on_lost` is called for a run that this
    process no longer owns.
    """
    stopping = threading.Event()

    def beat() -> None:
        while not stopping.wait(interval_s):
            runs = tuple(active_runs())
            try:
                alive = jobs.keep_alive(runs, until=clock() + ALIVE_S)
            except JourneymanError as error:
                logger.warning("the heartbeat failed: %s", error)
                continue
            for run in runs:
                if run not in alive:
                    on_lost(run)

    thread = threading.Thread(target=beat, name="journeyman-alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def finish(
    jobs: StoredJobs,
    run: Run,
    *,
    clock: Callable[[], float],
    lost_at: float | None = None,
    tries: int = 100,
    report: Callable[[str], None] = lambda _line: None,
) -> Job | None:
    """Store the end of a run and return the job after it, or None if the run had ended before or
    the store fails. Retries while the store is unavailable.
    """
    for attempt in range(tries):
        try:
            return jobs.finish(run, lambda job: apply_result(job, run, clock()), lost_at=lost_at)
        except StoreUnavailable as error:
            report(str(error))
            if attempt + 1 < tries:
                time.sleep(min(2.0**attempt, _MAX_RETRY_DELAY_S))
        except JourneymanError as error:
            report(str(error))
            break
    return None  # the run stays "running" until it counts as lost


def in_thread(work: Callable[[], None]) -> None:
    """Start work in a daemon thread, which does not keep the program from ending."""
    threading.Thread(target=work, name="journeyman-job", daemon=True).start()


class _ActiveRun(Struct, kw_only=True):
    """A run in this process, started at `began` on its timer, and the due times missed before."""

    job: Job
    run: Run
    began: float
    missed: Run | None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class Scheduler:
    """Runs due jobs, up to `workers` at a time. `clock` is the time of day, `timer` is monotonic;
    `start` starts work in the background, `report` receives lines for people.
    """

    jobs: StoredJobs
    runner: JobRunner
    _: KW_ONLY
    holder: str
    workers: int = 4
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic
    start: Callable[[Callable[[], None]], None] = in_thread
    report: Callable[[str], None] = lambda _line: None

    def __post_init__(self) -> None:
        self._active: dict[RunId, _ActiveRun] = {}
        self._finish = partial(finish, self.jobs, clock=self.clock, report=self._report)
        # A run that was taken from this process must not continue here.
        self._heartbeat = partial(
            heartbeat, self.jobs, lambda: self._active, self.clock, self._stop_run
        )
        self._working = 0
        self._work_ended = threading.Condition()
        self._is_leader: bool | None = None
        self._last_reading = self.clock(), self.timer()
        self._grace_until = self.timer()

    def tick(self, due_by: float | None = None) -> int:
        """Start the jobs that are due now, or were at `due_by`; return how many started."""
        now = self.clock()
        self._detect_clock_step(now)
        self._abandon_stuck()
        pending = self.jobs.look(now, most=max(0, self.workers - len(self._active)))
        if not self._lead(pending, now):
            return 0
        if self.timer() >= self._grace_until:
            for run in pending.lost:
                if run.id not in self._active:
                    self._end(run, "crashed", LOST)
        due = (job for job in pending.due if due_by is None or (job.next_run_at or now) <= due_by)
        return sum(self._start_run(job, now) for job in due)

    def serve(self, stopping: threading.Event) -> None:
        """Run due jobs until `stopping` is set; then stop active runs and release the lease."""
        with self._heartbeat():
            while not stopping.is_set():
                self._retrying(stopping, self.tick)
                stopping.wait(_TICK_S)
            self.stop()

    def serve_once(self, stopping: threading.Event) -> int:
        """Run the jobs that are due now, wait for them, and return the number of runs."""
        due_by, total = self.clock(), 0
        with self._heartbeat():
            try:
                total = started = self.tick(due_by)
                while not stopping.is_set() and (started or self._active):
                    stopping.wait(_TICK_S / 4)
                    started = self._retrying(stopping, partial(self.tick, due_by))
                    total += started
            finally:
                self.stop()
        return total

    @property
    def is_idle(self) -> bool:
        return not self._active

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Stop active runs, wait for them, and release the lease."""
        for run in tuple(self._active):
            self._stop_run(run)
        with self._work_ended:
            self._work_ended.wait_for(lambda: not self._working, timeout_s)
        for active in tuple(self._active.values()):  # must not count as crashed later
            self._finish(end_run(active.run, "interrupted", _NOT_STOPPED, self.clock()), tries=1)
        try:
            self.jobs.release_lease(self.holder)
        except JourneymanError as error:
            self._report(str(error))

    def _stop_run(self, run: RunId) -> None:
        if active := self._active.get(run):
            active.stop.set()

    def _report(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a closed terminal must not stop the scheduler
            self.report(line)

    def _retrying(self, stopping: threading.Event, tick: Callable[[], int]) -> int:
        """Run a tick. If the database is unavailable, wait and return 0."""
        try:
            return tick()
        except JourneymanError as error:
            self._report(f"{error} Trying again.")
            stopping.wait(_STORE_RETRY_S)
            return 0

    def _detect_clock_step(self, now: float) -> None:
        """After a clock step or system sleep, give other processes time for a heartbeat."""
        (last_now, last_timer), self._last_reading = self._last_reading, (now, self.timer())
        step = (now - last_now) - (self._last_reading[1] - last_timer)
        if abs(step) > _CLOCK_STEP_S:
            self._grace_until = self._last_reading[1] + ALIVE_S
        if step < -_CLOCK_SET_BACK_S:
            self._realign(now)

    def _realign(self, now: float) -> None:
        """Correct next run times that a wrong clock had moved too far into the future."""
        for job in self.jobs.list(("scheduled",)):
            if job.schedule.kind == "once" or job.next_run_at is None:
                continue
            first = lifecycle.find_next_occurrence(
                job.schedule, now + lifecycle.backoff_s(job.failures)
            )
            if first is not None and first < job.next_run_at:
                self.jobs.change(job.id, partial(_reschedule, expected=job, to=first))

    def _lead(self, pending: SchedulerSnapshot, now: float) -> bool:
        """Return whether this scheduler is active. Take or renew the lease if possible."""
        is_own, free = pending.holder == self.holder, is_lease_free(pending.until, now)
        leads = is_own and not free and pending.until > now + LEASE_S / 2
        can_take = is_own or not pending.holder or self.timer() >= self._grace_until
        if not leads and can_take and (is_own or free):
            leads = self.jobs.take_lease(self.holder, now=now, until=now + LEASE_S)
        if leads and not self._is_leader:
            # With a fresh reading of the clock: no other scheduler can claim a job now, so what one
            # ran while this one was taking the lease is in the past.
            self._realign(self.clock())
        if leads != self._is_leader:
            self._is_leader = leads
            other = (
                f"Another scheduler is active ({describe_holder(pending.holder)}); this one waits."
            )
            self._report("This scheduler is active." if leads else other)
        return leads

    def _start_run(self, job: Job, now: float) -> bool:
        assert job.next_run_at is not None
        first = min(job.held_since or math.inf, job.next_run_at)
        try:
            slot, missed = latest_due(job.schedule, first, now)
            after = lifecycle.advance(job, slot)
            skipped = lifecycle.advance(job, slot, counts_run=False)
        except WrongInput:  # a time zone that this machine does not know: the run will be blocked
            slot, missed = job.next_run_at, 0
            after = skipped = replace(job, next_run_at=now + _UNKNOWN_ZONE_RETRY_S)
        run = Run(
            id=lifecycle.new_run_id(),
            job=job.id,
            trigger="late" if missed or now - slot > LATE_S else "schedule",
            started_at=now,
            due_at=slot,
            holder=self.holder,
        )
        record = self._missed(job, run, first, missed) if missed else None
        if not self.jobs.claim(
            job, run, then=after, skipped=skipped, alive_until=now + ALIVE_S, missed=record
        ):
            return False
        active = _ActiveRun(job=after, run=run, began=self.timer(), missed=record)
        self._active[run.id] = active
        self._start(partial(self._run, active))
        self._report(f"{job.name} starts{', late' if run.trigger == 'late' else ''}.")
        return True

    def _missed(self, job: Job, run: Run, first: float, count: int) -> Run:
        """Return the record of the due times from `first` on that are given up for a run."""
        last = next(iter(self.jobs.runs(job.id, limit=1)), None)
        reason = "no scheduler was running, or it had too much to do"
        if job.held_since is not None:
            reason = "the job was held after failures"
        elif last is not None and (last.ended_at or 0.0) > first:
            reason = "the previous run was still going"
        return lifecycle.missed_record(job, run, first, count, reason)

    def _run(self, active: _ActiveRun) -> None:
        job, run = active.job, active.run
        try:
            if active.missed is not None:
                self._announce(job, active.missed)
            is_own = partial(self._is_own, run.id)
            done = self.runner.work(job, run, active.stop.is_set, is_own=is_own)
            if run.id in self._active and self._finish(done):
                took = max(0.0, (done.ended_at or done.started_at) - done.started_at)
                reason = "" if TERMINAL in done.delivered else done.reason
                self._report(f"{job.name}: {done.status} after {took:.0f} s. {reason}")
        finally:
            self._active.pop(run.id, None)

    def _start(self, work: Callable[[], None]) -> None:
        """Start work in the background, for which `stop` waits."""

        def run() -> None:
            try:
                work()
            finally:
                with self._work_ended:
                    self._working -= 1
                    self._work_ended.notify_all()

        with self._work_ended:
            self._working += 1
        self.start(run)

    def _announce(self, job: Job, run: Run) -> None:
        try:
            self.jobs.amend(self.runner.announce(job, run))
        except JourneymanError as error:
            self._report(str(error))

    def _is_own(self, run: RunId) -> bool:
        if run not in self._active:
            return False
        try:
            return run in self.jobs.keep_alive((run,), until=self.clock() + ALIVE_S)
        except JourneymanError:
            return True  # assume ownership while the store is unavailable

    def _abandon_stuck(self) -> None:
        """Stop runs that exceed their time limit, and abandon them if they do not stop."""
        now = self.timer()
        for active in tuple(self._active.values()):
            limit_s = active.job.seconds
            late_s = 0.0 if limit_s is None else now - active.began - limit_s
            if late_s > GRACE_S:
                active.stop.set()
            if late_s > GRACE_S + _STOP_TIMEOUT_S:
                self._active.pop(active.run.id, None)
                self._end(active.run, "timed_out", _STUCK)

    def _end(self, run: Run, status: RunStatus, reason: str) -> None:
        """End a run that can no longer end itself, and deliver the outcome."""
        now = self.clock()
        ended = end_run(run, status, reason, now)
        job = self._finish(ended, lost_at=now if status == "crashed" else None, tries=1)
        if job is None:
            return
        self._report(f"{job.name}: {status}. {reason}")
        self._start(partial(self._announce, job, ended))


def describe_holder(holder: str) -> str:
    """Return a process in words."""
    host, _, process = holder.rpartition(":")[0].rpartition(":")
    return f"process {process} on {host}" if host else holder


def _reschedule(job: Job, *, expected: Job, to: float) -> Job:
    """Return a job with another next run time, unless it has changed meanwhile."""
    is_unchanged = (job.state, job.next_run_at) == (expected.state, expected.next_run_at)
    return replace(job, next_run_at=to, held_since=None) if is_unchanged else job
