"""The marathon finding: do long sessions have fewer errors for each call than mid-length ones? The
sessions are compared as two sets, so that a few long ones do not decide it by their many calls.
"""

from collections.abc import Iterable

from msgspec import Struct

from journeyman.records import JudgedSession
from journeyman.reliability.clusters import contrast_sets, counts_of
from journeyman.reliability.differences import Difference
from journeyman.reliability.lengths import BandName, band
from journeyman.reliability.wording import missing, percent

_NAMES = ("marathon", "mid-length")
_OTHER_WORK = "Marathons also do other work, so their length need not be the reason."


class Marathons(Struct, frozen=True, kw_only=True):
    """Marathons minus mid-length sessions, so negative is fewer errors in marathons."""

    difference: Difference
    reading: str


def marathons(sessions: Iterable[JudgedSession]) -> Marathons:
    """Marathons against mid-length sessions."""
    by_band: dict[BandName, list[tuple[int, int]]] = {"marathon": [], "mid": [], "short": []}
    for session in sessions:
        counted = [call.verdict.is_error for call in session.calls if call.verdict.counts]
        if counted:
            by_band[band(session.messages)].append((sum(counted), len(counted)))
    found = contrast_sets(counts_of(by_band["marathon"]), counts_of(by_band["mid"]), _NAMES)
    difference = found.difference
    if found.first.total == 0 or found.second.total == 0:
        reading = "Marathons and mid-length sessions cannot be compared: one side has no calls."
        return Marathons(difference=difference, reading=reading)
    rates = (
        f"{percent(found.first)} of the calls in marathons and {percent(found.second)} of those in "
        "mid-length sessions are errors"
    )
    if difference.low is None:
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
