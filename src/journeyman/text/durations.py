"""Lengths of time, and moments, as people write and read them. This is the only parser and
formatter of them.
"""

import re
from datetime import UTC, datetime, timedelta

DAY_S = 86_400

# Unit name, its length in seconds, and its accepted spellings.
_UNITS = (
    ("week", 7 * DAY_S, ("w", "week", "weeks")),
    ("day", DAY_S, ("d", "day", "days")),
    ("hour", 3_600, ("h", "hr", "hrs", "hour", "hours")),
    ("minute", 60, ("m", "min", "mins", "minute", "minutes")),
    ("second", 1, ("s", "sec", "secs", "second", "seconds")),
)
_UNIT_SECONDS = {spelling: seconds for _, seconds, spellings in _UNITS for spelling in spellings}
_MAX_COUNT = 1e10
_DAYS_AGO = {"today": 0, "yesterday": 1}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)")


def parse_duration(text: str) -> float | None:
    """Return the seconds in a text such as `30m` or `2 hours`, rounded to whole seconds, or None
    if the text is not a length of time.
    """
    match = _DURATION.fullmatch(text)
    if match is None or match[2] not in _UNIT_SECONDS:
        return None
    return float(round(min(float(match[1]), _MAX_COUNT) * _UNIT_SECONDS[match[2]]))


def parse_moment(text: str, now: float) -> float | None:
    """Return the time that a text names, in seconds since 1970: a date or a date and time, in this
    machine's time zone unless it names another; `today` or `yesterday`, when they began; `now`; or
    a length of time before now, such as `7d` or `2 weeks ago`. None if it is none of these.
    """
    text = " ".join(text.lower().split())
    before_s = 0.0 if text == "now" else parse_duration(text.removesuffix(" ago"))
    if before_s is not None:
        return now - before_s
    try:
        if text in _DAYS_AGO:
            today = datetime.fromtimestamp(now, UTC).astimezone().date()
            text = (today - timedelta(days=_DAYS_AGO[text])).isoformat()
        return datetime.fromisoformat(text.upper()).timestamp()
    except (OverflowError, ValueError, OSError):
        return None


def describe_moment(at: float) -> str:
    """Return a time in this machine's time zone, to the minute. Raise OverflowError, ValueError or
    OSError if no calendar has it.
    """
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def describe_duration(seconds: float) -> str:
    """Return a length of time in words, to the second: `1 day 2 hours`."""
    remaining, parts = round(seconds), []
    for unit, length, _ in _UNITS[1:]:  # "14 days" is plainer than "2 weeks"
        count, remaining = divmod(remaining, length)
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(parts) or "no time"


def abbreviate_duration(seconds: float) -> str:
    """Return a length of time in a few characters: 0.4 s, 42 s, 1.5 min, 26 h, 12 d. Negative
    lengths count as 0.
    """
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    if seconds < 3_600:
        return f"{seconds / 60:.2g} min"
    hours = seconds / 3_600
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.0f} d"
