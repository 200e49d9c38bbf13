"""The scheduler: holds the lease, claims what is due, has it run, and marks lost runs. That nothing
runs twice is seen to by the claim's transaction; the lease only keeps schedulers apart.
"""

import logging
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
from journeyman.jobs.lifecycle import ended, settled
from journeyman.jobs.runner import JobRunner
from journeyman.jobs.times import latest
from journeyman.records.errors import JourneymanError, StoreUnavailable, WrongInput
from journeyman.records.job import Job, Run, RunId, RunStatus
from journeyman.store.jobs import Jobs as StoredJobs
from journeyman.store.jobs import Seen, is_free

logger = logging.getLogger(__name__)

ALIVE_S = 60.0
"""After this long without a sign of life a run is taken for lost."""
LEASE_S = 30.0
"""How long the lease lasts without a word of its holder: so long nothing runs after a crash."""
LATE_S = 60.0
"""A run that begins so long after its time is called late."""
GRACE_S = 180.0
"""How long a run may go on when its time is over, to deliver what there is."""
_LONGEST_PAUSE_S = 30.0
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


@contextmanager
def heartbeat(
    jobs: StoredJobs,
    going: Callable[[], Iterable[RunId]],
    clock: Callable[[], float],
    lose: Callable[[RunId], None],
    beat_s: float = ALIVE_S / 4,
) -> Iterator[None]:
    """Give signs of life for runs that are `going` here; `lose` hears of what is no longer own."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(beat_s):
            named = tuple(going())
            try:
                alive = jobs.keep_alive(named, until=clock() + ALIVE_S)
            except JourneymanError as error:
                logger.warning("no sign of life could be given: %s", error)
                continue
            for run in named:
                if run not in alive:
                    lose(run)

    thread = threading.Thread(target=beat, name="journeyman-alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def finish(
    jobs: StoredJobs,
    run: Run,
    *,
    clock: Callable[[], float],
    lost_at: float | None = None,
    tries: int = 100,
    tell: Callable[[str], None] = lambda _line: None,
) -> Job | None:
    """The job after the run; None when that was said before, or cannot be kept."""
    for attempt in range(tries):
        try:
            return jobs.finish(run, lambda job: settled(job, run, clock()), lost_at=lost_at)
        except StoreUnavailable as error:
            tell(str(error))
            if attempt + 1 < tries:
                time.sleep(min(2.0**attempt, _LONGEST_PAUSE_S))
        except JourneymanError as error:
            tell(str(error))
            break
    return None  # it stays as running, until it is taken for lost


def in_thread(work: Callable[[], None]) -> None:
    """Start some work beside the rest. It does not keep the program from ending."""
    threading.Thread(target=work, name="journeyman-job", daemon=True).start()


class _Going(Struct, kw_only=True):
    """A run that is going on in this process, since `began` on its timer."""

    job: Job
    run: Run
    began: float
    blocked: str
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class Scheduler:
    """Runs jobs when they are due, `most` at a time. `clock` is the time of day, `timer` one that
    nobody sets; `start` begins a piece of work, `tell` hears lines for people.
    """

    jobs: StoredJobs
    runner: JobRunner
    _: KW_ONLY
    holder: str
    most: int = 4
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic
    start: Callable[[Callable[[], None]], None] = in_thread
    tell: Callable[[str], None] = lambda _line: None

    def __post_init__(self) -> None:
        self._going: dict[RunId, _Going] = {}
        self._finish = partial(finish, self.jobs, clock=self.clock, tell=self._tell)
        # What was taken from this process must not go on here.
        self._alive = partial(heartbeat, self.jobs, lambda: self._going, self.clock, self._stop_run)
        self._announcing = 0
        self._ended = threading.Condition()
        self._leads: bool | None = None
        self._last = self.clock(), self.timer()
        self._patient_until = self.timer()

    def tick(self, due_by: float | None = None) -> int:
        """Do what there is to do now, or was at `due_by`; how many runs were begun."""
        now = self.clock()
        self._mind_the_clock(now)
        self._give_up_stuck()
        seen = self.jobs.look(now, most=max(0, self.most - len(self._going)))
        if not self._lead(seen, now):
            return 0
        for id_ in seen.unread:
            self._tell(f"The job {id_} cannot be read by this version, and is paused.")
            self.jobs.set_aside(id_, "it cannot be read by the version that was to run it")
        if self.timer() >= self._patient_until:
            for run in seen.lost:
                if run.id not in self._going:
                    self._mark(run, "crashed", LOST)
        due = (job for job in seen.due if due_by is None or (job.next_run_at or now) <= due_by)
        return sum(self._begin(job, now) for job in due)

    def serve(self, stopping: threading.Event) -> None:
        """Go on until told to stop; then stop what runs, and let go of the lease."""
        with self._alive():
            while not stopping.is_set():
                self._patiently(stopping, self.tick)
                stopping.wait(_LOOK_S)
            self.stop()

    def serve_once(self, stopping: threading.Event) -> int:
        """Run what is due now, and wait for it; how many runs that was."""
        due_by, begun = self.clock(), 0
        with self._alive():
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
        for run in tuple(self._going):
            self._stop_run(run)
        with self._ended:
            self._ended.wait_for(lambda: not self._going and not self._announcing, within_s)
        for going in tuple(self._going.values()):  # what does not stop is not called a crash later
            self._finish(ended(going.run, "interrupted", _NOT_STOPPED, self.clock()), tries=1)
        try:
            self.jobs.release_lease(self.holder)
        except JourneymanError as error:
            self._tell(str(error))

    def _stop_run(self, run: RunId) -> None:
        if going := self._going.get(run):
            going.stop.set()

    def _tell(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a terminal that is gone is no reason to stop
            self.tell(line)

    def _patiently(self, stopping: threading.Event, tick: Callable[[], int]) -> int:
        """A tick, which needs the database, and that may be away for a while."""
        try:
            return tick()
        except JourneymanError as error:
            self._tell(f"{error} Trying again.")
            stopping.wait(_AGAIN_S)
            return 0

    def _mind_the_clock(self, now: float) -> None:
        """After a step of the clock, or sleep, others get time to give a sign of life."""
        (last, at), self._last = self._last, (now, self.timer())
        step = (now - last) - (self._last[1] - at)
        if abs(step) > _CLOCK_STEP_S:
            self._patient_until = self._last[1] + ALIVE_S
        if step < -_CLOCK_SET_BACK_S:
            self._realign(now)

    def _realign(self, now: float) -> None:
        """Move times to come back that a clock which was wrong for a while moved far away."""
        for job in self.jobs.list(("scheduled",)):
            if job.schedule.kind == "once" or job.next_run_at is None:
                continue
            first = lifecycle.known_following(job.schedule, now + lifecycle.held_for(job.failures))
            if first is not None and first < job.next_run_at:
                self.jobs.change(job.id, partial(_moved, seen=job, to=first))

    def _lead(self, seen: Seen, now: float) -> bool:
        """Whether this is the scheduler that is at work; it takes the lease when it is free."""
        is_own, free = seen.holder == self.holder, is_free(seen.until, now)
        leads = is_own and not free and seen.until > now + LEASE_S / 2
        can_take = is_own or not seen.holder or self.timer() >= self._patient_until
        if not leads and can_take and (is_own or free):
            leads = self.jobs.take_lease(self.holder, now=now, until=now + LEASE_S)
        if leads and not self._leads:
            # By the time that it is now that nobody else can claim: what another ran while this
            # one was about to take the lease is behind.
            self._realign(self.clock())
        if leads != self._leads:
            self._leads = leads
            other = f"Another scheduler is at work ({shown_holder(seen.holder)}); this one waits."
            self._tell("This scheduler is at work." if leads else other)
        return leads

    def _begin(self, job: Job, now: float) -> bool:
        assert job.next_run_at is not None
        blocked = ""
        try:
            slot, missed = latest(job.schedule, job.next_run_at, now)
            then = lifecycle.advanced(job, slot)
            skipped = lifecycle.advanced(job, slot, counts=False)
        except WrongInput as error:  # a time zone that this machine does not know
            slot, missed, blocked = job.next_run_at, 0, str(error)
            then = skipped = replace(job, next_run_at=now + _UNKNOWN_S)
        run = Run(
            id=lifecycle.new_run_id(),
            job=job.id,
            trigger="late" if missed or now - slot > LATE_S else "schedule",
            started_at=now,
            due_at=slot,
            missed=missed,
            holder=self.holder,
        )
        until = now + ALIVE_S
        if not self.jobs.claim(job, run, then=then, skipped=skipped, alive_until=until):
            return False
        going = _Going(job=then, run=run, began=self.timer(), blocked=blocked)
        self._going[run.id] = going
        try:
            self.start(lambda: self._run(going))
        except RuntimeError as error:  # no thread to be had
            self._let_go(run.id)
            self._mark(run, "failed", f"It could not be started: {error}.")
            return False
        late = ", late" if run.trigger == "late" else ""
        times = "1 time" if missed == 1 else f"{missed:,} times"
        also = f", for {times} missed before too" if missed else ""
        self._tell(f"{job.name} begins{late}{also}.")
        return True

    def _run(self, going: _Going) -> None:
        job, run = going.job, going.run
        try:
            if going.blocked:
                over = ended(run, "blocked", going.blocked, self.clock())
                done = self.runner.announce(settled(job, over, self.clock()), over)
            else:
                is_own = partial(self._is_own, run.id)
                done = self.runner.work(job, run, going.stop.is_set, is_own=is_own)
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
            return run in self.jobs.keep_alive((run,), until=self.clock() + ALIVE_S)
        except JourneymanError:
            return True  # what cannot be asked is not known to be otherwise

    def _give_up_stuck(self) -> None:
        """Runs that go on after their time are told to stop, and a little later given up."""
        now = self.timer()
        for going in tuple(self._going.values()):
            late_s = 0.0 if going.job.seconds is None else now - going.began - going.job.seconds
            if late_s > GRACE_S:
                going.stop.set()
            if late_s > GRACE_S + _STOPPING_S:
                self._let_go(going.run.id)
                self._mark(going.run, "timed_out", _STUCK)

    def _mark(self, run: Run, status: RunStatus, reason: str) -> None:
        """Say of a run that will never say it itself what became of it, and tell people."""
        now = self.clock()
        over = ended(run, status, reason, now)
        job = self._finish(over, lost_at=now if status == "crashed" else None, tries=1)
        if job is None:
            return
        self._tell(f"{job.name}: {status}. {reason}")
        with self._ended:
            self._announcing += 1

        def announce() -> None:
            try:
                self.jobs.amend(self.runner.announce(job, over))
            except JourneymanError as error:
                self._tell(str(error))
            finally:
                with self._ended:
                    self._announcing -= 1
                    self._ended.notify_all()

        try:
            self.start(announce)
        except RuntimeError:  # no thread to be had
            announce()

    def _let_go(self, run: RunId) -> None:
        with self._ended:
            self._going.pop(run, None)
            self._ended.notify_all()


def shown_holder(holder: str) -> str:
    """A process as people know it."""
    host, _, process = holder.rpartition(":")[0].rpartition(":")
    return f"process {process} on {host}" if host else holder


def _moved(job: Job, *, seen: Job, to: float) -> Job:
    """A job with another time to come, unless it stands differently by now."""
    stands = (job.state, job.next_run_at) == (seen.state, seen.next_run_at)
    return replace(job, next_run_at=to) if stands else job
