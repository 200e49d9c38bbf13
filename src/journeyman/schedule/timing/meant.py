"""What was probably meant by a text that is no schedule: a zone that does not belong in it, or days
and times that leave open whether once or again and again.
"""

import re
from datetime import datetime

from journeyman.records.errors import WrongInput
from journeyman.schedule.timing.cron import NICKNAMES
from journeyman.schedule.timing.days import read_calendar
from journeyman.schedule.timing.only_cron import find_hint
from journeyman.schedule.timing.times_of_day import find_times
from journeyman.schedule.timing.week import find_day

_AREAS = "africa america antarctica arctic asia atlantic australia canada etc europe indian pacific"
_SHORT = "utc gmt cet cest eet eest wet west bst ist msk est edt cst cdt mst mdt pst pdt jst aest"
_ZONE = re.compile(
    rf"(?:\bin |\b[a-z_]*tz=|\()?(?<![a-z])((?:{'|'.join(_AREAS.split())}|us)/[a-z0-9_/+-]+"
    rf"|(?:{'|'.join(_SHORT.split())})(?![a-z])[0-9:+-]*)(?: time\b|\))?",
    re.ASCII | re.IGNORECASE,
)
_PLURAL = re.compile(r"\b([a-z]+day|weekend)s\b")
_TRIED = ("every {}", "every {} at 9am", "every day {}")


def split_zone(text: str) -> tuple[str, str]:
    """The time zone that a text has in it, empty when there is none, and the text without it."""
    zone = _ZONE.search(text)
    if zone is None:
        return "", text
    return zone[1], " ".join(f"{text[: zone.start()]} {text[zone.end() :]}".split())


def say_misplaced(zone: str) -> str:
    """What to do with the time zone in a text."""
    is_name = "/" in zone or zone.lower() in ("utc", "gmt")
    name = zone if is_name else "America/New_York"
    return (
        f"it has a time zone in it, {zone!r}: leave that out, and name the zone with --tz"
        f"{'' if is_name else ', for example'} {name} (in Python timezone={name!r})"
    )


def find_meant(words: str, local: datetime) -> str:
    """Why a text in small letters is no schedule, and what comes near to it at a local time."""
    plain = _PLURAL.sub(r"\1", re.sub(r"^(?:(?:on|at|the) )+", "", words))
    times = find_times(plain)
    if times is not None:
        (hour, *more), minute = times
        day = "today" if (hour, minute) > (local.hour, local.minute) else "tomorrow"
        once = "once" if more else f'once, "{day} at {plain}"'
        return f'is it {once}, or again and again, "every day at {plain}"?'
    meant = next(filter(_is_calendar, (text.format(plain) for text in _TRIED)), "")
    if meant:
        once = _once_next(plain)
        return f'it is not said whether once or again and again: did you mean "{meant}"{once}?'
    if f"@{words}" in NICKNAMES:
        return f'did you mean "@{words}"?'
    first = words.split(maxsplit=1)[0]
    hint = find_hint(first)
    return f"{first!r} is not a word that a schedule begins with{hint and ': '}{hint}"


def _is_calendar(text: str) -> bool:
    try:
        read_calendar(text.removeprefix("every "))
    except WrongInput:
        return False
    return True


def _once_next(plain: str) -> str:
    """The way to write one day of the week as the next of its kind; empty for anything else."""
    name, _, clock = plain.partition(" ")
    clock = clock.removeprefix("at ") or "9am"
    times = find_times(clock)
    if find_day(name) is None or times is None or len(times[0]) > 1:
        return ""
    return f' or, once, "next {name} at {clock}"'
