"""Jobs as people handle them: add, change, list, show, pause, resume, remove, run now, serve. The
facade offers it as `jobs`; what runs a job is `running`, when it runs is `scheduler`.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

import msgspec
from msgspec import Struct

from journeyman.records.errors import JourneymanError, OutsideProblem, UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, JobTotals, Run
from journeyman.schedule.delivery import check_places
from journeyman.schedule.finishing import finish
from journeyman.schedule.keeping_alive import ALIVE_S, KeptAlive
from journeyman.schedule.running import JobRunner
from journeyman.schedule.scheduler import LOST, Scheduler
from journeyman.schedule.standing import ended, new_run_id, shown_holder
from journeyman.schedule.timing.reading import read_schedule
from journeyman.schedule.timing.times import following, upcoming
from journeyman.schedule.timing.zones import find_zone
from journeyman.schedule.wanted import (
    Wanted,
    authored,
    checked_name,
    free_name,
    made,
    replaced,
)
from journeyman.store.job_claims import JobClaims, is_free
from journeyman.store.jobs import LIVING
from journeyman.store.jobs import Jobs as StoredJobs

SHOWN_RUNS = 5
_TRIES = 6


class Usual(Struct, frozen=True, kw_only=True):
    """What holds for a job that does not say otherwise."""

    timezone: str
    deliver: tuple[str, ...] = ("terminal",)
    workers: int = 4


class Checked(Struct, frozen=True, kw_only=True):
    """What would block a job, nothing if it would run; and what else there is to know."""

    blocked: str = ""
    remarks: tuple[str, ...] = ()


class JobReport(Struct, frozen=True, kw_only=True):
    """A job with all that is known of it: when it runs in words, its next times, its newest runs,
    and all runs summed up.
    """

    job: Job
    said: str
    upcoming: tuple[float, ...] = ()
    runs: tuple[Run, ...] = ()
    totals: JobTotals = JobTotals(statuses={})


class Leading(Struct, frozen=True, kw_only=True):
    """The scheduler that is at work: the process, and until when it has said that it is."""

    holder: str = ""
    until: float = 0.0
    is_alive: bool = False

    @property
    def shown(self) -> str:
        """The process as people know it."""
        return shown_holder(self.holder)


class Jobs:
    """The jobs of one home."""

    def __init__(
        self,
        stored: StoredJobs,
        claims: JobClaims,
        runner: Callable[[Callable[[str], None]], JobRunner],
        usual: Usual,
        *,
        clock: Callable[[], float],
        timer: Callable[[], float],
        patience_s: float = ALIVE_S / 4,
    ) -> None:
        self._stored, self._claims, self._runner = stored, claims, runner
        self._usual, self._clock, self._timer = usual, clock, timer
        self._patience_s = patience_s

    def add(
        self,
        schedule: str,
        prompt: str,
        *,
        name: str = "",
        timezone: str = "",
        replace: bool = False,
        **wanted: Unpack[Wanted],
    ) -> JobReport:
        """Keep a job; what was understood, and when it runs next. With `replace`, the job of that
        name is changed: what is not given, the prompt too, stays as it is, and so does its history.
        Raises WrongInput.
        """
        now = self._clock()
        old = self._replaceable(name) if replace else None
        prompt = prompt if prompt.strip() or old is None else old.prompt
        if not prompt.strip():
            raise WrongInput("The job has nothing to do: say what the agent is to do.")
        usual = self._usual.timezone if old is None else old.schedule.timezone
        read = read_schedule(schedule, timezone=find_zone(timezone or usual).key, now=now)
        start: Wanted = {"deliver": self._usual.deliver, "workdir": Path()}
        job = made(
            {**(start if old is None else authored(old)), **wanted},
            id=secrets.token_hex(4),
            name=checked_name(name) if name else free_name(prompt, self._names()),
            prompt=prompt,
            schedule=read.schedule,
            created_at=now,
            next_run_at=following(read.schedule, now),
        )
        check_places(job.deliver)
        self._runner(lambda _text: None).refuse(job)
        if old is None:
            self._stored.add(job)
        else:
            job = self._stored.change(old.id, lambda one: replaced(one, job))
        return msgspec.structs.replace(self._reported(job), said=read.said)

    def check(self, job: Job) -> Checked:
        """What would become of a job if it ran now, as far as that can be known beforehand. Asks
        the model's endpoint for its window.
        """
        try:
            return Checked(remarks=self._runner(lambda _text: None).check(job))
        except JourneymanError as error:
            return Checked(blocked=str(error))

    def list(self, *, removed: bool = False) -> Sequence[Job]:
        """Jobs, the next to run first."""
        return self._stored.list(("removed",) if removed else LIVING)

    def last_runs(self) -> dict[JobId, Run]:
        """The newest run of each job."""
        return self._stored.last_runs()

    def get(self, name: str) -> Job:
        """A job by its name, its id or the beginning of that. Raises UnknownJob."""
        return self._stored.get(name)

    def runs(self, name: str, *, limit: int | None = None) -> Sequence[Run]:
        """The runs of a job, newest first."""
        return self._stored.runs(self.get(name).id, limit=limit)

    def show(self, name: str, *, limit: int | None = 10) -> JobReport:
        """A job with its history."""
        job = self.get(name)
        return msgspec.structs.replace(
            self._reported(job),
            runs=tuple(self._stored.runs(job.id, limit=limit)),
            totals=self._stored.totals(job.id),
        )

    def pause(self, name: str, reason: str = "") -> Job:
        """Let a job not run until it is resumed. What runs now goes on."""

        def change(job: Job) -> Job:
            if job.state == "removed":
                raise WrongInput(f"The job {job.name!r} is removed; there is nothing to pause.")
            if job.state == "done":
                raise WrongInput(f"The job {job.name!r} is done; there is nothing to pause.")
            kept = job.remark if job.state == "paused" else "paused"
            return msgspec.structs.replace(
                job, state="paused", next_run_at=None, remark=reason or kept
            )

        return self._stored.change(name, change)

    def resume(self, name: str) -> Job:
        """Let a job run again: one that is paused, was removed, or is held back after failures.
        Times that have passed meanwhile are not made up for. Raises WrongInput when no time is to
        come.
        """
        now = self._clock()

        def change(job: Job) -> Job:
            after = following(job.schedule, now)
            if after is None or (job.repeat is not None and job.runs >= job.repeat):
                raise WrongInput(
                    f"The job {job.name!r} has no time to come: it was to run {job.schedule.text!r}"
                    f"{'' if job.repeat is None else f', {job.repeat} times'}. Give it another "
                    f"schedule: journeyman jobs add SCHEDULE PROMPT --name {job.name} --replace"
                )
            return msgspec.structs.replace(
                job, state="scheduled", next_run_at=after, failures=0, remark=""
            )

        return self._stored.change(name, change)

    def remove(self, name: str) -> Job:
        """Remove a job; `resume` brings it back."""

        def change(job: Job) -> Job:
            return msgspec.structs.replace(job, state="removed", next_run_at=None, remark="removed")

        return self._stored.change(name, change)

    def delete(self, name: str) -> Job:
        """Forget a job, its runs and their files for good."""
        job = self.get(name)
        left = []
        for run in self._stored.delete(job.id):
            try:
                if run.output:
                    Path(run.output).unlink(missing_ok=True)
            except OSError:
                left.append(run.output)
        if left:
            raise OutsideProblem(
                f"The job {job.name!r} is forgotten, but files of its runs could not be deleted: "
                f"{', '.join(left)}. Delete them yourself."
            )
        return job

    def run(
        self,
        name: str,
        *,
        delivers: bool = True,
        terminal: Callable[[str], None] = print,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Run a job now, here. Its schedule stays as it is. Raises WrongInput while it runs."""
        job = self.get(name)
        self._mark_lost(job, terminal if delivers else None)
        now = self._clock()
        run = Run(
            id=new_run_id(), job=job.id, trigger="hand", started_at=now, holder=this_process()
        )
        if not self._claims.begin(run, alive_until=now + ALIVE_S):
            raise WrongInput(
                f"The job {job.name!r} is running already. See: journeyman jobs show {job.name}"
            )
        lost, done = threading.Event(), run
        try:
            with KeptAlive(self._claims, lambda: (run.id,), self._clock, lambda _: lost.set()):
                done = self._runner(terminal).work(
                    job,
                    run,
                    lambda: cancelled() or lost.is_set(),
                    is_own=lambda: not lost.is_set(),
                    delivers=delivers,
                )
        finally:
            if done is run:
                done = ended(run, "interrupted", "It was stopped at once.", self._clock())
            then = finish(self._claims, done, clock=self._clock, tries=_TRIES)
        return done if then is not None else self._stored.run(run.id)

    def _mark_lost(self, job: Job, terminal: Callable[[str], None] | None) -> None:
        """Mark a run of a job whose program was killed, where no scheduler has looked. Who only
        slept gets the time to give a sign of life.
        """
        if not self._lost_runs(job):
            return
        time.sleep(self._patience_s)
        for old in self._lost_runs(job):
            now = self._clock()
            over = ended(old, "crashed", LOST, now)
            then = finish(self._claims, over, clock=self._clock, lost_at=now, tries=1)
            if then is not None and terminal is not None:
                self._claims.amend(self._runner(terminal).announce(then, over))

    def _lost_runs(self, job: Job) -> Sequence[Run]:
        lost = self._claims.look(self._clock(), most=0).lost
        return [run for run in lost if run.job == job.id]

    def scheduler(
        self,
        *,
        workers: int | None = None,
        terminal: Callable[[str], None] = print,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> Scheduler:
        """A scheduler for these jobs; `serve` it. `terminal` hears what is delivered there, `tell`
        what the scheduler itself has to say.
        """
        return Scheduler(
            self._stored,
            self._claims,
            self._runner(terminal),
            holder=this_process(),
            most=workers or self._usual.workers,
            clock=self._clock,
            timer=self._timer,
            tell=tell,
        )

    def leading(self) -> Leading:
        """The scheduler that is at work, if one is."""
        lease = self._stored.lease()
        if lease is None:
            return Leading()
        is_alive = not is_free(lease[1], self._clock())
        return Leading(holder=lease[0], until=lease[1], is_alive=is_alive)

    def _reported(self, job: Job) -> JobReport:
        times: tuple[float, ...] = ()
        if job.state == "scheduled" and job.next_run_at is not None:
            left = SHOWN_RUNS if job.repeat is None else min(SHOWN_RUNS, job.repeat - job.runs)
            times = (job.next_run_at, *upcoming(job.schedule, job.next_run_at, left - 1))
        return JobReport(job=job, said=job.schedule.said, upcoming=times)

    def _names(self) -> set[str]:
        return {job.name for job in self._stored.list()}

    def _replaceable(self, name: str) -> Job:
        """The job of exactly this name. Raises UnknownJob."""
        found = self._stored.get(name) if name else None
        if found is None or found.name != name or found.state == "removed":
            raise UnknownJob(
                f"No job is called {name!r}, so none can be replaced. To add it, leave --replace "
                "out."
            )
        return found


def this_process() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
