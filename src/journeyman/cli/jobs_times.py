"""Times of jobs for people: on the clocks of a job's zone, and how far away they are."""

from datetime import datetime

from journeyman.records.job import Job
from journeyman.schedule.timing.zones import known_zone

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def on_clock(at: float, job: Job) -> datetime:
    """An instant as the clocks of the job's zone show it."""
    return datetime.fromtimestamp(int(at), known_zone(job.schedule.timezone))


def in_full(at: float, job: Job) -> str:
    """With the day of the week and the offset from UTC, so that a clock change can be seen."""
    local = on_clock(at, job)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{local:%a %Y-%m-%d} {clock} {local.isoformat()[19:]}"


def in_brief(at: float, job: Job, now: float, *, with_year: bool = False) -> str:
    """To the minute, with the zone's short name; the year at least when it is another one."""
    local = on_clock(at, job)
    with_year = with_year or local.year != on_clock(now, job).year
    return f"{local:{'%a %Y-%m-%d' if with_year else '%a %m-%d'} %H:%M} {local.tzname()}"


def length(seconds: float) -> str:
    """A length of time in a few characters: 0.4 s, 42 s, 1.5 min, 26 h, 12 d."""
    seconds = max(0.0, seconds)
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.2g} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:.2g} h"
    return f"{seconds / _DAY:,.0f} d"


def away(at: float, now: float) -> str:
    """How far away a time is, to one side or the other."""
    return f"in {length(at - now)}" if at > now else f"{length(now - at)} ago"
