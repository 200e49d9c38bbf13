"""Parses schedules as people write them, and describes how each was understood."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim
from msgspec import Struct

from journeyman.jobs.occurrences import NICKNAMES, check_cron, describe_cron
from journeyman.jobs.time_zones import get_zone
from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule
from journeyman.text.durations import DAY_S, describe_duration, parse_duration

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEK = tuple(range(7))
_DAY_GROUPS = {"day": _WEEK, "weekday": _WEEK[:5], "weekend": _WEEK[5:]}
_MAX_DURATION_S = 3_653 * DAY_S
_MAX_LENGTH = 200
_MAX_QUOTED = 60

_DAYS_AND_TIME = re.compile(r"every ([a-z]+(?: ?, ?[a-z]+)*) ([0-9]{1,2}):([0-9]{2})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[t ].*)?")
_CRON_FIELD = re.compile(r"[0-9*,/-]+")


class ParsedSchedule(Struct, frozen=True, kw_only=True):
    """A schedule and its description at the time of parsing ("in 30 minutes"). The schedule's own
    `said` leaves out what does not stay true.
    """

    schedule: Schedule
    description: str


def parse_schedule(text: str, *, timezone: str, now: float) -> ParsedSchedule:
    """Parse when a job runs. Raise WrongInput, with examples of valid schedules."""
    zone = get_zone(timezone)
    try:
        return _parse(" ".join(text.split()), zone, now)
    except WrongInput as error:
        quoted = repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "…")
        next_week = f"{datetime.fromtimestamp(now, zone) + timedelta(days=7):%Y-%m-%d}"
        raise WrongInput(
            f"The schedule {quoted} cannot be used: {error}. Write for example: "
            "in 30m (once), every 2 hours, every monday 09:00, every weekday 18:30, 0 9 * * 1-5 "
            f"(cron) or {next_week}T09:00."
        ) from error


def _parse(text: str, zone: ZoneInfo, now: float) -> ParsedSchedule:
    words = text.lower()
    if not words:
        raise WrongInput("it is empty")
    if len(words) > _MAX_LENGTH:
        raise WrongInput(f"it has more than {_MAX_LENGTH} characters")
    fields = words.split()
    starts_like_cron = all(map(_CRON_FIELD.fullmatch, fields[:2]))
    if words.startswith("@") or (starts_like_cron and (len(fields) >= 5 or "*" in words)):
        if words.startswith("@") and words not in NICKNAMES:
            raise WrongInput(f"it is an unknown nickname; valid ones are {', '.join(NICKNAMES)}")
        expression = NICKNAMES.get(words, words.upper())
        check_cron(expression)
        return _cron_schedule(text, zone, expression, describe_cron(expression))
    if match := _DAYS_AND_TIME.fullmatch(words):
        return _parse_days(text, match, zone)
    if words.startswith("every "):
        return _parse_interval(text, words.removeprefix("every "), zone, now)
    if words.startswith("in "):
        seconds = _parse_length(words.removeprefix("in "))
        if seconds < 1:
            raise WrongInput("its length of time is shorter than a second")
        return _one_time(text, zone, now, now + seconds, lead=f"in {describe_duration(seconds)}, ")
    if _DATE.fullmatch(words):
        return _parse_date(text, zone, now)
    raise WrongInput("it has none of the accepted forms")


def _parse_days(text: str, match: re.Match[str], zone: ZoneInfo) -> ParsedSchedule:
    names = [name.strip() for name in match[1].split(",")]
    days = tuple(sorted({day for name in names for day in _days_named(name)}))
    hour, minute = int(match[2]), int(match[3])
    if hour > 23 or minute > 59:
        raise WrongInput(f"'{match[2]}:{match[3]}' is not a time of day: write 00:00 to 23:59")
    field = "*" if days == _WEEK else ",".join(map(str, sorted((day + 1) % 7 for day in days)))
    *most, last = (_DAYS[day] for day in days)
    description = f"Every {', '.join(most)} and {last}" if most else f"Every {last}"
    if days == _WEEK:
        description = "Every day"
    elif days == _DAY_GROUPS["weekday"]:
        description = "Every weekday, Monday to Friday,"
    return _cron_schedule(
        text, zone, f"{minute} {hour} * * {field}", f"{description} at {hour:02}:{minute:02}"
    )


def _days_named(name: str) -> tuple[int, ...]:
    """Return the days for a name, which can be abbreviated to three letters."""
    days = tuple(i for i, day in enumerate(_DAYS) if day.lower().startswith(name))
    if name in _DAY_GROUPS or (days and len(name) > 2):
        return _DAY_GROUPS.get(name, days)
    raise WrongInput(f"{name!r} is not a day: write monday to sunday, weekday, weekend or day")


def _parse_interval(text: str, length: str, zone: ZoneInfo, now: float) -> ParsedSchedule:
    seconds = _parse_length(length)
    if seconds < 60:
        raise WrongInput("the time between two runs is at least a minute")
    # A calendar day can be longer or shorter when the clocks change.
    description = "24 hours" if seconds == DAY_S else describe_duration(seconds)
    description = f"Every {re.sub(r'^1 (?=[a-z]+$)', '', description)}"
    schedule = Schedule(
        text=text, said=description, kind="every", timezone=zone.key, at=now, seconds=seconds
    )
    return ParsedSchedule(schedule=schedule, description=f"{description}, counted from now")


def _parse_length(length: str) -> float:
    seconds = parse_duration(length)
    if seconds is None:
        raise WrongInput(
            f"{length!r} is neither a length of time, as in 30m, 2 hours or 7d, nor days with a "
            "time of day, as in monday 09:00"
        )
    if seconds > _MAX_DURATION_S:
        raise WrongInput("it is longer than ten years")
    return seconds


def _parse_date(text: str, zone: ZoneInfo, now: float) -> ParsedSchedule:
    try:
        date = datetime.fromisoformat(text.upper()).replace(microsecond=0)
    except ValueError:
        raise WrongInput(
            "there is no such date or time: write for example 2027-01-31T09:00, and append +02:00 "
            "or Z if it is not in your time zone"
        ) from None
    if not 1970 < date.year < 9000:
        raise WrongInput(f"the year {date.year} is out of range")
    if date.tzinfo is not None:
        return _one_time(text, zone, now, date.timestamp())
    local = date.replace(tzinfo=zone)
    at = local.timestamp()
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0) != date:
        # The clocks skip it: it runs right after the gap.
        expression = f"{date.minute} {date.hour} {date.day} {date.month} *"
        at = next(CronSim(expression, local - timedelta(days=1))).timestamp()
    return _one_time(text, zone, now, at)


def _cron_schedule(text: str, zone: ZoneInfo, expression: str, description: str) -> ParsedSchedule:
    description = f"{description} ({zone.key})"
    schedule = Schedule(
        text=text, said=description, kind="cron", timezone=zone.key, cron=expression
    )
    return ParsedSchedule(schedule=schedule, description=description)


def _one_time(
    text: str, zone: ZoneInfo, now: float, at: float, *, lead: str = ""
) -> ParsedSchedule:
    when = _describe_moment(at, zone)
    if at <= now:
        raise WrongInput(f"{when} is in the past: it is now {_describe_moment(now, zone)}")
    description = f"Once, on {when}"
    schedule = Schedule(text=text, said=description, kind="once", timezone=zone.key, at=at)
    return ParsedSchedule(schedule=schedule, description=f"Once, {lead}on {when}")


def _describe_moment(at: float, zone: ZoneInfo) -> str:
    """Describe an instant in local time, with seconds only if they are not zero."""
    local = datetime.fromtimestamp(int(at), zone)
    time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{_DAYS[local.weekday()][:3]} {local:%Y-%m-%d} {time} {local.tzname()}"
