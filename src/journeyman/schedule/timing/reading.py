"""Reads when a job is to run, as a person writes it, and says back what was understood. The kinds
of text are tried in turn; each has its own module.
"""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from journeyman.records.errors import WrongInput
from journeyman.records.job import Schedule
from journeyman.schedule.timing.clocks import reading
from journeyman.schedule.timing.cron import NICKNAMES, check_steps, read_cron, say_cron
from journeyman.schedule.timing.dates import find_moment, has_offset, say_moment
from journeyman.schedule.timing.days import read_calendar
from journeyman.schedule.timing.distances import (
    DAY_S,
    LONGEST_S,
    SHORTEST_S,
    check_length,
    find_distance,
    no_length,
)
from journeyman.schedule.timing.durations import find_duration, say_duration
from journeyman.schedule.timing.meant import find_meant, say_misplaced, split_zone
from journeyman.schedule.timing.near_days import write_date
from journeyman.schedule.timing.times_of_day import put_last
from journeyman.schedule.timing.zones import find_zone

_CHARACTERS = 200
_SHOWN = 60
_FARTHEST_S = 36_525 * DAY_S

# What a recurring text may begin with, and what `days` is to read in its place.
_AGAIN = {
    "every ": "",
    "each ": "",
    "hourly ": "hour ",
    "daily ": "day ",
    "weekly ": "week ",
    "monthly ": "month ",
}
_RECURRING = re.compile(r"(?:^| )(?:every|each|of the month)(?: |$)")


class Read(Struct, frozen=True, kw_only=True):
    """A schedule, and a sentence that says what was understood. The schedule's own `said` is the
    part of it that is still true later.
    """

    schedule: Schedule
    said: str


class _Asked(Struct, frozen=True, kw_only=True):
    """A text, as it was written and in small letters, with what is needed to understand it."""

    text: str
    words: str
    zone: ZoneInfo
    now: float

    @property
    def local(self) -> datetime:
        """What the clocks show now."""
        return reading(int(self.now), self.zone)


def read_schedule(text: str, *, timezone: str, now: float) -> Read:
    """Read when a job is to run, on the clocks of a time zone. Raises WrongInput that says what was
    found and what can be written.
    """
    zone = find_zone(timezone)
    try:
        plain = _plain(text)
        return _read(_Asked(text=plain, words=plain.lower(), zone=zone, now=now))
    except WrongInput as error:
        shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
        why = str(error)
        soon = say_moment(now + 7 * DAY_S, zone).split()[1]
        raise WrongInput(
            f"The schedule {shown} cannot be used: {why}{'' if why.endswith('?') else '.'} "
            "Write for example: in 30m (once), every 2 hours, every monday 9am, every weekday "
            f"18:30, 0 9 * * 1-5 or {soon}T09:00."
        ) from error


def _plain(text: str) -> str:
    if len(text) > _CHARACTERS:
        raise WrongInput(f"it has more than {_CHARACTERS} characters")
    return " ".join(text.split())


def _read(asked: _Asked) -> Read:
    try:
        return _read_plain(asked)
    except WrongInput:
        zone, rest = split_zone(asked.text)
        if not zone or has_offset(asked.words):
            raise
        # Whatever else is wrong comes first.
        _read_plain(replace(asked, text=rest, words=rest.lower()))
        raise WrongInput(say_misplaced(zone)) from None


def _read_plain(asked: _Asked) -> Read:
    words = asked.words
    if not words:
        raise WrongInput("it is empty")
    if _looks_like_cron(words):
        return _read_cron(asked)
    if words.startswith("in "):
        return _read_in(asked)
    ordered = put_last(words)
    if f"{words} ".startswith(tuple(_AGAIN)) or _RECURRING.search(words):
        return _read_again(asked, ordered)
    moment = find_moment(words, asked.zone)
    moment = moment or find_moment(write_date(ordered, asked.local), asked.zone)
    if moment is not None:
        return _once(asked, moment.at, remark=moment.remark and f", {moment.remark}")
    seconds = find_duration(words)
    if seconds is not None:
        again = asked.text if seconds >= SHORTEST_S else "30m"
        repeat = f'; to have it again and again, write "every {again}"'
        return _once(asked, _from_now(asked, seconds), seconds=seconds, remark=repeat)
    raise WrongInput(find_meant(words, asked.local))


def _looks_like_cron(words: str) -> bool:
    fields = words.split()
    is_begun = all(re.fullmatch(r"[0-9*,/-]+", field) for field in fields[:2])
    return words.startswith("@") or (is_begun and (len(fields) >= 5 or "*" in words))


def _read_cron(asked: _Asked) -> Read:
    if asked.words.startswith("@") and asked.words not in NICKNAMES:
        raise WrongInput(f"of the words with an @ there are {', '.join(NICKNAMES)}")
    expression = NICKNAMES.get(asked.words, asked.words.upper())
    read_cron(expression)
    check_steps(expression, LONGEST_S)
    return _cron(asked, expression, say_cron(expression))


def _read_in(asked: _Asked) -> Read:
    length = asked.words.removeprefix("in ")
    seconds = find_duration(length)
    if seconds is None:
        raise WrongInput(f"after in comes a length of time, and {no_length(length)}")
    return _once(asked, _from_now(asked, seconds), seconds=seconds)


def _read_again(asked: _Asked, words: str) -> Read:
    begun = next((lead for lead in _AGAIN if f"{words} ".startswith(lead)), "")
    rest = (_AGAIN.get(begun, "") + f"{words} ".removeprefix(begun)).strip()
    if begun in ("every ", "each "):
        seconds = find_distance(rest)
        if seconds is not None:
            return _every(asked, seconds)
    calendar = read_calendar(rest)
    read_cron(calendar.cron)
    return _cron(asked, calendar.cron, calendar.said)


def _every(asked: _Asked, seconds: float) -> Read:
    if seconds < SHORTEST_S:
        raise WrongInput("a minute is the shortest time between two runs")
    check_length(seconds)
    # By the clocks, a day is now and then of another length.
    said = "24 hours" if seconds == DAY_S else re.sub(r"^1 (\w+)$", r"\1", say_duration(seconds))
    schedule = Schedule(
        text=asked.text,
        said=f"Every {said}",
        kind="every",
        timezone=asked.zone.key,
        at=asked.now,
        seconds=seconds,
    )
    return Read(schedule=schedule, said=f"{schedule.said}, counted from now")


def _cron(asked: _Asked, expression: str, said: str) -> Read:
    said = f"{said} ({asked.zone.key})"
    schedule = Schedule(
        text=asked.text, said=said, kind="cron", timezone=asked.zone.key, cron=expression
    )
    return Read(schedule=schedule, said=said)


def _once(asked: _Asked, at: float, *, seconds: float | None = None, remark: str = "") -> Read:
    if at - asked.now > _FARTHEST_S:
        raise WrongInput("it is more than 100 years away")
    when = say_moment(at, asked.zone)
    if at <= asked.now:
        raise WrongInput(f"{when} is in the past: now it is {say_moment(asked.now, asked.zone)}")
    schedule = Schedule(
        text=asked.text, said=f"Once, on {when}", kind="once", timezone=asked.zone.key, at=at
    )
    start = "Once" if seconds is None else f"Once, in {say_duration(seconds)}"
    return Read(schedule=schedule, said=f"{start}, on {when}{remark}")


def _from_now(asked: _Asked, seconds: float) -> float:
    if seconds < 1:
        raise WrongInput("that is no time at all")
    check_length(seconds)
    return asked.now + seconds
