"""Days as they are called from today: `tomorrow`, `tonight`, `next monday`, made into dates. What
the clocks make of them is left to `dates`.
"""

import re
from datetime import datetime, timedelta

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.times_of_day import find_times
from journeyman.schedule.timing.week import DAYS, find_day

_DAYS_ON = {"today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2}
_NEAR = re.compile(
    rf"(?:(?:on|at|the) )*({'|'.join(_DAYS_ON)}|next ([a-z]+))(?: ?, ?| |$)(?:at )?(.*)"
)
_EVENING = 17
_MORNING = 5


def write_date(text: str, local: datetime) -> str:
    """A text in small letters with the date in place of the day it begins with, seen from a local
    time; the text itself when it begins with none. Raises WrongInput when that day is none, or has
    no time.
    """
    parts = _NEAR.fullmatch(text)
    if parts is None:
        return text
    name, weekday, clock = parts[1], parts[2], parts[3]
    days = _DAYS_ON[name] if weekday is None else _until(weekday, local)
    if not clock:
        hour = "8pm" if name.startswith("to") and name != "tomorrow" else "9am"
        raise WrongInput(f'the time of day is missing: write for example "{name} at {hour}"')
    if name == "tonight":
        days = _until_tonight(clock, local)
    return f"{local + timedelta(days=days):%Y-%m-%d} {clock}"


def _until(weekday: str, local: datetime) -> int:
    day = find_day(weekday)
    if day is None:
        raise WrongInput(
            f"after next comes a day of the week, {DAYS[0]} to {DAYS[-1]}, and not {weekday!r}"
        )
    return (day - local.weekday() - 1) % 7 + 1


def _until_tonight(clock: str, local: datetime) -> int:
    """The night is from the evening until the morning of the next day."""
    times = find_times(clock)
    if times is None:
        return 0  # which is said when the clock is read
    (hour, *_), minute = times
    if _MORNING <= hour < _EVENING:
        raise WrongInput(f'{clock!r} is not in the night: write for example "tonight at 8pm"')
    is_ahead = (hour, minute) > (local.hour, local.minute)
    return 0 if hour >= _EVENING or is_ahead else 1
