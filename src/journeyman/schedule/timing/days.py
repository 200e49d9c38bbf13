"""Days and times of day as people write them, `monday 9am`, `month on the 1st at 9:30` or `last
friday of the month at 5pm`, made into a cron expression and into words that say it back.
"""

import re

from msgspec import Struct

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.month import MonthDays, say_month, split_month, write_month
from journeyman.schedule.timing.only_cron import find_hint
from journeyman.schedule.timing.times_of_day import AND, TIMES, find_times, read_times
from journeyman.schedule.timing.week import list_of, read_weekdays, say_weekdays, write_weekdays

_DISTANCE = "for a distance, counted from now"
# What is not enough by itself, and what to write.
_ALONE = {
    "": 'the day is missing: write for example "every monday at 9am"',
    "day": 'the time of day is missing: write for example "every day at 9am", or "every 24h" '
    f"{_DISTANCE}",
    "week": 'the day is missing: write for example "every monday at 9am", or "every 7d" '
    f"{_DISTANCE}",
    "month": 'the day is missing: write for example "every month on the 1st at 9am"',
    "other day": f'a day to count from is missing: write "every 48h" {_DISTANCE}, or the cron '
    'expression "0 9 */2 * *", which begins anew with each month',
}
_HOUR = re.compile(rf"hour(?: at| on)?((?:(?:{AND}| ):[0-9]{{2}})*)")
_DAYS_AND_TIMES = re.compile(rf"(.*?)(?: at| on)* ({TIMES})")
_NO_MATTER = {"at", "on", "the", "of", "and", "every", "each"}


class Calendar(Struct, frozen=True, kw_only=True):
    """Days and times of day, as a cron expression and in words."""

    cron: str
    said: str


def read_calendar(text: str) -> Calendar:
    """Read days and times in small letters, without the "every" before them. Raises WrongInput
    that says which word is not understood or what is missing.
    """
    if (alone := _ALONE.get(text.removesuffix("s"))) is not None:
        raise WrongInput(alone)
    if (minutes := _HOUR.fullmatch(text)) is not None:
        return _read_hourly(minutes[1])
    if find_times(text.removeprefix("at ")) is not None:
        meant = f"every day at {text.removeprefix('at ')}"
        raise WrongInput(f'the day is missing: did you mean "{meant}"?')
    parts = _DAYS_AND_TIMES.fullmatch(text)
    if parts is None and " at " in text:
        _, _, times = text.rpartition(" at ")
        hint = find_hint(times) or "write 9am, 9:15 or 18:30"
        raise WrongInput(f"{times!r} is no time of day: {hint}")
    in_week, in_month = _read_days(parts[1] if parts else text)
    if parts is None:
        text = re.sub(r"(?: at| on)+$", "", text)
        raise WrongInput(f'the time of day is missing: write for example "every {text} at 9am"')
    hours, minute = read_times(parts[2])
    at = f"{minute} {','.join(map(str, hours))}"
    said_times = list_of(f"{hour:02}:{minute:02}" for hour in hours)
    if in_month:
        date, weekday = write_month(in_month)
        said_days = say_month(in_month)
    else:
        date, weekday = "*", write_weekdays(in_week)
        said_days = say_weekdays(in_week)
    return Calendar(cron=f"{at} {date} * {weekday}", said=f"{said_days} at {said_times}")


def _read_hourly(text: str) -> Calendar:
    minutes = sorted({int(minute) for minute in re.findall("[0-9]{2}", text)}) or [0]
    if minutes[-1] > 59:
        raise WrongInput("an hour has the minutes :00 to :59")
    said = list_of(f":{minute:02}" for minute in minutes)
    return Calendar(cron=f"{','.join(map(str, minutes))} * * * *", said=f"Every hour at {said}")


def _read_days(text: str) -> tuple[tuple[int, ...], MonthDays]:
    """Days of the week and days of the month; there are some of one of them."""
    text = re.sub(r" (?:to|through) ", "-", text)
    text = re.sub(r" ?[,&] ?| and ", " , ", text)
    text = " ".join(word for word in text.split() if word not in _NO_MATTER)
    in_month, words = split_month(text)
    in_week: set[int] = set()
    for word in words:
        if find_times(word) is not None:
            raise WrongInput(
                "a time of day stands among the days, and all days have the same times: write them "
                "last, or make a job for each"
            )
        if word not in ("month", "week"):
            in_week.update(read_weekdays(word))
    if "day" in words and not {*words} <= {"day", "week", "month"}:
        raise WrongInput("every day has all other days in it: choose one")
    by_week = bool(in_week) or "week" in words
    by_month = bool(in_month) or "month" in words
    if (by_week and by_month) or (in_month.dates and in_month.nths):
        raise WrongInput(
            "days of the week and of the month do not go together: choose one, or write for "
            'example "first monday of the month at 9am"'
        )
    if not in_week and not in_month:
        raise WrongInput(_ALONE["month" if "month" in words else "week" if "week" in words else ""])
    return tuple(sorted(in_week)), in_month
