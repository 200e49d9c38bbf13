"""Job management: add, change, list, show, pause, resume, remove, run now, and serve."""

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
from msgspec.structs import replace as updated

from journeyman.jobs import lifecycle
from journeyman.jobs.delivery import TERMINAL, check_destinations
from journeyman.jobs.occurrences import next_occurrence, next_occurrences
from journeyman.jobs.runner import JobRunner
from journeyman.jobs.schedule_parser import parse_schedule
from journeyman.jobs.scheduler import ALIVE_S, LOST, Scheduler, finish, heartbeat
from journeyman.jobs.time_zones import get_zone, machine_zone
from journeyman.records.errors import JourneymanError, OutsideProblem, UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, Run
from journeyman.store.jobs import ACTIVE_STATES, is_lease_free
from journeyman.store.store import Store

SHOWN_TIMES = 5
_FINISH_ATTEMPTS = 6


class JobCheck(Struct, frozen=True, kw_only=True):
    """Whether a job could run now: the reason that blocks it, or an empty string, and remarks."""

    blocked: str = ""
    remarks: tuple[str, ...] = ()


class JobReport(Struct, frozen=True, kw_only=True):
    """A job, its schedule in words, its next times, and its newest runs."""

    job: Job
    said: str
    upcoming: tuple[float, ...] = ()
    runs: tuple[Run, ...] = ()


class SchedulerStatus(Struct, frozen=True, kw_only=True):
    """The active scheduler: its process, and the time until which it holds the lease."""

    holder: str = ""
    until: float = 0.0
    is_alive: bool = False


class Jobs:
    """The jobs of one home."""

    def __init__(self, store: Store, runner: JobRunner) -> None:
        self._repository, self._runner = store.jobs, runner
        self._settings = runner.settings.jobs
        self._clock = runner.clock
        self._heartbeat_wait_s = ALIVE_S / 4

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
        """Store a job, and report how its schedule was understood and when it runs next. With
        `replace`, change the job with that name; everything not passed stays, including the prompt
        and the history. `options` are further fields of a job. Raise WrongInput if one is invalid.
        """
        now = self._clock()
        old = self._get_replaceable(name) if replace else None
        if old is None:
            defaults: dict[str, Any] = {
                "deliver": self._settings.deliver or (TERMINAL,),
                "workdir": Path(),
            }
            default_zone = self._settings.timezone or machine_zone(self._runner.environment)
        else:
            kept = lifecycle.kept_options(old, options)
            defaults = {option: getattr(old, option) for option in kept}
            default_zone = old.schedule.timezone
            prompt = prompt if prompt.strip() else old.prompt
        if not prompt.strip():
            raise WrongInput("The job has no prompt. State what the agent should do.")
        zone = get_zone(timezone or default_zone)
        parsed = parse_schedule(schedule, timezone=zone.key, now=now)
        taken = {job.name for job in self._repository.list()}
        job = lifecycle.build_job(
            {**defaults, **options},
            id=secrets.token_hex(4),
            name=lifecycle.validate_name(name) if name else lifecycle.unused_name(prompt, taken),
            prompt=prompt,
            schedule=parsed.schedule,
            created_at=now,
            next_run_at=next_occurrence(parsed.schedule, now),
        )
        check_destinations(job.deliver)
        if old is None and "runner" not in options:
            job = updated(job, runner=self._runner.choose_runner(job))
        self._runner.check_definition(job)
        if old is None:
            self._repository.add(job)
        else:
            job = self._repository.change(
                old.id, lambda current: lifecycle.replace_definition(current, job)
            )
        return updated(self._report(job), said=parsed.description)

    def check(self, job: Job) -> JobCheck:
        """Check whether a job could run now. Queries the model's endpoint for its window."""
        try:
            return JobCheck(remarks=self._runner.check(job))
        except JourneymanError as error:
            return JobCheck(blocked=str(error))

    def list(self, *, removed: bool = False) -> Sequence[Job]:
        """List jobs, the next to run first."""
        return self._repository.list(("removed",) if removed else ACTIVE_STATES)

    def last_runs(self) -> dict[JobId, Run]:
        """Return the newest run of each job."""
        return self._repository.last_runs()

    def get(self, name: str) -> Job:
        """Return a job by its name, its id or the beginning of its id. Raise UnknownJob."""
        return self._repository.get(name)

    def show(self, name: str, *, limit: int | None = 10) -> JobReport:
        """Return a job with its history. Raise UnknownJob."""
        job = self.get(name)
        runs = tuple(self._repository.runs(job.id, limit=limit))
        return updated(self._report(job), runs=runs)

    def pause(self, name: str, reason: str = "") -> Job:
        """Pause a job until it is resumed. A run in progress continues."""

        def change(job: Job) -> Job:
            if job.state in ("removed", "done"):
                raise WrongInput(f"The job {job.name!r} is {job.state} and cannot be paused.")
            remark = job.remark if job.state == "paused" else "paused"
            return updated(job, state="paused", next_run_at=None, remark=reason or remark)

        return self._repository.change(name, change)

    def resume(self, name: str) -> Job:
        """Resume a job. Missed times are not made up for. Raise WrongInput if no run remains."""
        now = self._clock()

        def change(job: Job) -> Job:
            after = next_occurrence(job.schedule, now)
            if after is None or (job.repeat is not None and job.runs >= job.repeat):
                times = "" if job.repeat is None else f", {job.repeat} times"
                raise WrongInput(
                    f"The job {job.name!r} has no further runs: its schedule is "
                    f"{job.schedule.text!r}{times}. Set another schedule: journeyman jobs add "
                    f"SCHEDULE PROMPT --name {job.name} --replace"
                )
            return updated(
                job, state="scheduled", next_run_at=after, held_since=None, failures=0, remark=""
            )

        return self._repository.change(name, change)

    def remove(self, name: str) -> Job:
        """Remove a job; `resume` brings it back."""
        change = partial(updated, state="removed", next_run_at=None, remark="removed")
        return self._repository.change(name, change)

    def delete(self, name: str) -> Job:
        """Delete a job, its runs and their files. Raise OutsideProblem if a file remains."""
        job = self.get(name)
        for path in [run.output for run in self._repository.delete(job.id) if run.output]:
            try:
                Path(path).unlink(missing_ok=True)
            except OSError as error:
                raise OutsideProblem(
                    f"The job {job.name!r} was deleted, but not the files of its runs: {path}: "
                    f"{error.strerror}. Delete them yourself."
                ) from error
        return job

    def run(
        self,
        name: str,
        *,
        delivers: bool = True,
        terminal: Callable[[str], None] = print,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Run:
        """Run a job now, in this process, without changing its schedule. Raise WrongInput if it is
        already running.
        """
        job = self.get(name)
        self._end_lost_runs(job, terminal if delivers else None)
        now = self._clock()
        id_, holder = lifecycle.new_run_id(), unique_process_name()
        run = Run(id=id_, job=job.id, trigger="hand", started_at=now, holder=holder)
        if not self._repository.begin(run, alive_until=now + ALIVE_S):
            raise WrongInput(
                f"The job {job.name!r} is already running. See: journeyman jobs show {job.name}"
            )
        lost = threading.Event()
        done = lifecycle.end_run(run, "interrupted", "The run was stopped immediately.", now)
        try:
            with heartbeat(self._repository, lambda: (run.id,), self._clock, lambda _: lost.set()):
                done = dataclasses.replace(self._runner, terminal=terminal).work(
                    job,
                    run,
                    lambda: cancelled() or lost.is_set(),
                    is_own=lambda: not lost.is_set(),
                    delivers=delivers,
                )
        finally:
            after = finish(self._repository, done, clock=self._clock, tries=_FINISH_ATTEMPTS)
        stored = () if after is not None else self._repository.runs(job.id)
        return next((other for other in stored if other.id == run.id), done)

    def _end_lost_runs(self, job: Job, terminal: Callable[[str], None] | None) -> None:
        """End runs that were killed. A process that only slept gets time for a heartbeat."""
        now = self._clock()
        lost = [run for run in self._repository.look(now, most=0).lost if run.job == job.id]
        if lost:
            time.sleep(self._heartbeat_wait_s)
        for run in lost:
            ended = lifecycle.end_run(run, "crashed", LOST, self._clock())
            after = finish(
                self._repository, ended, clock=self._clock, lost_at=self._clock(), tries=1
            )
            if after is not None and terminal is not None:
                self._repository.amend(
                    dataclasses.replace(self._runner, terminal=terminal).announce(after, ended)
                )

    def scheduler(
        self,
        *,
        workers: int | None = None,
        terminal: Callable[[str], None] = print,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> Scheduler:
        """Return a scheduler. `terminal` receives deliveries, `tell` the scheduler's own lines."""
        return Scheduler(
            self._repository,
            dataclasses.replace(self._runner, terminal=terminal),
            holder=unique_process_name(),
            workers=workers or self._settings.workers,
            clock=self._clock,
            timer=self._runner.timer,
            report=tell,
        )

    def leading(self) -> SchedulerStatus:
        """Return the active scheduler, or an empty record if there is none."""
        lease = self._repository.lease()
        if lease is None:
            return SchedulerStatus()
        is_alive = not is_lease_free(lease[1], self._clock())
        return SchedulerStatus(holder=lease[0], until=lease[1], is_alive=is_alive)

    def _report(self, job: Job) -> JobReport:
        times: tuple[float, ...] = ()
        if job.state == "scheduled" and job.next_run_at is not None:
            count = SHOWN_TIMES if job.repeat is None else min(SHOWN_TIMES, job.repeat - job.runs)
            later = next_occurrences(job.schedule, job.next_run_at, count - 1)
            times = (job.next_run_at, *later)
        return JobReport(job=job, said=job.schedule.said, upcoming=times)

    def _get_replaceable(self, name: str) -> Job:
        """Return the job with exactly this name. Raise UnknownJob."""
        for job in self._repository.list():
            if job.name == name:
                return job
        raise UnknownJob(f"There is no job {name!r} to replace. To add it, leave out --replace.")


def unique_process_name() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
