"""The life of a job: defined by a user, changed, begun, ended, held back while it keeps failing."""

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

from journeyman.jobs.times import following
from journeyman.records.errors import WrongInput
from journeyman.records.job import Job, Run, RunId, RunStatus, Schedule

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_LIKE_AN_ID = re.compile(r"[0-9a-f]{8}")
_NAME_WORDS = 4
_FREE = 2
"""As many failures in a row change nothing."""
_FIRST_S = 600.0
_LONGEST_S = 86_400.0


_FIELDS = [field.name for field in fields(Job)]
OPTIONS = tuple(_FIELDS[_FIELDS.index("skills") : _FIELDS.index("created_at")])
"""What a job can be given besides its schedule and its prompt; see `records.job.Job`."""


def free_name(prompt: str, taken: Set[str]) -> str:
    """A name from the first words of a prompt that no job has."""
    words = re.findall(r"[a-z0-9]+", prompt.lower())[:_NAME_WORDS]
    name = "-".join(words)[:40].strip("-") or "job"
    name = f"job-{name}" if _LIKE_AN_ID.fullmatch(name) else name
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


def checked_name(name: str) -> str:
    """A name that the user gives. Raises WrongInput."""
    if not _NAME.fullmatch(name) or _LIKE_AN_ID.fullmatch(name):
        raise WrongInput(
            f"A job cannot be called {name!r}. Use letters, digits, dots and dashes, 60 at most, "
            "and not just eight digits from 0 to f, which would look like an id."
        )
    return name


def made(wanted: Mapping[str, Any], **given: object) -> Job:
    """A job of what the user wants. Raises WrongInput."""
    values = {**wanted, **given}
    if unknown := [name for name in wanted if name not in OPTIONS]:
        raise WrongInput(f"A job has no {unknown[0]}. It has: {', '.join(OPTIONS)}.")
    for name in ("skills", "deliver", "tools"):
        value = values.get(name)
        if isinstance(value, Iterable):
            values[name] = tuple(dict.fromkeys((value,) if isinstance(value, str) else value))
    workdir = Path(wanted["workdir"]).expanduser().absolute()
    if not workdir.is_dir():
        raise WrongInput(f"The job is to work in {workdir}, which is not a folder. Make it first.")
    try:
        job = msgspec.convert(values | {"workdir": str(workdir)}, Job)
    except msgspec.ValidationError as error:
        raise WrongInput(f"The job cannot be kept as it is: {error}.") from error
    if not job.deliver:
        raise WrongInput("The job delivers nowhere, so no failure would be heard of. Name a place.")
    for name in ("seconds", "script_seconds", "tokens", "cost_usd", "turns", "repeat"):
        limit = getattr(job, name)
        if limit is not None and not 0 < limit < math.inf:
            raise WrongInput(f"The job's {name} is {limit:g}. Give a number above 0, or none.")
    return job


def replaced(old: Job, new: Job) -> Job:
    """A job as it is written now, that stays paused if it was."""
    kept = replace(new, id=old.id, created_at=old.created_at)
    if old.state != "paused":
        return kept
    return replace(kept, state="paused", next_run_at=None, remark=old.remark)


def known_following(schedule: Schedule, after: float) -> float | None:
    """The first time after an instant; None also where this machine does not know the zone."""
    try:
        return following(schedule, after)
    except WrongInput:
        return None


def advanced(job: Job, slot: float, *, counts: bool = True) -> Job:
    """A job once the run for this time has begun, or the time has passed. Raises WrongInput."""
    runs = job.runs + counts
    after = following(job.schedule, slot)
    if after is None or (job.repeat is not None and runs >= job.repeat):
        return replace(job, runs=runs, next_run_at=None, state="done")
    return replace(job, runs=runs, next_run_at=after)


def new_run_id() -> RunId:
    return RunId(secrets.token_hex(5))


def ended(run: Run, status: RunStatus, reason: str, at: float) -> Run:
    """A run that ended otherwise than by itself."""
    return replace(run, status=status, reason=reason, ended_at=at)


def held_for(failures: int) -> float:
    """The seconds that the next run must at least wait after this many failures in a row."""
    beyond = failures - _FREE
    # Past a day's worth of doublings the power itself would become too large.
    return 0.0 if beyond <= 0 else min(_FIRST_S * 2.0 ** min(beyond - 1, 30), _LONGEST_S)


def settled(job: Job, run: Run, now: float) -> Job:
    """A job after a run of it that has ended."""
    due = job.next_run_at
    if run.is_good:
        if job.state != "scheduled":
            return replace(job, failures=0)
        if due is not None and held_for(job.failures):
            due = min(due, _first_from(job.schedule, now) or due)  # what is due stays due
        return replace(job, failures=0, next_run_at=due, remark="")
    if run.trigger == "hand" or run.status == "interrupted":
        return job  # this says nothing about whether the job itself works
    job = replace(job, failures=job.failures + 1)
    held, remark = held_for(job.failures), f"{job.failures} failures in a row"
    if job.state != "scheduled" or not held or due is None:
        return job
    if due >= now + held:
        return replace(job, remark=remark)
    due = _first_from(job.schedule, now + held) or now + held
    remark += (
        f": held back until {datetime.fromtimestamp(due, UTC):%Y-%m-%d %H:%M} UTC; "
        f"journeyman jobs resume {shlex.quote(job.name)} clears it"
    )
    return replace(job, next_run_at=due, remark=remark)


def _first_from(schedule: Schedule, earliest: float) -> float | None:
    return known_following(schedule, math.nextafter(earliest, 0.0))
