"""Cron expressions and the occurrences of a schedule: the next one, the next few, and the latest
missed one.
"""

import math
from datetime import datetime
from itertools import count

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression

from journeyman.jobs.time_zones import get_zone
from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MAX_MISSED = 10_000
"""Missed occurrences are counted up to this number."""

# In order, by the names in cronsim's messages: the accepted values.
_FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31 if the month has it, L for the last or LW for the last weekday",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, both 0 and 7 for Sunday",
}
_EARLIEST = datetime(1970, 1, 1)  # noqa: DTZ001 - cronsim requires a start; local times have no zone


def check_cron(expression: str) -> None:
    """Raise WrongInput, with the reason, if an expression is not valid."""
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        raise WrongInput(f"it has {len(fields)} fields instead of the five {', '.join(_FIELDS)}")
    try:
        sim = CronSim(expression, _EARLIEST)
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        if name not in _FIELDS:
            raise WrongInput(str(error)) from error
        value = fields[list(_FIELDS).index(name)]
        raise WrongInput(f"{value!r} is not a valid {name}, which is {_FIELDS[name]}") from error
    if next(sim, None) is None:
        raise WrongInput("it never occurs")


def describe_cron(expression: str) -> str:
    """Describe a valid expression in words."""
    fields = expression.upper().split()
    parts = Expression([*fields])
    if not parts.day_and:
        # With both kinds of days, either one matches; a star in one of them matches every day.
        if parts.day.star or parts.dow.star:
            fields[2] = fields[4] = "*"
        words = Expression(fields).explain()
        words = words.replace(f"{parts.day} and {parts.dow}", f"{parts.day} or {parts.dow}")
    else:
        words = parts.explain()
    return words.replace("day of month", "day of the month")


def next_occurrence(schedule: Schedule, after: float) -> float | None:
    """Return the first occurrence after an instant, or None. Raise WrongInput for an unknown time
    zone.
    """
    match schedule.kind:
        case "once":
            return schedule.at if schedule.at > after else None
        case "every":
            # Starts one early, because the division may have been rounded.
            first = max(1, math.floor((after - schedule.at) / schedule.seconds))
            times = (schedule.at + number * schedule.seconds for number in count(first))
            return next(time for time in times if time > after)
        case "cron":
            # cronsim follows Debian's rules: a skipped time runs after the gap, a repeated one the
            # first time, and minutes or hours that start with a star follow elapsed time.
            start = datetime.fromtimestamp(math.floor(after), get_zone(schedule.timezone))
            times = (time.timestamp() for time in CronSim(schedule.cron, start))
            return next((time for time in times if time > after), None)


def next_occurrences(schedule: Schedule, after: float, limit: int) -> list[float]:
    """Return the occurrences after an instant, up to `limit`."""
    times: list[float] = []
    while len(times) < limit and (at := next_occurrence(schedule, after)) is not None:
        times.append(at)
        after = at
    return times


def latest_due(schedule: Schedule, due: float, now: float) -> tuple[float, int]:
    """Return the latest occurrence that is not after `now`, and the number of earlier ones since
    `due`, counted up to 10,000. `due` itself counts, whether or not it is on the schedule.
    """
    first = next_occurrence(schedule, due)
    if first is None or first > now:
        return due, 0
    at = _latest_between(schedule, due, now)
    missed, time = 1, first
    while time < at and missed < MAX_MISSED:
        time = next_occurrence(schedule, time) or at
        missed += 1
    return at, missed


def _latest_between(schedule: Schedule, due: float, now: float) -> float:
    """Return the last occurrence after `due` that is not after `now`; there must be one."""
    low, high = math.floor(due), math.floor(now)
    while high - low > 1:
        middle = (low + high) // 2
        at = next_occurrence(schedule, middle)
        if at is None or at > now:
            high = middle
        else:
            low = middle
    last = next_occurrence(schedule, low)
    assert last is not None
    return last
