"""Times of day as people write them: `9am`, `18:30`, `17h`, `noon`, and several of them. Which days
they belong to is the business of `days` and `dates`.
"""

import re

from journeyman.records.errors import WrongInput

AND = r"(?: ?, ?| ?& ?| and )(?:and |at )?"
_HALF = r"(?: ?[ap]\.?m\b\.?)"
_CLOCK = rf"(?:[0-9]{{1,2}}(?:[:.h][0-9]*)*{_HALF}?|noon|midnight)"
TIMES = rf"{_CLOCK}(?:{AND}{_CLOCK})*"
"""What was meant as times of day, be they right or wrong."""

_TIME = re.compile(r"([0-9]{1,2})(?:[:.h]([0-9]{2})|h)?(?: ?([ap])\.?m\.?)?")
# What is a time wherever it stands; a bare number is one only after "at".
_SURE = rf"(?:[0-9]{{1,2}}(?::[0-9]{{2}}{_HALF}?|{_HALF})|noon|midnight)"
_SURE_TIMES = re.compile(
    rf"(?:^| )(?:at )?((?>(?:{_SURE}|(?<=at ){_CLOCK})(?:{AND}{_CLOCK})*))(?= ?,| [a-z0-9]|$)"
)


def read_time(text: str) -> tuple[int, int]:
    """Hour and minute of a time of day in small letters. Raises WrongInput when it is none."""
    if text in ("noon", "midnight"):
        return (12, 0) if text == "noon" else (0, 0)
    parts = _TIME.fullmatch(text)
    hour, minute = (int(parts[1]), int(parts[2] or 0)) if parts else (24, 0)
    half = parts[3] if parts else None
    if minute > 59 or hour > 23 or (half and not 1 <= hour <= 12):
        raise WrongInput(f"{text!r} is no time of day: write 9am, 9:15 or 18:30")
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour, minute


def read_times(text: str) -> tuple[list[int], int]:
    """The hours of several times of day, and the minute they have in common."""
    times = sorted({read_time(time) for time in re.split(AND, text)})
    minutes = {minute for _, minute in times}
    if len(minutes) > 1:
        raise WrongInput("its times differ in their minutes: make a job for each of them")
    return [hour for hour, _ in times], minutes.pop()


def find_times(text: str) -> tuple[list[int], int] | None:
    """The same of a text that may be something else; None when it is."""
    try:
        return read_times(text)
    except WrongInput:
        return None


def put_last(text: str) -> str:
    """A text with its times of day at its end, as in "tomorrow at noon" for "noon tomorrow". It
    stays as it is when they stand in several places.
    """
    found = list(_SURE_TIMES.finditer(text))
    if len(found) != 1 or found[0].end() == len(text):
        return text
    before, after = text[: found[0].start()], text[found[0].end() :]
    return f"{before} {after.strip(' ,').removeprefix('on ')} at {found[0][1]}".strip()
