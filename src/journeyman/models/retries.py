"""When a request is made again and how long to wait before it. What went wrong is told by others;
here it is only weighed.
"""

import email.utils
import math
from collections.abc import Callable, Mapping

from journeyman.models.model import Cancelled

PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Refusals that pass by themselves, beside all of the server's own errors."""

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
LONGEST_ASKED_S = 120.0
"""How long a server can make us wait; it may ask for hours."""

SLICE_S = 0.2
"""How long a pause goes on before it is asked again whether anyone still waits."""


def passes(status: int) -> bool:
    """Whether a request that got this status may get another the next time."""
    return status in PASSING_STATUSES or status >= 500


def delay_s(failures: int, asked_s: float | None, chance: Callable[[], float]) -> float:
    """How long to wait after so many failures. What the server asks for counts, up to a limit;
    otherwise the time doubles, and chance takes up to half of it away so that clients which
    failed together do not come back together.
    """
    if asked_s is not None:
        return min(asked_s, LONGEST_ASKED_S)
    longest = min(FIRST_DELAY_S * 2.0 ** min(failures - 1, 16), LONGEST_DELAY_S)
    return longest * (1 - chance() / 2)


def find_asked_delay(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds the server asks us to wait: `retry-after-ms`, or `Retry-After` as seconds
    or as a date. None where it does not ask, or asks for what is no time.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if asked is None or seconds is not None:
        return seconds
    try:
        until = email.utils.parsedate_to_datetime(asked).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, until - now)


def pause(seconds: float, sleep: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
    """Wait, in slices, and give up with Cancelled as soon as nobody waits for the end of it."""
    left = seconds
    while True:
        if cancelled():
            raise Cancelled("the request was given up between two tries")
        if left <= 0:
            return
        sleep(min(left, SLICE_S))
        left -= SLICE_S


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
