"""Cron expressions and the occurrences of a schedule: the next one, the next few, and the latest
missed one. Results do not depend on the instant from which occurrences are enumerated.
"""

import math
import re
from copy import copy
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import count
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression

from journeyman.jobs.time_zones import clock_reading, find_change, get_zone, instant
from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule
from journeyman.text.durations import DAY_S

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

# In order, by the names in cronsim's messages: the accepted values, and the largest step.
_FIELDS = {
    "minute": ("0-59", 60),
    "hour": ("0-23", 24),
    "day-of-month": ("1-31 if the month has it, L for the last or LW for the last weekday", 31),
    "month": ("1-12 or JAN-DEC", 12),
    "day-of-week": ("0-7 or SUN-SAT, both 0 and 7 for Sunday", 7),
}
_EARLIEST = datetime(1970, 1, 1)  # noqa: DTZ001 - cronsim requires a start; local times have no zone

_CHANGE_WINDOW_S = 2 * DAY_S
"""Longer than any clock change, shorter than the time between two of them."""
_MAX_GAP_S = 50 * 366 * DAY_S
"""No expression has a longer gap: the 29th of February is a Monday within 40 years."""
_SECOND = timedelta(seconds=1)


def check_cron(expression: str) -> None:
    """Raise WrongInput, with the reason, if an expression is not valid."""
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        raise WrongInput(f"it has {len(fields)} fields instead of the five {', '.join(_FIELDS)}")
    try:
        sim = _cron(expression)
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        if name not in _FIELDS:
            raise WrongInput(str(error)) from error
        value = fields[list(_FIELDS).index(name)]
        raise WrongInput(f"{value!r} is not a valid {name}, which is {_FIELDS[name][0]}") from error
    if _next_local(sim, _EARLIEST) is None:
        raise WrongInput("it never occurs")
    for field, (name, (accepted, max_step)) in zip(fields, _FIELDS.items(), strict=True):
        if max(map(int, re.findall(r"/([0-9]+)", field)), default=0) > max_step:
            raise WrongInput(
                f"the step in {field!r} has no effect, because the {name} is {accepted} and starts "
                'over each time: for an interval, write for example "every 90m"'
            )


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
    words = words.replace("day of month", "day of the month")
    suffixes = {"1": "st", "2": "nd", "3": "rd"}
    return re.sub(r"\b([2-5])([123])th\b", lambda m: m[1] + m[2] + suffixes[m[2]], words)


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
            sim, zone = _cron(schedule.cron), get_zone(schedule.timezone)
            # Debian's rule: minutes or hours that start with a star follow elapsed time.
            is_wildcard = schedule.cron.startswith("*") or schedule.cron.split()[1].startswith("*")
            at = (_next_by_elapsed_time if is_wildcard else _next_by_local_time)(
                sim, zone, math.floor(after)
            )
            return None if at is None else float(at)


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


@lru_cache(maxsize=1024)
def _cron(expression: str) -> CronSim:
    return CronSim(expression, _EARLIEST)


def _next_local(sim: CronSim, local: datetime) -> datetime | None:
    """Return the first matching local time after another, or None if there is none."""
    sim = copy(sim)  # the cached one is shared by all threads
    sim.dt = local
    return next(sim, None)


def _next_by_local_time(sim: CronSim, zone: ZoneInfo, after: int) -> int | None:
    """Run at each local time once: a skipped time right after the gap, a repeated time at its first
    occurrence. In the second pass of a repeated hour, its times are in the past.
    """
    local = _next_local(sim, clock_reading(after, zone))
    while local is not None and instant(local, zone) <= after:
        local = _next_local(sim, local)
    return None if local is None else instant(local, zone)


def _next_by_elapsed_time(sim: CronSim, zone: ZoneInfo, after: int) -> int | None:
    """Run whenever the clocks show a matching time, including repeated ones."""
    last = after + _MAX_GAP_S
    reading = clock_reading(after, zone)
    local = _next_local(sim, reading)
    while local is not None and after < last:  # some times are always skipped
        at = after + round((local - reading).total_seconds())
        change = find_change(after, min(at, after + _CHANGE_WINDOW_S), zone)
        if change is not None:
            # Nothing matches before the change; the search continues from the changed clocks.
            after, reading = change, clock_reading(change, zone)
            local = _next_local(sim, reading - _SECOND)
        elif at - after <= _CHANGE_WINDOW_S:
            return at
        else:
            # No clock change on the way can make it match earlier than this.
            after = max(after + _CHANGE_WINDOW_S, at - _CHANGE_WINDOW_S)
            reading = clock_reading(after, zone)
            local = _next_local(sim, reading)
    return None


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
