"""Three bands of session length, and whether marathon sessions have fewer errors per call than
mid-length ones. Sessions are compared as two sets, so that a few long sessions do not decide the
result by their many calls.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from journeyman.records import JudgedSession
from journeyman.reliability.clusters import contrast_sets, counts_of
from journeyman.reliability.rates import Difference, percent, shortage_text

BandName = Literal["short", "mid", "marathon"]


BANDS: dict[BandName, int] = {"short": 0, "mid": 20, "marathon": 100}
"""The fewest messages of a session in each band, from the shortest to the longest."""


def length_band(messages: int) -> BandName:
    """Return the band of a session with this number of messages."""
    return next((name for name in reversed(BANDS) if messages >= BANDS[name]), "short")


class Marathons(Struct, frozen=True, kw_only=True):
    """Error rate of marathons minus that of mid-length sessions: negative is lower in marathons."""

    difference: Difference
    reading: str


def marathons(sessions: Iterable[JudgedSession]) -> Marathons:
    """Compare marathons with mid-length sessions."""
    sessions = list(sessions)
    long, mid = (
        counts_of(session.calls for session in sessions if length_band(session.messages) == name)
        for name in ("marathon", "mid")
    )
    contrast = contrast_sets(long, mid, ("marathon", "mid-length"))
    difference, first, second = contrast.difference, contrast.first, contrast.second
    rates = (
        f"{percent(first)} of the calls in marathons and {percent(second)} of "
        "those in mid-length sessions are errors"
    )
    more = "more" if first.errors * second.total > second.errors * first.total else "fewer"
    if first.total == 0 or second.total == 0:
        reading = "Marathons and mid-length sessions cannot be compared: one side has no calls."
    elif difference.low is None:
        reading = f"{rates}. Not enough data to compare them: {shortage_text(difference.note)}."
    elif not difference.decided:
        reading = f"{rates}. Calls within one session are correlated, so this may be due to chance."
    else:
        reading = (
            f"{rates}: marathons have {more} errors per call. They also involve different work."
        )
    return Marathons(difference=difference, reading=reading)
