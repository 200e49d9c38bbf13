"""Jobs as people handle them: add, change, list, show, pause, resume, remove, run now, serve."""

import dataclasses
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace as changed

from journeyman.jobs import lifecycle
from journeyman.jobs.clocks import find_zone, machine_zone
from journeyman.jobs.delivery import TERMINAL, check_places
from journeyman.jobs.lifecycle import ended
from journeyman.jobs.runner import JobRunner
from journeyman.jobs.scheduler import ALIVE_S, LOST, Scheduler, finish, heartbeat, shown_holder
from journeyman.jobs.schedules import read_schedule
from journeyman.jobs.times import following, upcoming
from journeyman.records.errors import JourneymanError, OutsideProblem, UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, JobTotals, Run
from journeyman.store.jobs import LIVING, is_free
from journeyman.store.store import Store

SHOWN_RUNS = 5
_TRIES = 6


class Checked(Struct, frozen=True, kw_only=True):
    """What would block a job, nothing if it would run; and what else there is to know."""

    blocked: str = ""
    remarks: tuple[str, ...] = ()


class JobReport(Struct, frozen=True, kw_only=True):
    """A job, what its schedule means, its next times, its newest runs, and all runs summed up."""

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

    def __init__(self, store: Store, runner: JobRunner) -> None:
        self._stored, self._runner, self._usual = store.jobs, runner, runner.settings.jobs
        self._clock = runner.clock
        self._patience_s = ALIVE_S / 4

    def add(
        self,
        schedule: str,
        prompt: str,
        *,
        name: str = "",
        timezone: str = "",
        replace: bool = False,
        **options: Any,
    ) -> JobReport:
        """Keep a job; what was understood, and when it runs next. With `replace`, the job of that
        name is changed, and what is not given stays, the prompt and the history too. `options` are
        further fields of a job.
        """
        now = self._clock()
        old = self._replaceable(name) if replace else None
        if old is None:
            start: dict[str, Any] = {
                "deliver": self._usual.deliver or (TERMINAL,),
                "workdir": Path(),
            }
            usual = self._usual.timezone or machine_zone(self._runner.environment)
        else:
            start = {option: getattr(old, option) for option in lifecycle.OPTIONS}
            usual = old.schedule.timezone
            prompt = prompt if prompt.strip() else old.prompt
        if not prompt.strip():
            raise WrongInput("The job has nothing to do: say what the agent is to do.")
        zone = find_zone(timezone or usual)
        read = read_schedule(schedule, timezone=zone.key, now=now)
        taken = {job.name for job in self._stored.list()}
        job = lifecycle.made(
            {**start, **options},
            id=secrets.token_hex(4),
            name=lifecycle.checked_name(name) if name else lifecycle.free_name(prompt, taken),
            prompt=prompt,
            schedule=read.schedule,
            created_at=now,
            next_run_at=following(read.schedule, now),
        )
        check_places(job.deliver)
        self._runner.check_definition(job)
        if old is None:
            self._stored.add(job)
        else:
            job = self._stored.change(old.id, lambda one: lifecycle.replaced(one, job))
        return changed(self._reported(job), said=read.said)

    def check(self, job: Job) -> Checked:
        """What would become of a job if it ran now. Asks the model's endpoint for its window."""
        try:
            return Checked(remarks=self._runner.check(job))
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

    def show(self, name: str, *, limit: int | None = 10) -> JobReport:
        """A job with its history."""
        job = self.get(name)
        return changed(
            self._reported(job),
            runs=tuple(self._stored.runs(job.id, limit=limit)),
            totals=self._stored.totals(job.id),
        )

    def pause(self, name: str, reason: str = "") -> Job:
        """Let a job not run until it is resumed. What runs now goes on."""

        def change(job: Job) -> Job:
            if job.state in ("removed", "done"):
                raise WrongInput(f"The job {job.name!r} is {job.state}; there is nothing to pause.")
            kept = job.remark if job.state == "paused" else "paused"
            return changed(job, state="paused", next_run_at=None, remark=reason or kept)

        return self._stored.change(name, change)

    def resume(self, name: str) -> Job:
        """Let a job run again; times that have passed are not made up for. Raises WrongInput."""
        now = self._clock()

        def change(job: Job) -> Job:
            after = following(job.schedule, now)
            if after is None or (job.repeat is not None and job.runs >= job.repeat):
                times = "" if job.repeat is None else f", {job.repeat} times"
                raise WrongInput(
                    f"The job {job.name!r} has no time to come: it was to run {job.schedule.text!r}"
                    f"{times}. Give it another schedule: journeyman jobs add SCHEDULE PROMPT "
                    f"--name {job.name} --replace"
                )
            return changed(job, state="scheduled", next_run_at=after, failures=0, remark="")

        return self._stored.change(name, change)

    def remove(self, name: str) -> Job:
        """Remove a job; `resume` brings it back."""
        gone = partial(changed, state="removed", next_run_at=None, remark="removed")
        return self._stored.change(name, gone)

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
        id_, holder = lifecycle.new_run_id(), this_process()
        run = Run(id=id_, job=job.id, trigger="hand", started_at=now, holder=holder)
        if not self._stored.begin(run, alive_until=now + ALIVE_S):
            raise WrongInput(
                f"The job {job.name!r} is running already. See: journeyman jobs show {job.name}"
            )
        lost, done = threading.Event(), run
        try:
            with heartbeat(self._stored, lambda: (run.id,), self._clock, lambda _: lost.set()):
                done = dataclasses.replace(self._runner, terminal=terminal).work(
                    job,
                    run,
                    lambda: cancelled() or lost.is_set(),
                    is_own=lambda: not lost.is_set(),
                    delivers=delivers,
                )
        finally:
            if done is run:
                done = ended(run, "interrupted", "It was stopped at once.", self._clock())
            then = finish(self._stored, done, clock=self._clock, tries=_TRIES)
        kept = () if then is not None else self._stored.runs(job.id)
        return next((one for one in kept if one.id == run.id), done)

    def _mark_lost(self, job: Job, terminal: Callable[[str], None] | None) -> None:
        """Mark runs whose program was killed; one that only slept gets time for a sign of life."""

        def lost() -> Sequence[Run]:
            seen = self._stored.look(self._clock(), most=0).lost
            return [run for run in seen if run.job == job.id]

        if lost():
            time.sleep(self._patience_s)
        for old in lost():
            now = self._clock()
            over = ended(old, "crashed", LOST, now)
            then = finish(self._stored, over, clock=self._clock, lost_at=now, tries=1)
            if then is not None and terminal is not None:
                self._stored.amend(
                    dataclasses.replace(self._runner, terminal=terminal).announce(then, over)
                )

    def scheduler(
        self,
        *,
        workers: int | None = None,
        terminal: Callable[[str], None] = print,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> Scheduler:
        """A scheduler to `serve`. `terminal` hears what is delivered, `tell` its own lines."""
        return Scheduler(
            self._stored,
            dataclasses.replace(self._runner, terminal=terminal),
            holder=this_process(),
            most=workers or self._usual.workers,
            clock=self._clock,
            timer=self._runner.timer,
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
