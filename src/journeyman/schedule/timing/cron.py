"""Cron expressions, read by cronsim: whether one can be used, what it says, and which local time
comes next. What the clocks make of a local time is left to `times`.
"""

import re
from bisect import bisect_right
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression
from msgspec import Struct

from journeyman.records.errors import WrongInput

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# In their order, by the names in cronsim's messages.
_FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L for the last or LW for the last weekday",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, both 0 and 7 for Sunday",
}
_SIZES = {"minute": 60, "hour": 24, "day-of-month": 31, "month": 12, "day-of-week": 7}
_DISTANCES = {"minute": ("m", 60), "hour": ("h", 3_600), "day-of-month": ("d", 86_400)}
_EARLIEST = datetime(1970, 1, 1)  # noqa: DTZ001 - cronsim wants one; local times have no zone
YEARS_AHEAD = 50
"""No expression has a longer pause: the 29th of February is a Monday after 40 years at most."""
_DAY = timedelta(days=1)


class Cron(Struct, frozen=True, kw_only=True):
    """A cron expression. `minutes` are the times of day it has, in minutes. `is_wild`: it goes by
    real time; otherwise it has fixed times, which a clock change neither drops nor doubles.
    """

    sim: CronSim
    minutes: tuple[int, ...]
    is_wild: bool

    def following(self, local: datetime) -> datetime | None:
        """The first local time after one; None when none ever comes."""
        day: date | None = local.date()
        later = bisect_right(self.minutes, local.hour * 60 + local.minute)
        if later == len(self.minutes) or not self._has(local.date()):
            day, later = self._following_day(local.date()), 0
        if day is None:
            return None
        hour, minute = divmod(self.minutes[later], 60)
        return datetime.combine(day, time(hour, minute))

    def _has(self, day: date) -> bool:
        return day.month in self.sim.months and self.sim.match_day(day)

    def _following_day(self, day: date) -> date | None:
        last = day.year + YEARS_AHEAD
        day += _DAY
        while not self._has(day):
            if day.month in self.sim.months:
                day += _DAY
            else:
                day = (day.replace(day=1) + 31 * _DAY).replace(day=1)
            if day.year > last:
                return None
        return day


@lru_cache(maxsize=1024)
def read_cron(expression: str) -> Cron:
    """Read an expression of five fields. Raises WrongInput that says what is wrong with it."""
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        raise WrongInput(_miscounted(fields))
    try:
        sim = CronSim(expression, _EARLIEST)
    except CronSimError as error:
        raise WrongInput(_explained(fields, str(error))) from error
    minutes = sorted(60 * hour + minute for hour in sim.hours for minute in sim.minutes)
    # Debian's rule, which is also cronsim's.
    is_wild = fields[0].startswith("*") or fields[1].startswith("*")
    cron = Cron(sim=sim, minutes=tuple(minutes), is_wild=is_wild)
    if cron.following(_EARLIEST) is None:
        raise WrongInput("this time never comes")
    return cron


def check_steps(expression: str, longest_s: float) -> None:
    """Raise WrongInput when an expression that can be used has a step it never takes: each field
    begins anew, so one of 90 minutes is once in every hour. A distance is told up to `longest_s`.
    """
    for name, field in zip(_FIELDS, expression.split(), strict=True):
        step = max(map(int, re.findall(r"/([0-9]+)", field)), default=0)
        if step <= _SIZES[name]:
            continue
        unit, seconds = _DISTANCES.get(name, ("", 0))
        is_near = unit and step * seconds <= longest_s
        meant = f': did you mean "every {step}{unit}"?' if is_near else ""
        raise WrongInput(
            f"the step in {field!r} is never taken, as the {name} is {_FIELDS[name]}, and begins "
            f"anew each time{meant}"
        )


def say_cron(expression: str) -> str:
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


def _miscounted(fields: list[str]) -> str:
    if len(fields) == len(_FIELDS) + 1:
        return (
            "it has six fields, and nothing runs by the second: leave out the seconds, and it is "
            f"{' '.join(fields[1:])!r}"
        )
    return f"it has {len(fields)} of the five fields {', '.join(_FIELDS)}"


def _explained(fields: list[str], found: str) -> str:
    name = found.removeprefix("Bad ")
    if name not in _FIELDS:
        return found
    if name == "day-of-month":
        try:
            CronSim(" ".join([*fields[:3], "*", *fields[4:]]), _EARLIEST)
        except CronSimError:
            pass
        else:
            return f"this time never comes: month {fields[3]!r} has no day {fields[2]!r}"
    wrong = fields[list(_FIELDS).index(name)]
    return f"{wrong!r} cannot be the {name}, which is {_FIELDS[name]}"
