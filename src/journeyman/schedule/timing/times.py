"""The times of a schedule: the next one, the next few, and the last of those that were missed.
Nothing here knows what time it is now, and no answer depends on where one began to ask.
"""

import math
from datetime import timedelta
from zoneinfo import ZoneInfo

from journeyman.records.job import Schedule
from journeyman.schedule.timing.clocks import find_change, instant, reading
from journeyman.schedule.timing.cron import YEARS_AHEAD, Cron, read_cron
from journeyman.schedule.timing.zones import find_zone

COUNTED = 10_000
"""Missed times are counted so far."""

_NEAR_S = 2 * 86_400
_YEAR_S = 366 * 86_400
"""More than any clock change moves the clocks, less than there is between two of them."""
_SECOND = timedelta(seconds=1)


def following(schedule: Schedule, after: float) -> float | None:
    """The first time after an instant; None when there is none. Raises WrongInput for a zone that
    this machine does not know.
    """
    match schedule.kind:
        case "once":
            return schedule.at if schedule.at > after else None
        case "every":
            return _nth(schedule, _first_after(schedule, after))
        case "cron":
            at = _on_cron(schedule, math.floor(after))
            return None if at is None else float(at)


def upcoming(schedule: Schedule, after: float, count: int) -> list[float]:
    """The first times after an instant, as many as there are up to `count`."""
    times: list[float] = []
    while len(times) < count:
        at = following(schedule, times[-1] if times else after)
        if at is None:
            break
        times.append(at)
    return times


def latest(schedule: Schedule, due: float, now: float) -> tuple[float, int]:
    """Of the times from `due` on, the last that is not after `now`, and how many come before it,
    counted up to 10,000. `due` is the first of them, whether or not it is on the schedule.
    """
    first = following(schedule, due)
    if first is None or first > now:
        return due, 0
    if schedule.kind == "every":
        last = _first_after(schedule, now) - 1
        between = last - _first_after(schedule, due)
        return _nth(schedule, last), min(between + 1, COUNTED)
    at = _last(schedule, due, now)
    missed, time = 1, first
    while time < at and missed < COUNTED:
        time = following(schedule, time) or at
        missed += 1
    return at, missed


def _nth(schedule: Schedule, number: int) -> float:
    return schedule.at + number * schedule.seconds


def _first_after(schedule: Schedule, after: float) -> int:
    """The number of the first time of an interval after an instant; the first of all is 1."""
    number = max(1, math.floor((after - schedule.at) / schedule.seconds) + 1)
    # The division and the multiplication may round to different sides.
    if _nth(schedule, number) <= after:
        return number + 1
    if number > 1 and _nth(schedule, number - 1) > after:
        return number - 1
    return number


def _on_cron(schedule: Schedule, after: int) -> int | None:
    cron, zone = read_cron(schedule.cron), find_zone(schedule.timezone)
    return (_by_real_time if cron.is_wild else _by_the_clock)(cron, zone, after)


def _by_the_clock(cron: Cron, zone: ZoneInfo, after: int) -> int | None:
    """Each local time once: skipped ones when the clocks have jumped, repeated ones the first
    time. An instant in the second pass of a repeated hour has those times behind it.
    """
    local = cron.following(reading(after, zone))
    while local is not None:
        at = instant(local, zone)
        if at > after:
            return at
        local = cron.following(local)
    return None


def _by_real_time(cron: Cron, zone: ZoneInfo, after: int) -> int | None:
    """Whenever the clocks show one of the times, as often as they show it."""
    last = after + YEARS_AHEAD * _YEAR_S
    shown = reading(after, zone)
    local = cron.following(shown)
    while local is not None and after < last:  # some times are always skipped: 02:30 on one day
        at = after + round((local - shown).total_seconds())
        change = find_change(after, min(at, after + _NEAR_S), zone)
        if change is not None:
            # Up to here nothing was shown; from here the clocks go on from another reading.
            after, shown = change, reading(change, zone)
            local = cron.following(shown - _SECOND)
        elif at - after <= _NEAR_S:
            return at
        else:
            # However the clocks change on the way, they do not show it before this.
            after = max(after + _NEAR_S, at - _NEAR_S)
            shown = reading(after, zone)
            local = cron.following(shown)
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
