"""A date with a time of day, `2026-12-01T09:00` or `2026-12-01 9am +02:00`, made into an instant,
and instants said with the clocks of a zone.
"""

import re
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from msgspec import Struct

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.clocks import comes_twice, instant, reading
from journeyman.schedule.timing.times_of_day import read_time
from journeyman.schedule.timing.week import DAYS

_DATE = re.compile(r"(?:(?:on|at) )*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:(?:t| ?, ?| )(.*))?")
_OFFSET = re.compile(
    r"(.*?) ?((?<![a-z])(?:z|utc)|(?:(?<![a-z])utc)?([+-])([0-9]{2})(?::?([0-9]{2}))?)"
)
_SECONDS = re.compile(r"([0-9]{1,2}:[0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?")


class Moment(Struct, frozen=True, kw_only=True):
    """An instant, and what is to be said about its time on the clocks."""

    at: float
    remark: str = ""


def find_moment(text: str, zone: ZoneInfo) -> Moment | None:
    """The instant of a date and time in small letters, on the clocks of `zone` unless the text has
    an offset; None when it does not begin with a date. Raises WrongInput when there is no such.
    """
    parts = _DATE.fullmatch(text)
    if parts is None:
        return None
    clock = (parts[4] or "").removeprefix("at ")
    if not 1970 < int(parts[1]) < 9000:
        raise WrongInput(f"the year {parts[1]} is out of reach")
    date = f"{parts[1]}-{parts[2]:0>2}-{parts[3]:0>2}"
    try:
        day = datetime.fromisoformat(date)
    except ValueError:
        raise WrongInput(f"there is no day {date}") from None
    if not clock:
        raise WrongInput(f'the time of day is missing: write "{date}T09:00"')
    offset = _OFFSET.fullmatch(clock)
    hour, minute, second = _read_clock(offset[1] if offset else clock)
    local = day.replace(hour=hour, minute=minute, second=second)
    if offset is not None:
        return Moment(at=local.replace(tzinfo=_read_offset(offset)).timestamp())
    return _on_clocks(local, zone)


def has_offset(text: str) -> bool:
    """Whether a text in small letters is a date that says its offset from UTC itself."""
    parts = _DATE.fullmatch(text)
    return parts is not None and _OFFSET.fullmatch(parts[4] or "") is not None


def say_moment(at: float, zone: ZoneInfo) -> str:
    """An instant as the clocks of a zone show it, with the day of the week and the zone's short
    name; seconds only when it has some.
    """
    local = datetime.fromtimestamp(int(at), zone)
    time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{DAYS[local.weekday()][:3]} {local:%Y-%m-%d} {time} {local.tzname()}"


def _on_clocks(local: datetime, zone: ZoneInfo) -> Moment:
    at = instant(local, zone)
    asked = f"{local:%H:%M}"
    if reading(at, zone) != local:
        return Moment(at=at, remark=f"as the clocks skip {asked} that day")
    if comes_twice(local, zone):
        return Moment(at=at, remark=f"the first of the two times it is {asked} that day")
    return Moment(at=at)


def _read_clock(text: str) -> tuple[int, int, int]:
    parts = _SECONDS.fullmatch(text)
    if parts is None:
        return (*read_time(text), 0)
    if int(parts[2]) > 59:
        raise WrongInput(f"{text!r} is no time of day: a minute has the seconds 00 to 59")
    return (*read_time(parts[1]), int(parts[2]))


def _read_offset(parts: re.Match[str]) -> timezone:
    if parts[3] is None:
        return timezone.utc  # noqa: UP017 - the same, as the type that is promised
    hours, minutes = int(parts[4]), int(parts[5] or 0)
    if hours > 15 or minutes > 59:
        raise WrongInput(f"{parts[2]!r} is no offset from UTC: write for example +02:00 or Z")
    sign = 1 if parts[3] == "+" else -1
    return timezone(sign * timedelta(hours=hours, minutes=minutes))
