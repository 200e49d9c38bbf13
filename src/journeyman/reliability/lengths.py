"""How long a session is, in three bands, and the marathon finding: do long sessions have fewer
errors for each call than mid-length ones? The sessions are compared as two sets, so that a few long
ones do not decide it by their many calls.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from journeyman.records import JudgedSession
from journeyman.reliability.clusters import contrast_sets, counts_of
from journeyman.reliability.rates import Difference, missing, percent

BandName = Literal["short", "mid", "marathon"]


class Band(Struct, frozen=True, kw_only=True):
    """Sessions of at least so many messages, up to the next band."""

    name: BandName
    at_least: int
    words: str


BANDS = (
    Band(name="short", at_least=0, words="under 20 messages"),
    Band(name="mid", at_least=20, words="20 to 99 messages"),
    Band(name="marathon", at_least=100, words="100 messages or more"),
)
"""From the shortest to the longest."""


def band(messages: int) -> BandName:
    """The band of a session with so many messages."""
    return next((one.name for one in reversed(BANDS) if messages >= one.at_least), BANDS[0].name)


_NAMES = ("marathon", "mid-length")
_OTHER_WORK = "Marathons also do other work, so their length need not be the reason."


class Marathons(Struct, frozen=True, kw_only=True):
    """Marathons minus mid-length sessions, so negative is fewer errors in marathons."""

    difference: Difference
    reading: str


def marathons(sessions: Iterable[JudgedSession]) -> Marathons:
    """Marathons against mid-length sessions."""
    sessions = list(sessions)
    long, mid = (
        counts_of(session.calls for session in sessions if band(session.messages) == name)
        for name in ("marathon", "mid")
    )
    found = contrast_sets(long, mid, _NAMES)
    difference = found.difference
    rates = (
        f"{percent(found.first)} of the calls in marathons and {percent(found.second)} of those in "
        "mid-length sessions are errors"
    )
    if found.first.total == 0 or found.second.total == 0:
        reading = "Marathons and mid-length sessions cannot be compared: one side has no calls."
    elif difference.low is None:
        reading = f"{rates}. That is too little for a finding: {missing(difference.note)}."
    elif not difference.decided:
        reading = f"{rates}. Calls of one session hang together, so this may be chance."
    elif found.first.errors * found.second.total > found.second.errors * found.first.total:
        reading = f"{rates}: here marathons do worse. {_OTHER_WORK}"
    else:
        reading = (
            "The marathon finding holds here: long sessions have fewer errors for each call, "
            f"{percent(found.first)} against {percent(found.second)} in mid-length ones. "
            f"{_OTHER_WORK}"
        )
    return Marathons(difference=difference, reading=reading)
