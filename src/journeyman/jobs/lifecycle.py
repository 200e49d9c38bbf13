"""The lifecycle of a job: definition, change, runs, and the pause after repeated failures."""

import math
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Set
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import fields, replace

from journeyman.jobs.occurrences import next_occurrence
from journeyman.jobs.time_zones import zone_or_utc
from journeyman.records.errors import WrongInput
from journeyman.records.job import Job, Run, RunId, RunStatus, Schedule

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_ID_LIKE = re.compile(r"[0-9a-f]{8}")
_NAME_WORDS = 4
_TOLERATED_FAILURES = 2
"""This many failures in a row cause no pause."""
_FIRST_BACKOFF_S = 600.0
_MAX_BACKOFF_S = 86_400.0


_FIELDS = [field.name for field in fields(Job)]
OPTIONS = tuple(_FIELDS[_FIELDS.index("skills") : _FIELDS.index("created_at")])
"""The options of a job besides its schedule and its prompt; see `records.job.Job`."""
_OF_RUNNER = ("runner", "model", "provider", "tools", "warm", "access")


def kept_options(old: Job, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options that a job keeps when these change: another runner knows neither the
    models nor the tools of the one before.
    """
    is_same = options.get("runner", old.runner) == old.runner
    return tuple(name for name in OPTIONS if is_same or name not in _OF_RUNNER)


def unused_name(prompt: str, taken: Set[str]) -> str:
    """Return a name from the first words of a prompt that no job has."""
    words = re.findall(r"[a-z0-9]+", prompt.lower())[:_NAME_WORDS]
    name = "-".join(words)[:40].strip("-") or "job"
    name = f"job-{name}" if _ID_LIKE.fullmatch(name) else name
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def is_valid_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not _ID_LIKE.fullmatch(name)


def validate_name(name: str) -> str:
    """Return the name. Raise WrongInput if it is not valid."""
    if not is_valid_name(name):
        raise WrongInput(
            f"A job cannot be called {name!r}. Use up to 60 letters, digits, dots and dashes, "
            "but not exactly eight characters from 0-9 and a-f, which would look like an id."
        )
    return name


def build_job(options: Mapping[str, Any], **fields: object) -> Job:
    """Return a job with the user's options and further fields. Raise WrongInput if one is not
    valid.
    """
    values = {**options, **fields}
    if unknown := [name for name in options if name not in OPTIONS]:
        valid = ", ".join(OPTIONS)
        raise WrongInput(f"A job has no option {unknown[0]}. Valid options are: {valid}.")
    for name in ("skills", "deliver", "tools"):
        value = values.get(name)
        if isinstance(value, Iterable):
            values[name] = tuple(dict.fromkeys((value,) if isinstance(value, str) else value))
    workdir = Path(options["workdir"]).expanduser().absolute()
    if not workdir.is_dir():
        raise WrongInput(
            f"The job cannot work in {workdir}, which is not a folder. Create it first."
        )
    try:
        job = msgspec.convert(values | {"workdir": str(workdir)}, Job)
    except msgspec.ValidationError as error:
        raise WrongInput(f"The job cannot be stored: {error}.") from error
    if not job.deliver:
        raise WrongInput(
            "The job delivers nowhere, so its failures would go unnoticed. Name a place."
        )
    for name in ("seconds", "script_seconds", "tokens", "cost_usd", "turns", "repeat"):
        limit = getattr(job, name)
        if limit is not None and not 0 < limit < math.inf:
            raise WrongInput(f"The job's {name} is {limit:g}. Set a number above 0, or none.")
    return job


def replace_definition(old: Job, new: Job) -> Job:
    """Return the new job with the identity of the old one. A paused job stays paused."""
    job = replace(new, id=old.id, created_at=old.created_at)
    if old.state != "paused":
        return job
    return replace(job, state="paused", next_run_at=None, remark=old.remark)


def find_next_occurrence(schedule: Schedule, after: float) -> float | None:
    """Return the first occurrence after an instant, or None, also if this machine does not know the
    time zone.
    """
    try:
        return next_occurrence(schedule, after)
    except WrongInput:
        return None


def advance(job: Job, slot: float, *, counts_run: bool = True) -> Job:
    """Return a job after the run for this occurrence has started, or the occurrence was skipped.
    Raise WrongInput for an unknown time zone.
    """
    runs = job.runs + counts_run
    after = next_occurrence(job.schedule, slot)
    if after is None or (job.repeat is not None and runs >= job.repeat):
        return replace(job, runs=runs, next_run_at=None, held_since=None, state="done")
    return replace(job, runs=runs, next_run_at=after, held_since=None)


def new_run_id() -> RunId:
    return RunId(secrets.token_hex(5))


def end_run(run: Run, status: RunStatus, reason: str, at: float) -> Run:
    """Return a run that was ended from outside."""
    return replace(run, status=status, reason=reason, ended_at=at)


def missed_record(job: Job, run: Run, first: float, count: int, reason: str) -> Run:
    """Return the record of due times that could not run, from `first` on and before that of a
    run.
    """
    zone = zone_or_utc(job.schedule.timezone)
    since = f"{datetime.fromtimestamp(first, zone):%Y-%m-%d %H:%M %Z}"
    times = f"{count:,} due times, from {since} on, were" if count > 1 else f"{since} was"
    return replace(
        run,
        id=new_run_id(),
        status="missed",
        due_at=None,
        missed=count,
        started_at=first,
        ended_at=run.started_at,
        reason=f"{times} not run: {reason}. They are not made up for.",
    )


def backoff_s(failures: int) -> float:
    """Return the shortest wait before the next run after this many failures in a row."""
    excess = failures - _TOLERATED_FAILURES
    # The exponent is limited, because the power would overflow.
    return (
        0.0 if excess <= 0 else min(_FIRST_BACKOFF_S * 2.0 ** min(excess - 1, 30), _MAX_BACKOFF_S)
    )


def apply_result(job: Job, run: Run, now: float) -> Job:
    """Return a job after one of its runs has ended."""
    due = job.next_run_at
    if run.is_good:
        if job.state != "scheduled":
            return replace(job, failures=0)
        if due is not None and backoff_s(job.failures):
            due = min(due, _first_at_or_after(job.schedule, now) or due)  # an overdue run stays due
        return replace(job, failures=0, next_run_at=due, remark="")
    if run.trigger == "hand" or run.status == "interrupted":
        return job  # no evidence of whether the job works
    job = replace(job, failures=job.failures + 1)
    wait_s, remark = backoff_s(job.failures), f"{job.failures} failures in a row"
    if job.state != "scheduled" or not wait_s or due is None:
        return job
    if due >= now + wait_s:
        return replace(job, remark=remark)
    due = _first_at_or_after(job.schedule, now + wait_s) or now + wait_s
    remark += (
        f": held until {datetime.fromtimestamp(due, UTC):%Y-%m-%d %H:%M} UTC; "
        f"journeyman jobs resume {shlex.quote(job.name)} clears it"
    )
    held_since = job.held_since or job.next_run_at
    return replace(job, next_run_at=due, held_since=held_since, remark=remark)


def _first_at_or_after(schedule: Schedule, earliest: float) -> float | None:
    return find_next_occurrence(schedule, math.nextafter(earliest, 0.0))
