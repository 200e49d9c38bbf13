"""How jobs and runs stand after something happened to them, and how people are told. Pure; what is
kept of it is left to others.
"""

import secrets

import msgspec

from journeyman.records.errors import WrongInput
from journeyman.records.job import Job, Run, RunId, RunStatus, Schedule
from journeyman.schedule.timing.times import following


def advanced(job: Job, slot: float, *, counts: bool = True) -> Job:
    """How a job stands when the run for this time on its schedule has begun, or, where that does
    not count, when the time has only passed.
    """
    runs = job.runs + counts
    after = following(job.schedule, slot)
    if after is None or (job.repeat is not None and runs >= job.repeat):
        return msgspec.structs.replace(job, runs=runs, next_run_at=None, state="done")
    return msgspec.structs.replace(job, runs=runs, next_run_at=after)


def known_following(schedule: Schedule, after: float) -> float | None:
    """The first time after an instant; None also where this machine does not know the zone."""
    try:
        return following(schedule, after)
    except WrongInput:
        return None


def ended(run: Run, status: RunStatus, reason: str, at: float) -> Run:
    """A run that ended otherwise than by itself."""
    return msgspec.structs.replace(run, status=status, reason=reason, ended_at=at)


def shown_times(missed: int) -> str:
    return "1 time" if missed == 1 else f"{missed:,} times"


def shown_holder(holder: str) -> str:
    """A process as people know it."""
    host, _, process = holder.rpartition(":")[0].rpartition(":")
    return f"process {process} on {host}" if host else holder


def new_run_id() -> RunId:
    return RunId(secrets.token_hex(5))
