"""Even distances between runs, `every 2 hours`, and what to write instead of one that is followed
by a time of day, by hours or by anything else that it cannot have.
"""

import re

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.durations import begin_duration, find_unit
from journeyman.schedule.timing.only_cron import find_hint
from journeyman.schedule.timing.times_of_day import TIMES, find_times, read_times
from journeyman.schedule.timing.week import DAYS, NAMES, find_day

DAY_S = 86_400
SHORTEST_S = 60
LONGEST_S = 3_653 * DAY_S

_OTHER = re.compile(r"(?:other|second|2nd) (minute|hour|day|week)\b")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*+(?!(?:st|nd|rd|th)\b)(?: ?(?!at\b|on\b)[a-z]+)?")
_MONTHS = re.compile(r"([2-9]|1[0-2]) ?(?:months?|mo)")
_PAST = re.compile(r"(?:at )?:([0-5][0-9])")
_HOURS = {3_600.0 * hours: hours for hours in range(2, 13)}
_WITH_TIME = re.compile(rf"(?:(?:on )?({'|'.join(NAMES)}))?(?: ?at)?(?:^| )({TIMES})")


def find_distance(text: str) -> float | None:
    """The seconds of a distance in small letters, without the "every" before it; None when it is
    none. Raises WrongInput when it begins like one. A day or a week alone is none: it may be meant
    by the calendar.
    """
    alone = find_unit(text)
    if alone is not None:
        return None if alone >= DAY_S else alone
    plain = _OTHER.sub(r"2 \1s", text, count=1) if _OTHER.match(text) else text
    seconds, rest = begin_duration(plain)
    if seconds is None:
        _check_number(text)
        return None
    if not rest:
        return None if seconds >= DAY_S and plain != text else seconds
    raise WrongInput(
        _followed(seconds, re.sub(r"[ ,]+(?:and )?$", "", plain.removesuffix(rest)), rest)
    )


def check_length(seconds: float) -> None:
    if seconds > LONGEST_S:
        raise WrongInput("ten years is the longest time")


def no_length(text: str) -> str:
    """That a text is no length of time, and what would be one."""
    return (
        f"{text!r} is no length of time: there are minutes, hours, days and weeks, as in 30m, "
        "2 hours, 1h30m or 7d"
    )


def _check_number(text: str) -> None:
    number = _NUMBER.match(text)
    if number is None or (find_times(number[0]) and not number[0].isdigit()):
        return
    months = _MONTHS.fullmatch(number[0])
    by_months = f'; for months, write a cron expression: "0 9 1 */{months[1]} *"' if months else ""
    raise WrongInput(no_length(number[0]) + by_months)


def _followed(seconds: float, length: str, rest: str) -> str:
    is_usable = SHORTEST_S <= seconds <= LONGEST_S
    itself = f'"every {length}", which is counted from now' if is_usable else ""
    nearest = _nearest(seconds, rest)
    if nearest:
        choices = ", or ".join(filter(None, (itself, nearest)))
        return f"a distance has no time of day: write {choices}"
    instead = find_hint(rest) or (f"write {itself}" if itself else "leave it out")
    return f"a distance goes on day and night, and {rest!r} cannot follow it: {instead}"


def _nearest(seconds: float, rest: str) -> str:
    """What comes nearest to a distance with a time of day; empty when it has none."""
    past = _PAST.fullmatch(rest)
    if past is not None and seconds in _HOURS:
        return f'the cron expression "{int(past[1])} */{_HOURS[seconds]} * * *"'
    timed = _WITH_TIME.fullmatch(rest)
    if timed is None:
        return ""
    hours, minute = read_times(timed[2])
    name = DAYS[find_day(timed[1] or "") or 0].lower()
    days, more = divmod(seconds, DAY_S)
    by_the_week = {7: f"every {name}", 14: f"first and third {name} of the month"}
    if not more and days in by_the_week:
        return f'"{by_the_week[int(days)]} at {timed[2]}"'
    if more or not 2 <= days <= 31:
        return f'"every day at {timed[2]}"'
    fields = f"{minute} {','.join(map(str, hours))} */{int(days)} * *"
    return f'the nearest cron expression, "{fields}", which begins anew with each month'
