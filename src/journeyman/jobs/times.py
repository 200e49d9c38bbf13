"""Cron expressions, and the times of a schedule: the next one, the next few, and the last of those
that were missed. No answer depends on where one began to ask.
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

from journeyman.jobs.clocks import clock_reading, find_change, find_zone, instant
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
COUNTED = 10_000
"""Missed times are counted up to this number."""

# In their order, by the names in cronsim's messages: what can be written, and the largest step.
_FIELDS = {
    "minute": ("0-59", 60),
    "hour": ("0-23", 24),
    "day-of-month": ("1-31 if the month has it, L for the last or LW for the last weekday", 31),
    "month": ("1-12 or JAN-DEC", 12),
    "day-of-week": ("0-7 or SUN-SAT, both 0 and 7 for Sunday", 7),
}
_EARLIEST = datetime(1970, 1, 1)  # noqa: DTZ001 - cronsim wants one; local times have no zone

_NEAR_S = 2 * 86_400
"""More than any clock change moves the clocks, less than there is between two of them."""
_FAR_S = 50 * 366 * 86_400
"""No expression has a longer pause: the 29th of February is a Monday after 40 years at most."""
_SECOND = timedelta(seconds=1)


def check_cron(expression: str) -> None:
    """Raise WrongInput that says what is wrong with an expression of five fields."""
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        raise WrongInput(f"it has {len(fields)} fields, and not the five {', '.join(_FIELDS)}")
    try:
        sim = _cron(expression)
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        if name not in _FIELDS:
            raise WrongInput(str(error)) from error
        wrong = fields[list(_FIELDS).index(name)]
        raise WrongInput(f"{wrong!r} cannot be the {name}, which is {_FIELDS[name][0]}") from error
    if _next_local(sim, _EARLIEST) is None:
        raise WrongInput("this time never comes")
    for field, (name, (allowed, longest)) in zip(fields, _FIELDS.items(), strict=True):
        if max(map(int, re.findall(r"/([0-9]+)", field)), default=0) > longest:
            raise WrongInput(
                f"the step in {field!r} is never taken, as the {name} is {allowed}, and begins "
                'anew each time: for an interval, write for example "every 90m"'
            )


def describe_cron(expression: str) -> str:
    """What an expression that can be used means, in words."""
    fields = expression.upper().split()
    parts = Expression([*fields])
    if not parts.day_and:
        # Where both kinds of days are given, either will do, and so do all days of one kind.
        if parts.day.star or parts.dow.star:
            fields[2] = fields[4] = "*"
        said = Expression(fields).explain()
        said = said.replace(f"{parts.day} and {parts.dow}", f"{parts.day} or {parts.dow}")
    else:
        said = parts.explain()
    said = said.replace("day of month", "day of the month")
    ends = {"1": "st", "2": "nd", "3": "rd"}
    return re.sub(r"\b([2-5])([123])th\b", lambda m: m[1] + m[2] + ends[m[2]], said)


def following(schedule: Schedule, after: float) -> float | None:
    """The first time after an instant, if any. Raises WrongInput for an unknown time zone."""
    match schedule.kind:
        case "once":
            return schedule.at if schedule.at > after else None
        case "every":
            # One earlier than the division says, which may have been rounded.
            first = max(1, math.floor((after - schedule.at) / schedule.seconds))
            times = (schedule.at + number * schedule.seconds for number in count(first))
            return next(time for time in times if time > after)
        case "cron":
            sim, zone = _cron(schedule.cron), find_zone(schedule.timezone)
            # Debian's rule: what begins with a star goes by real time.
            is_wild = schedule.cron.startswith("*") or schedule.cron.split()[1].startswith("*")
            at = (_by_real_time if is_wild else _by_the_clock)(sim, zone, math.floor(after))
            return None if at is None else float(at)


def upcoming(schedule: Schedule, after: float, most: int) -> list[float]:
    """The first times after an instant, as many as there are up to `most`."""
    times: list[float] = []
    while len(times) < most and (at := following(schedule, after)) is not None:
        times.append(at)
        after = at
    return times


def latest(schedule: Schedule, due: float, now: float) -> tuple[float, int]:
    """Of the times from `due` on, the last that is not after `now`, and how many come before it,
    counted up to 10,000. `due` is the first of them, whether or not it is on the schedule.
    """
    first = following(schedule, due)
    if first is None or first > now:
        return due, 0
    at = _last(schedule, due, now)
    missed, time = 1, first
    while time < at and missed < COUNTED:
        time = following(schedule, time) or at
        missed += 1
    return at, missed


@lru_cache(maxsize=1024)
def _cron(expression: str) -> CronSim:
    return CronSim(expression, _EARLIEST)


def _next_local(sim: CronSim, local: datetime) -> datetime | None:
    """The first local time of an expression after another; None when none ever comes."""
    sim = copy(sim)  # the one that is kept is shared by all threads
    sim.dt = local
    return next(sim, None)


def _by_the_clock(sim: CronSim, zone: ZoneInfo, after: int) -> int | None:
    """Each local time once: skipped ones when the clocks have jumped, repeated ones the first
    time. An instant in the second pass of a repeated hour has those times behind it.
    """
    local = _next_local(sim, clock_reading(after, zone))
    while local is not None and instant(local, zone) <= after:
        local = _next_local(sim, local)
    return None if local is None else instant(local, zone)


def _by_real_time(sim: CronSim, zone: ZoneInfo, after: int) -> int | None:
    """Whenever the clocks show one of the times, as often as they show it."""
    last = after + _FAR_S
    shown = clock_reading(after, zone)
    local = _next_local(sim, shown)
    while local is not None and after < last:  # some times are always skipped: 02:30 on one day
        at = after + round((local - shown).total_seconds())
        change = find_change(after, min(at, after + _NEAR_S), zone)
        if change is not None:
            # Up to here nothing was shown; from here the clocks go on from another reading.
            after, shown = change, clock_reading(change, zone)
            local = _next_local(sim, shown - _SECOND)
        elif at - after <= _NEAR_S:
            return at
        else:
            # However the clocks change on the way, they do not show it before this.
            after = max(after + _NEAR_S, at - _NEAR_S)
            shown = clock_reading(after, zone)
            local = _next_local(sim, shown)
    return None


def _last(schedule: Schedule, due: float, now: float) -> float:
    """The last time after `due` that is not after `now`; there is one."""
    low, high = math.floor(due), math.floor(now)
    while high - low > 1:
        middle = (low + high) // 2
        at = following(schedule, middle)
        if at is None or at > now:
            high = middle
        else:
            low = middle
    last = following(schedule, low)
    assert last is not None
    return last
