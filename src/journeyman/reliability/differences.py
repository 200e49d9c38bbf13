"""Differences between two error rates: their intervals, exact tests and the calls that would
decide them. Everything here takes counts that are already made; how calls of one session hang
together is left to `clusters` and `bootstrap`.
"""

from math import ceil, hypot, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from journeyman.reliability.rates import NORMAL_QUANTILE, Rate

_POWER_QUANTILE = 0.8416212335729143
"""The standard normal quantile at 80 %."""

MOST_CALLS = 1_000_000
"""Beyond this a number of calls is no longer advice."""


class Difference(Struct, frozen=True, kw_only=True):
    """The first rate minus the second, so that negative means fewer errors in the first. What is
    not known is None, and the note says why.
    """

    estimate: float | None
    low: float | None
    high: float | None
    method: str
    note: str = ""

    @property
    def decided(self) -> bool:
        """Whether the interval is known and leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class CallsNeeded(Struct, frozen=True, kw_only=True):
    """How many calls on each side would decide a difference; None with a note when nobody can
    say.
    """

    calls: int | None
    note: str = ""


def newcombe(first: Rate, second: Rate, *, method: str = "Newcombe 95 %") -> Difference:
    """The difference with Newcombe's hybrid score interval (his method 10), made of the intervals
    that the two rates bring along.
    """
    one, two = _known(first), _known(second)
    if one is None or two is None:
        where = "" if one is two else " on one side"
        note = f"not enough data: there are no calls that count{where}"
        return Difference(estimate=None, low=None, high=None, method=method, note=note)
    estimate = one[1] - two[1]
    down = hypot(one[1] - one[0], two[2] - two[1])
    up = hypot(one[2] - one[1], two[1] - two[0])
    return Difference(
        estimate=estimate,
        low=max(-1.0, estimate - down),
        high=min(1.0, estimate + up),
        method=method,
    )


def _known(rate: Rate) -> tuple[float, float, float] | None:
    if rate.low is None or rate.estimate is None or rate.high is None:
        return None
    return rate.low, rate.estimate, rate.high


def fisher_exact(first: Rate, second: Rate) -> float | None:
    """Fisher's exact test, two-sided: the chance of counts at least as unlikely as these if both
    rates were the same and all calls independent. None when a side has no calls.
    """
    if first.total == 0 or second.total == 0:
        return None
    errors = first.errors + second.errors
    split = np.arange(max(0, errors - second.total), min(errors, first.total) + 1)
    logs = _log_choose(first.total, split) + _log_choose(second.total, errors - split)
    likely = np.exp(logs - _log_choose(first.total + second.total, np.array(errors)))
    seen = likely[first.errors - split[0]]
    # Tables that are exactly as likely differ in the last digits.
    return min(1.0, float(likely[likely <= seen * (1 + 1e-7)].sum()))


def _log_choose(total: int, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = (
        gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1)
    )
    return logs


def mantel_haenszel(strata: ArrayLike) -> NDArray[np.float64]:
    """The difference between two rates, compared inside each stratum and then averaged.

    The last axis holds the errors and calls of the first side, then of the second; the one before
    it the strata. A stratum weighs n1 * n2 / (n1 + n2), so one with calls on a single side weighs
    nothing. NaN where no stratum weighs anything.
    """
    counts = np.asarray(strata, dtype=np.float64)
    first_errors, first, second_errors, second = np.moveaxis(counts, -1, 0)
    both = np.maximum(first + second, 1.0)
    weight = (first * second / both).sum(axis=-1)
    leaning = ((first_errors * second - second_errors * first) / both).sum(axis=-1)
    unknown = np.full_like(weight, np.nan)
    averaged: NDArray[np.float64] = np.divide(leaning, weight, out=unknown, where=weight > 0)
    return averaged


def calls_to_decide(first: Rate, second: Rate, *, design_effect: float = 1.0) -> CallsNeeded:
    """The calls per side that show a difference of the observed size in 80 % of comparisons, at
    5 % false alarms (the normal formula for two proportions).
    """
    if first.estimate is None or second.estimate is None:
        return CallsNeeded(calls=None, note="the difference is not known")
    distance = first.estimate - second.estimate
    if distance == 0:
        return CallsNeeded(calls=None, note="the two rates are equal, so no number would do")
    middle = (first.estimate + second.estimate) / 2
    alike = sqrt(2 * middle * (1 - middle))
    apart = sqrt(sum(p * (1 - p) for p in (first.estimate, second.estimate)))
    reach = NORMAL_QUANTILE * alike + _POWER_QUANTILE * apart
    calls = ceil(max(1.0, (reach / distance) ** 2 * design_effect))
    if calls > MOST_CALLS:
        note = "the difference is so small that more than a million calls a side would be needed"
        return CallsNeeded(calls=None, note=note)
    return CallsNeeded(calls=calls)
