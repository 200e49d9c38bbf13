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


class LengthBand(Struct, frozen=True, kw_only=True):
    """Sessions of at least `at_least` messages, up to the next band."""

    name: BandName
    at_least: int
    words: str


BANDS = (
    LengthBand(name="short", at_least=0, words="under 20 messages"),
    LengthBand(name="mid", at_least=20, words="20 to 99 messages"),
    LengthBand(name="marathon", at_least=100, words="100 messages or more"),
)
"""From the shortest to the longest."""


def length_band(messages: int) -> BandName:
    """Return the band of a session with this number of messages."""
    return next((band.name for band in reversed(BANDS) if messages >= band.at_least), BANDS[0].name)


_NAMES = ("marathon", "mid-length")
_OTHER_WORK = "Marathons also involve different work, so length is not necessarily the cause."


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
    contrast = contrast_sets(long, mid, _NAMES)
    difference = contrast.difference
    rates = (
        f"{percent(contrast.first)} of the calls in marathons and {percent(contrast.second)} of "
        "those in mid-length sessions are errors"
    )
    if contrast.first.total == 0 or contrast.second.total == 0:
        reading = "Marathons and mid-length sessions cannot be compared: one side has no calls."
    elif difference.low is None:
        reading = f"{rates}. Not enough data to compare them: {shortage_text(difference.note)}."
    elif not difference.decided:
        reading = f"{rates}. Calls within one session are correlated, so this may be due to chance."
    elif (
        contrast.first.errors * contrast.second.total
        > contrast.second.errors * contrast.first.total
    ):
        reading = f"{rates}: marathons have more errors per call. {_OTHER_WORK}"
    else:
        reading = f"{rates}: marathons have fewer errors per call. {_OTHER_WORK}"
    return Marathons(difference=difference, reading=reading)
