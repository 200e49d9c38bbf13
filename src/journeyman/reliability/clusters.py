"""Sessions as clusters: calls of one session resemble each other, so a hundred calls in one
session tell less than a hundred in fifty. Here is how much less, what that makes of two rates and
their difference, and when there is too little to say anything.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import stdtrit

from journeyman.records.verdict import JudgedCall, JudgedSession
from journeyman.reliability.rates import CONFIDENCE, Difference, Rate, newcombe, wilson

MIN_SESSIONS = 8
"""Sessions with calls that an interval over sessions needs (on each side, where sides differ)."""

MIN_TELLING = 5
"""Sessions with an error, and sessions with a call that worked, that it needs in all. With fewer,
nothing shows how errors spread over sessions."""

Counts = NDArray[np.int64]
"""One row for each session: its errors and its calls that count."""


class Contrast(Struct, frozen=True, kw_only=True):
    """Two rates and the first minus the second. The design effect is None when it is not known."""

    first: Rate
    second: Rate
    difference: Difference
    design_effect: float | None


def distinct(sessions: Sequence[JudgedSession]) -> list[JudgedSession]:
    """The sessions, each once: the same calls given twice are not twice the evidence."""
    return list({session.id: session for session in sessions}.values())


def t_quantile(degrees: int) -> float:
    """Student's quantile for a two-sided interval."""
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def shortage(counts: Counts) -> str:
    """In words, what is missing for an interval over sessions; empty when there is enough."""
    failing = int((counts[:, 0] > 0).sum())
    working = int((counts[:, 0] < counts[:, 1]).sum())
    for found, having in ((failing, "errors"), (working, "calls that worked")):
        if found < MIN_TELLING:
            few = f"{_sessions(found)} with {having}"
            return f"not enough data: {few}, {MIN_TELLING} are needed"
    return ""


def too_few(sessions: int, *, which: str = "", having: str = "calls") -> str:
    """In words, that there are not enough sessions; empty when there are."""
    if sessions >= MIN_SESSIONS:
        return ""
    found = f"{_sessions(sessions, which)} with {having}"
    return f"not enough data: {found}, {MIN_SESSIONS} are needed"


def _sessions(count: int, which: str = "") -> str:
    return f"{count} {which} ".replace("  ", " ") + ("session" if count == 1 else "sessions")


def correlation(*sets: Counts) -> float:
    """How alike the calls of one session are, from 0 (independent) to 1 (all the same): what
    sessions differ more than independent calls would, of what they could at most.
    """
    more = most = 0.0
    for counts in sets:
        errors, calls = counts[:, 0], counts[:, 1]
        total = int(calls.sum())
        share = errors.sum() / total
        apart = ((errors - share * calls) ** 2).sum() * len(counts) / (len(counts) - 1)
        more += apart - share * (1 - share) * total
        most += share * (1 - share) * ((calls**2).sum() - total)
    return float(np.clip(more / most, 0.0, 1.0)) if most > 0 else 0.0


def counts_of(sessions: Iterable[Iterable[JudgedCall]]) -> Counts:
    """Errors and calls that count, a row for each of the sessions that have such calls."""
    counted = ([one.verdict.is_error for one in calls if one.verdict.counts] for calls in sessions)
    rows = [(sum(errors), len(errors)) for errors in counted if errors]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def rate_over_sessions(counts: Counts) -> Rate:
    """The error rate of many sessions, with an interval that knows that calls of one session hang
    together. With few sessions nothing can be said about that: then each call counts for itself.
    """
    if len(counts) < MIN_SESSIONS:
        return wilson(*_sums(counts))
    effect = _design_effect(counts, correlation(counts))
    return _by_session(counts, effect, t_quantile(len(counts) - 1))


def _by_session(counts: Counts, effect: float, quantile: float) -> Rate:
    method = "Wilson 95 %, by session"
    return wilson(*_sums(counts), design_effect=effect, quantile=quantile, method=method)


# Newcombe's interval on what a set's calls are worth, because resampling sessions does not hold for
# two sets. Coverage / width in points of 2,000 simulated comparisons each, where 95 is aimed at;
# beta-binomial sessions of 3 to 60 calls. First the two rates, the correlation and the numbers of
# sessions:
#
#                               5, 5 % .3   5, 5 % .3   20, 5 % .3   2, 10 % .2   20, 20 % .05
#                               10 and 10   10 and 100  12 and 40    15 and 15    10 and 10
#   percentiles of a bootstrap  88.8 / 21   78.8 / 14   89.4 / 27    88.3 / 15    91.0 / 20
#     widened by Student's t    94.9 / 26   83.2 / 17   93.1 / 31    91.5 / 17    95.8 / 24
#   BCa                         80.7 / 23   76.8 / 15   89.5 / 28    86.7 / 17    89.8 / 20
#   bootstrap-t                 93.8 / 45   78.5 / 28   92.8 / 41    91.2 / 23    94.8 / 25
#   jackknife with t            98.6 / 27   83.0 / 18   92.0 / 33    92.4 / 18    95.8 / 25
#   this one                    99.2 / 35   98.0 / 26   96.6 / 34    95.6 / 22    96.8 / 26
#   every call independent      43.0 /  7   42.0 /  5   40.2 /  8    49.0 /  6    74.2 / 13
#
# A small set that happens to have few errors looks certain to each of the others. Here a set is
# held to be as correlated as both together, or as it is itself when that is more.
def contrast_sets(first: Counts, second: Counts, names: tuple[str, str]) -> Contrast:
    """The difference between two sets of sessions, which the note calls by their names."""
    method = "Newcombe 95 %, by session"
    missing = (
        too_few(len(first), which=names[0])
        or too_few(len(second), which=names[1])
        or shortage(np.concatenate([first, second]))
    )
    if missing:
        plain = contrast_sessions(first, second)
        estimate = plain.difference.estimate
        difference = Difference(estimate=estimate, low=None, high=None, method=method, note=missing)
        return replace(plain, difference=difference, design_effect=None)
    quantile = t_quantile(min(len(first), len(second)) - 1)
    together = correlation(first, second)
    effects = [_design_effect(one, max(together, correlation(one))) for one in (first, second)]
    rates = [
        _by_session(counts, effect, quantile)
        for counts, effect in zip((first, second), effects, strict=True)
    ]
    return Contrast(
        first=rates[0],
        second=rates[1],
        difference=newcombe(*rates, method=method),
        design_effect=max(effects),
    )


def contrast_sessions(first: Counts, second: Counts) -> Contrast:
    """The difference between two single sessions. It speaks for these two alone, so their calls
    are taken for independent.
    """
    rates = wilson(*_sums(first)), wilson(*_sums(second))
    return Contrast(first=rates[0], second=rates[1], difference=newcombe(*rates), design_effect=1.0)


def _design_effect(counts: Counts, alike: float) -> float:
    calls = counts[:, 1]
    return float(1 + ((calls**2).sum() / calls.sum() - 1) * alike)


def _sums(counts: Counts) -> tuple[int, int]:
    return int(counts[:, 0].sum()), int(counts[:, 1].sum())
