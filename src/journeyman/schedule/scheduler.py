"""The scheduler: holds the lease, claims what is due, has it run, and marks runs of which nothing
was heard any more. How a job runs is handed to it. What makes sure that nothing runs twice is the
claim's transaction; the lease only saves several schedulers from getting in each other's way.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Protocol

import msgspec

from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.records.job import Job, Run, RunId, RunStatus
from journeyman.schedule.backing_off import held_for, settled
from journeyman.schedule.delivery import TERMINAL
from journeyman.schedule.finishing import TRIES, finish
from journeyman.schedule.keeping_alive import ALIVE_S, KeptAlive
from journeyman.schedule.standing import (
    advanced,
    ended,
    known_following,
    new_run_id,
    shown_holder,
    shown_times,
)
from journeyman.schedule.timing.times import latest
from journeyman.store.job_claims import JobClaims, Seen
from journeyman.store.jobs import Jobs as StoredJobs

LEASE_S = 30.0
"""How long the lease lasts without a word of its holder: so long nothing runs after a crash."""
LATE_S = 60.0
"""A run that begins so long after its time is called late."""
GRACE_S = 180.0
"""How long a run may go on when its time is over, to deliver what there is."""
_STOPPING_S = 30.0
_LOOK_S = 1.0
_AGAIN_S = 5.0
_CLOCK_STEP_S = 5.0
_CLOCK_SET_BACK_S = 60.0
_UNKNOWN_S = 600.0
"""So long until a job is looked at again whose times are not known here."""

LOST = (
    "The program that ran it ended in mid-run, or lost its database: nothing was heard of it any "
    "more. What it had done by then is not undone; it is not run again by itself."
)
_NOT_STOPPED = "It was told to stop, and had not by the time that the program ended."
_STUCK = "It did not stop when its time was over, and was given up."


class Working(Protocol):
    """What runs a job and delivers what came of it."""

    def work(
        self, job: Job, run: Run, cancelled: Callable[[], bool], *, is_own: Callable[[], bool]
    ) -> Run:
        """The run as it ended, delivered if it `is_own` still then. Never raises."""
        ...

    def announce(self, job: Job, run: Run) -> Run:
        """A run that ended in another way, and after which the job stands so: delivered, and as it
        is then. Never raises.
        """
        ...


class _Going:
    """A run that is going on in this process, since `began` on its timer."""

    def __init__(self, job: Job, run: Run, began: float, blocked: str = "") -> None:
        self.job, self.run, self.began, self.blocked = job, run, began, blocked
        self.stop = threading.Event()

    def is_late(self, now: float, grace_s: float) -> bool:
        return self.job.seconds is not None and now > self.began + self.job.seconds + grace_s


def in_thread(work: Callable[[], None]) -> None:
    """Start some work beside the rest. It does not keep the program from ending."""
    threading.Thread(target=work, name="journeyman-job", daemon=True).start()


class Scheduler:
    """Runs jobs when they are due. `clock` is the time of day, `timer` one that nobody sets;
    `start` begins a piece of work, `most` is how many may go on at a time, `tell` hears lines for
    people.
    """

    def __init__(
        self,
        jobs: StoredJobs,
        claims: JobClaims,
        working: Working,
        *,
        holder: str,
        most: int = 4,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] = in_thread,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._jobs, self._claims, self._working = jobs, claims, working
        self._holder, self._most = holder, most
        self._clock, self._timer = clock, timer
        self._start, self._listener = start, tell
        self._going: dict[RunId, _Going] = {}
        self._announcing = 0
        self._ended = threading.Condition()
        self._leads: bool | None = None
        self._last = clock(), timer()
        self._patient_until = timer()

    def tick(self, due_by: float | None = None) -> int:
        """Do what there is to do now, without waiting; how many runs were begun. With `due_by`,
        only those that were due then.
        """
        now = self._clock()
        self._mind_the_clock(now)
        self._give_up_stuck()
        free = self._most - len(self._going)
        seen = self._claims.look(now, most=max(0, free))
        if not self._lead(seen, now):
            return 0
        for id_ in seen.unread:
            self._tell(f"The job {id_} cannot be read by this version, and is paused.")
            self._claims.set_aside(id_, "it cannot be read by the version that was to run it")
        if self._timer() >= self._patient_until:
            for run in seen.lost:
                if run.id not in self._going:
                    self._mark(run, "crashed", LOST)
        due = (job for job in seen.due if due_by is None or (job.next_run_at or now) <= due_by)
        return sum(self._begin(job, now) for job in due)

    def serve(self, stopping: threading.Event) -> None:
        """Go on until told to stop; then stop what runs, and let go of the lease."""
        with KeptAlive(self._claims, lambda: self._going, self._clock, self._lose):
            while not stopping.is_set():
                self._patiently(stopping, self.tick)
                stopping.wait(_LOOK_S)
            self.stop()

    def serve_once(self, stopping: threading.Event) -> int:
        """Run what is due now, and wait for it; how many runs that was."""
        due_by, begun = self._clock(), 0
        with KeptAlive(self._claims, lambda: self._going, self._clock, self._lose):
            try:
                begun = now = self.tick(due_by)
                while not stopping.is_set() and (now or self._going):
                    stopping.wait(_LOOK_S / 4)
                    now = self._patiently(stopping, partial(self.tick, due_by))
                    begun += now
            finally:
                self.stop()
        return begun

    def stop(self, within_s: float = _STOPPING_S) -> None:
        """Stop what runs, wait for it, and let go of the lease."""
        for going in tuple(self._going.values()):
            going.stop.set()
        with self._ended:
            self._ended.wait_for(lambda: not self._going and not self._announcing, within_s)
        for going in tuple(self._going.values()):  # what does not stop is not called a crash later
            over = ended(going.run, "interrupted", _NOT_STOPPED, self._clock())
            self._finish(over, tries=1)
        try:
            self._claims.release_lease(self._holder)
        except JourneymanError as error:
            self._tell(str(error))

    def _tell(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a terminal that is gone is no reason to stop
            self._listener(line)

    def _patiently(self, stopping: threading.Event, tick: Callable[[], int]) -> int:
        """A tick, which needs the database, and that may be away for a while."""
        try:
            return tick()
        except JourneymanError as error:
            self._tell(f"{error} Trying again.")
            stopping.wait(_AGAIN_S)
            return 0

    def _mind_the_clock(self, now: float) -> None:
        """When the clock was set, or this machine slept, others may look dead that are not: they
        get the time to give a sign of life.
        """
        (last, at), self._last = self._last, (now, self._timer())
        step = (now - last) - (self._last[1] - at)
        if abs(step) > _CLOCK_STEP_S:
            self._patient_until = self._last[1] + ALIVE_S
        if step < -_CLOCK_SET_BACK_S:
            self._realign(now)

    def _realign(self, now: float) -> None:
        """Look whether times to come are where the schedules have them: a clock that was wrong for
        a while may have moved them far away.
        """
        for job in self._jobs.list(("scheduled",)):
            if job.schedule.kind == "once" or job.next_run_at is None:
                continue
            first = known_following(job.schedule, now + held_for(job.failures))
            if first is not None and first < job.next_run_at:
                self._jobs.change(job.id, partial(_moved, seen=job, to=first))

    def _lead(self, seen: Seen, now: float) -> bool:
        """Whether this is the scheduler that is at work; it takes the lease when it is free."""
        is_own, is_free = seen.holder == self._holder, seen.is_free(now)
        leads = is_own and not is_free and seen.until > now + LEASE_S / 2
        can_take = is_own or not seen.holder or self._timer() >= self._patient_until
        if not leads and can_take and (is_own or is_free):
            leads = self._claims.take_lease(self._holder, now=now, until=now + LEASE_S)
        if leads and not self._leads:
            self._realign(now)
        if leads != self._leads:
            self._leads = leads
            other = f"Another scheduler is at work ({shown_holder(seen.holder)})"
            said = "This scheduler is at work." if leads else f"{other}; this one waits."
            self._tell(said)
        return leads

    def _begin(self, job: Job, now: float) -> bool:
        assert job.next_run_at is not None
        blocked = ""
        try:
            slot, missed = latest(job.schedule, job.next_run_at, now)
            then, skipped = advanced(job, slot), advanced(job, slot, counts=False)
        except WrongInput as error:  # a time zone that this machine does not know
            slot, missed, blocked = job.next_run_at, 0, str(error)
            then = skipped = msgspec.structs.replace(job, next_run_at=now + _UNKNOWN_S)
        run = Run(
            id=new_run_id(),
            job=job.id,
            trigger="late" if missed or now - slot > LATE_S else "schedule",
            started_at=now,
            due_at=slot,
            missed=missed,
            holder=self._holder,
        )
        until = now + ALIVE_S
        if not self._claims.claim(job, run, then=then, skipped=skipped, alive_until=until):
            return False
        going = self._going[run.id] = _Going(then, run, self._timer(), blocked)
        try:
            self._start(lambda: self._run(going))
        except RuntimeError as error:  # no thread to be had
            self._let_go(run.id)
            self._mark(run, "failed", f"It could not be started: {error}.")
            return False
        since = ", late" if run.trigger == "late" else ""
        since += f", for {shown_times(missed)} missed before too" if missed else ""
        self._tell(f"{job.name} begins{since}.")
        return True

    def _run(self, going: _Going) -> None:
        job, run = going.job, going.run
        try:
            if going.blocked:
                over = ended(run, "blocked", going.blocked, self._clock())
                then = settled(job, over, now=self._clock(), following=known_following)
                done = self._working.announce(then, over)
            else:
                is_own = partial(self._is_own, run.id)
                done = self._working.work(job, run, going.stop.is_set, is_own=is_own)
            if run.id in self._going and self._finish(done):
                took = max(0.0, (done.ended_at or done.started_at) - done.started_at)
                reason = "" if TERMINAL in done.delivered else done.reason
                self._tell(f"{job.name}: {done.status} after {took:.0f} s. {reason}")
        finally:
            self._let_go(run.id)

    def _is_own(self, run: RunId) -> bool:
        if run not in self._going:
            return False
        try:
            return run in self._claims.keep_alive((run,), until=self._clock() + ALIVE_S)
        except JourneymanError:
            return True  # what cannot be asked is not known to be otherwise

    def _finish(self, done: Run, *, lost_at: float | None = None, tries: int = TRIES) -> Job | None:
        return finish(
            self._claims, done, clock=self._clock, lost_at=lost_at, tries=tries, tell=self._tell
        )

    def _give_up_stuck(self) -> None:
        """Runs that go on after their time are told to stop, and a little later given up."""
        now = self._timer()
        for going in tuple(self._going.values()):
            if going.is_late(now, GRACE_S):
                going.stop.set()
            if going.is_late(now, GRACE_S + _STOPPING_S):
                self._let_go(going.run.id)
                self._mark(going.run, "timed_out", _STUCK)

    def _mark(self, run: Run, status: RunStatus, reason: str) -> None:
        """Say of a run that will never say it itself what became of it, and tell people."""
        now = self._clock()
        over = ended(run, status, reason, now)
        lost_at = now if status == "crashed" else None
        job = self._finish(over, lost_at=lost_at, tries=1)
        if job is None:
            return
        self._tell(f"{job.name}: {status}. {reason}")
        with self._ended:
            self._announcing += 1

        def announce() -> None:
            try:
                self._claims.amend(self._working.announce(job, over))
            except JourneymanError as error:
                self._tell(str(error))
            finally:
                with self._ended:
                    self._announcing -= 1
                    self._ended.notify_all()

        try:
            self._start(announce)
        except RuntimeError:  # no thread to be had
            announce()

    def _lose(self, lost: Iterable[RunId]) -> None:
        """What was taken from this process must not go on here."""
        for run in lost:
            if going := self._going.get(run):
                going.stop.set()

    def _let_go(self, run: RunId) -> None:
        with self._ended:
            self._going.pop(run, None)
            self._ended.notify_all()


def _moved(job: Job, *, seen: Job, to: float) -> Job:
    """A job with another time to come, unless it stands differently by now."""
    if (job.state, job.next_run_at) != (seen.state, seen.next_run_at):
        return job
    return msgspec.structs.replace(job, next_run_at=to)
