"""How a job stands after a run: failures in a row are counted, and a job that goes on failing is
held back longer and longer. Reading schedules and keeping the job are left to others.
"""

import shlex
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from journeyman.records.job import Job, Run, Schedule

FREE = 2
"""So many failures in a row change nothing."""

_FIRST_S = 600.0
_LONGEST_S = 86_400.0

Following = Callable[[Schedule, float], float | None]
"""The first time on a schedule after another; None when there is none."""


def held_for(failures: int) -> float:
    """The seconds that the next run must at least wait after so many failures in a row."""
    beyond = failures - FREE
    # Past a day's worth of doublings the power itself would become too large.
    return 0.0 if beyond <= 0 else min(_FIRST_S * 2.0 ** min(beyond - 1, 30), _LONGEST_S)


def settled(job: Job, run: Run, *, now: float, following: Following) -> Job:
    """How the job stands after a run that has ended."""
    if run.is_good:
        return _went_well(job, now, following)
    if run.trigger == "hand" or run.status == "interrupted":
        return job  # no word on whether the job itself works
    return _went_wrong(job, now, following)


def _went_well(job: Job, now: float, following: Following) -> Job:
    if job.state != "scheduled":
        return replace(job, failures=0)
    due = job.next_run_at
    if held_for(job.failures) and due is not None:
        # What is due already stays due.
        due = min(due, _first_from(job.schedule, now, following) or due)
    return replace(job, failures=0, next_run_at=due, remark="")


def _went_wrong(job: Job, now: float, following: Following) -> Job:
    failures = job.failures + 1
    job = replace(job, failures=failures)
    held, due = held_for(failures), job.next_run_at
    if job.state != "scheduled" or not held or due is None:
        return job
    if due >= now + held:
        return replace(job, remark=f"{failures} failures in a row")
    due = _first_from(job.schedule, now + held, following) or now + held
    until = f"{datetime.fromtimestamp(due, UTC):%Y-%m-%d %H:%M} UTC"
    remark = (
        f"{failures} failures in a row: held back until {until}; "
        f"journeyman jobs resume {shlex.quote(job.name)} clears it"
    )
    return replace(job, next_run_at=due, remark=remark)


def _first_from(schedule: Schedule, earliest: float, following: Following) -> float | None:
    """The first time on a schedule that is not before the earliest."""
    found = following(schedule, earliest - 1.0)
    while found is not None and found < earliest:
        found = following(schedule, found)
    return found
