"""Reads when a job is to run, as a person writes it, and says back what was understood."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from journeyman.jobs.clocks import (
    DAY_S,
    clock_reading,
    comes_twice,
    describe_duration,
    find_duration,
    find_zone,
    instant,
)
from journeyman.jobs.times import NICKNAMES, check_cron, describe_cron
from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEK = tuple(range(7))
_GROUPS = {"day": _WEEK, "weekday": _WEEK[:5], "weekend": _WEEK[5:]}
_LONGEST_S = 3_653 * DAY_S
_FARTHEST_S = 36_525 * DAY_S
_CHARACTERS = 200
_SHOWN = 60

_ON_DAYS = re.compile(r"every ([a-z]+(?: ?, ?[a-z]+)*) ([0-9]{1,2}):([0-9]{2})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[t ].*)?")
_CRON_FIELD = re.compile(r"[0-9*,/-]+")


class Read(Struct, frozen=True, kw_only=True):
    """A schedule, and what was understood; its own `said` is what of that stays true."""

    schedule: Schedule
    said: str


def read_schedule(text: str, *, timezone: str, now: float) -> Read:
    """Read when a job is to run. Raises WrongInput that says what can be written."""
    zone = find_zone(timezone)
    plain = " ".join(text.split())
    try:
        return _read(plain, zone, now)
    except WrongInput as error:
        shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
        soon = f"{clock_reading(int(now), zone) + timedelta(days=7):%Y-%m-%d}"
        raise WrongInput(
            f"The schedule {shown} cannot be used: {error}. Write for example: "
            "in 30m (once), every 2 hours, every monday 09:00, every weekday 18:30, 0 9 * * 1-5 "
            f"(cron) or {soon}T09:00."
        ) from error


def _read(text: str, zone: ZoneInfo, now: float) -> Read:
    words = text.lower()
    if not words:
        raise WrongInput("it is empty")
    if len(words) > _CHARACTERS:
        raise WrongInput(f"it has more than {_CHARACTERS} characters")
    fields = words.split()
    is_begun = all(map(_CRON_FIELD.fullmatch, fields[:2]))
    if words.startswith("@") or (is_begun and (len(fields) >= 5 or "*" in words)):
        if words.startswith("@") and words not in NICKNAMES:
            raise WrongInput(f"of the words with an @ there are {', '.join(NICKNAMES)}")
        expression = NICKNAMES.get(words, words.upper())
        check_cron(expression)
        return _by_cron(text, zone, expression, describe_cron(expression))
    if days := _ON_DAYS.fullmatch(words):
        return _read_days(text, days, zone)
    if words.startswith("every "):
        return _read_interval(text, words.removeprefix("every "), zone, now)
    if words.startswith("in "):
        seconds = _read_duration(words.removeprefix("in "))
        if seconds < 1:
            raise WrongInput("that is no time at all")
        return _once(text, zone, now, now + seconds, lead=f"in {describe_duration(seconds)}, ")
    if _DATE.fullmatch(words):
        return _read_date(text, zone, now)
    raise WrongInput("it is none of the forms that are read")


def _read_days(text: str, parts: re.Match[str], zone: ZoneInfo) -> Read:
    names = [name.strip() for name in parts[1].split(",")]
    days = tuple(sorted({day for name in names for day in _days_called(name)}))
    hour, minute = int(parts[2]), int(parts[3])
    if hour > 23 or minute > 59:
        raise WrongInput(f"'{parts[2]}:{parts[3]}' is no time of day: write 00:00 to 23:59")
    field = "*" if days == _WEEK else ",".join(map(str, sorted((day + 1) % 7 for day in days)))
    *most, last = (_DAYS[day] for day in days)
    said = f"Every {', '.join(most)} and {last}" if most else f"Every {last}"
    if days == _WEEK:
        said = "Every day"
    elif days == _GROUPS["weekday"]:
        said = "Every weekday, Monday to Friday,"
    return _by_cron(text, zone, f"{minute} {hour} * * {field}", f"{said} at {hour:02}:{minute:02}")


def _days_called(name: str) -> tuple[int, ...]:
    """The days of a name, which may be as short as three letters."""
    days = tuple(i for i, day in enumerate(_DAYS) if day.lower().startswith(name))
    if name in _GROUPS or (days and len(name) > 2):
        return _GROUPS.get(name, days)
    raise WrongInput(f"{name!r} is no day: write monday to sunday, weekday, weekend or day")


def _read_interval(text: str, length: str, zone: ZoneInfo, now: float) -> Read:
    seconds = _read_duration(length)
    if seconds < 60:
        raise WrongInput("a minute is the shortest time between two runs")
    # By the clocks, a day is now and then of another length.
    said = "24 hours" if seconds == DAY_S else describe_duration(seconds)
    said = f"Every {re.sub(r'^1 (?=[a-z]+$)', '', said)}"
    schedule = Schedule(
        text=text, said=said, kind="every", timezone=zone.key, at=now, seconds=seconds
    )
    return Read(schedule=schedule, said=f"{said}, counted from now")


def _read_duration(length: str) -> float:
    seconds = find_duration(length)
    if seconds is None:
        raise WrongInput(
            f"{length!r} is neither a length of time, as in 30m, 2 hours or 7d, nor days with a "
            "time of day, as in monday 09:00"
        )
    if seconds > _LONGEST_S:
        raise WrongInput("ten years is the longest time")
    return seconds


def _read_date(text: str, zone: ZoneInfo, now: float) -> Read:
    try:
        date = datetime.fromisoformat(text.upper()).replace(microsecond=0)
    except ValueError:
        raise WrongInput(
            "there is no such date or time: write for example 2027-01-31T09:00, with +02:00 or Z "
            "at its end if it is not on your clock"
        ) from None
    if not 1970 < date.year < 9000:
        raise WrongInput(f"the year {date.year} is out of reach")
    if date.tzinfo is not None:
        return _once(text, zone, now, date.timestamp())
    at, remark = instant(date, zone), ""
    if clock_reading(at, zone) != date:
        remark = f", as the clocks skip {date:%H:%M} that day"
    elif comes_twice(date, zone):
        remark = f", the first of the two times it is {date:%H:%M} that day"
    return _once(text, zone, now, at, remark=remark)


def _by_cron(text: str, zone: ZoneInfo, expression: str, said: str) -> Read:
    said = f"{said} ({zone.key})"
    schedule = Schedule(text=text, said=said, kind="cron", timezone=zone.key, cron=expression)
    return Read(schedule=schedule, said=said)


def _once(
    text: str, zone: ZoneInfo, now: float, at: float, *, lead: str = "", remark: str = ""
) -> Read:
    if at - now > _FARTHEST_S:
        raise WrongInput("it is more than 100 years away")
    when = _describe_moment(at, zone)
    if at <= now:
        raise WrongInput(f"{when} is in the past: now it is {_describe_moment(now, zone)}")
    said = f"Once, on {when}"
    schedule = Schedule(text=text, said=said, kind="once", timezone=zone.key, at=at)
    return Read(schedule=schedule, said=f"Once, {lead}on {when}{remark}")


def _describe_moment(at: float, zone: ZoneInfo) -> str:
    """An instant as the clocks of a zone show it; seconds only when it has some."""
    local = datetime.fromtimestamp(int(at), zone)
    time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{_DAYS[local.weekday()][:3]} {local:%Y-%m-%d} {time} {local.tzname()}"
