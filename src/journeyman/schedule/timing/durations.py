"""Lengths of time as people write and say them: `30m`, `2 hours`, `1h30m`, `half an hour`."""

import re

# Unit, its seconds, and the ways to write it.
_UNITS = (
    ("week", 604_800, ("w", "wk", "wks", "week", "weeks")),
    ("day", 86_400, ("d", "day", "days")),
    ("hour", 3_600, ("h", "hr", "hrs", "hour", "hours")),
    ("minute", 60, ("m", "min", "mins", "minute", "minutes")),
    ("second", 1, ("s", "sec", "secs", "second", "seconds")),
)
_SECONDS = {spelling: seconds for _, seconds, spellings in _UNITS for spelling in spellings}
_PARTS = {"half": 0.5, "quarter": 0.25}
_ENDLESS = 1e15
_PIECE = re.compile(
    r"(?:([0-9]+(?:\.[0-9]+)?) ?|(?:an? )?(half|quarter)(?: of)?(?: an?)? |an? )"
    r"([a-z]+)(?: ?, ?| (?:and )?|$)?"
)


def find_duration(text: str) -> float | None:
    """The seconds of a length of time, in small letters; None when the text is none."""
    seconds, rest = begin_duration(text)
    return None if rest else seconds


def begin_duration(text: str) -> tuple[float | None, str]:
    """The seconds of the length of time that a text begins with, None when it begins with none;
    and what comes after it.
    """
    total, position = 0.0, 0
    while piece := _PIECE.match(text, position):
        if piece[3] not in _SECONDS:
            break
        total += float(piece[1] or _PARTS.get(piece[2], 1)) * _SECONDS[piece[3]]
        position = piece.end()
    return (float(round(min(total, _ENDLESS))) if position else None), text[position:]


def find_unit(text: str) -> float | None:
    """The seconds of a unit without a number, as in "every hour"; None when it is none."""
    seconds = _SECONDS.get(text)
    return None if seconds is None else float(seconds)


def say_duration(seconds: float) -> str:
    """A length of time in words, to the second."""
    left, said = round(seconds), []
    for unit, length, _ in _UNITS[1:]:  # "14 days" is plainer than "2 weeks"
        count, left = divmod(left, length)
        if count:
            said.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(said) or "no time"
