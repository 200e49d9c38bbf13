"""Days of the month as people write them, `1st` or `last day`, and those that a month finds by the
week, `first monday`: made into fields of a cron expression and into words.
"""

import re

from msgspec import Struct

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.week import DAYS, NAMES, find_day, list_of

_LAST = 99
_LAST_WEEKDAY = 100
"""These stand for the last one, whatever its number."""
_WORDS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": _LAST}
_SAID = {number: word for word, number in _WORDS.items()}
_SPECIAL = {_LAST: ("L", "last day"), _LAST_WEEKDAY: ("LW", "last weekday, Monday to Friday,")}
_ENDS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
_NUMBER = r"[0-9]{1,2}(?:st|nd|rd|th)"
_ORDINAL = rf"(?:{'|'.join(_WORDS)}|{_NUMBER})"
# An ordinal is about a day of the week when nothing stands between them.
_NTH = re.compile(rf"(?<![^ ])((?:{_ORDINAL} (?:, )+)*{_ORDINAL}) ({'|'.join(NAMES)})(?![^ ])")


class MonthDays(Struct, frozen=True, kw_only=True):
    """Days of every month. `nths` are days of the week, each with which one of the month it is."""

    dates: frozenset[int] = frozenset()
    nths: frozenset[tuple[int, int]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.dates or self.nths)


def split_month(text: str) -> tuple[MonthDays, list[str]]:
    """The days of the month in a text that has single blanks between its words and a comma for
    every "and"; and the words that are left. Raises WrongInput for days that no month has.
    """
    found = [
        (_number(ordinal), name)
        for ordinals, name in _NTH.findall(text)
        for ordinal in re.findall(_ORDINAL, ordinals)
    ]
    if "month" not in text.split():
        _check_clear(found)
    rest = _NTH.sub(" ", text).replace(",", " ").split()
    by_number = _ORDINAL if "month" in rest else _NUMBER
    dates = {_number(word) for word in rest if re.fullmatch(by_number, word)}
    dates |= {number for number, name in found if name == "day"}
    if not dates <= {*range(1, 32), _LAST}:
        raise WrongInput("a month has the days 1st to 31st")
    if (_LAST, "weekday") in found:
        dates.add(_LAST_WEEKDAY)
        found = [each for each in found if each != (_LAST, "weekday")]
    nths = {(_day(name), number) for number, name in found if name != "day"}
    if not {number for _, number in nths} <= set(_SAID):
        raise WrongInput("of a day of the week, a month has the first to the fifth and the last")
    days = MonthDays(dates=frozenset(dates), nths=frozenset(nths))
    return days, [word for word in rest if not re.fullmatch(by_number, word)]


def write_month(days: MonthDays) -> tuple[str, str]:
    """The fields of a cron expression for the day of the month and the day of the week, of which
    one is a star.
    """
    dates = [_SPECIAL[date][0] if date in _SPECIAL else str(date) for date in sorted(days.dates)]
    nths = [
        f"{(day + 1) % 7}L" if number == _LAST else f"{DAYS[day][:3].upper()}#{number}"
        for day, number in sorted(days.nths)
    ]
    return ",".join(dates) or "*", ",".join(nths) or "*"


def say_month(days: MonthDays) -> str:
    """Days of the month in words."""
    said = [f"{_SAID[number]} {DAYS[day]}" for day, number in sorted(days.nths)]
    said += [
        _SPECIAL[date][1] if date in _SPECIAL else f"{date}{_ENDS.get(date, 'th')}"
        for date in sorted(days.dates)
    ]
    can_fail = {29, 30, 31} & days.dates or 5 in {number for _, number in days.nths}
    return f"On the {list_of(said)} of every month{', where there is one,' if can_fail else ''}"


def _number(ordinal: str) -> int:
    return _WORDS.get(ordinal) or int(ordinal[:-2])


def _day(name: str) -> int:
    day = find_day(name)
    if day is None:
        raise WrongInput(f"of the days {name!r}, only the last weekday of a month can be had")
    return day


def _check_clear(found: list[tuple[int, str]]) -> None:
    """Every second monday may be one of the month, or one of two."""
    for number, name in found:
        is_day = name == "day" or find_day(name) is not None
        if number in (1, _LAST) or number not in _SAID or not is_day:
            continue
        distance = f"every {number} {'days' if name == 'day' else 'weeks'}"
        raise WrongInput(
            f'it is not said what is counted: write "{_SAID[number]} {name} of the month at 9am", '
            f'or "{distance}", which is counted from now'
        )
