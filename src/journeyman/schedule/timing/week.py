"""The days of the week by their names, and several of them as people write them: `mon-fri`,
`weekend`. Monday is 0.
"""

from collections.abc import Iterable

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.only_cron import find_hint

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_WEEK = tuple(range(7))
_SPELLINGS = (
    "monday mondays mon",
    "tuesday tuesdays tue tues",
    "wednesday wednesdays wed weds",
    "thursday thursdays thu thur thurs",
    "friday fridays fri",
    "saturday saturdays sat",
    "sunday sundays sun",
)
NAMES: dict[str, tuple[int, ...]] = {
    **{name: (day,) for day, names in enumerate(_SPELLINGS) for name in names.split()},
    "day": _WEEK,
    "weekday": _WEEK[:5],
    "weekdays": _WEEK[:5],
    "weekend": _WEEK[5:],
    "weekends": _WEEK[5:],
}


def find_day(name: str) -> int | None:
    """The one day of the week that has a name; None when there is not one."""
    days = NAMES.get(name, ())
    return days[0] if len(days) == 1 else None


def read_weekdays(word: str) -> Iterable[int]:
    """The days of a name or of a span such as `mon-fri`. Raises WrongInput when it is neither."""
    if word in NAMES:
        return NAMES[word]
    first, dash, last = word.partition("-")
    start, end = find_day(first), find_day(last)
    if dash and start is not None and end is not None:
        return [(start + step) % 7 for step in range((end - start) % 7 + 1)]
    if hint := find_hint(word):
        raise WrongInput(f"{word!r} is not understood: {hint}")
    is_none = "is no day and no time of day" if word[:1].isdigit() else "is no day"
    raise WrongInput(f"{word!r} {is_none}: write for example monday, mon, weekday or 1st")


def say_weekdays(days: tuple[int, ...]) -> str:
    """Days of the week, in their order, in words."""
    if days == _WEEK:
        return "Every day"
    if days == _WEEK[:5]:
        return "Every weekday, Monday to Friday,"
    return "Every " + list_of(DAYS[day] for day in days)


def write_weekdays(days: tuple[int, ...]) -> str:
    """Days of the week as a field of a cron expression, whose week begins with Sunday as 0."""
    return "*" if days == _WEEK else ",".join(map(str, sorted((day + 1) % 7 for day in days)))


def list_of(items: Iterable[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last
