"""Error rates and the differences between them, made of counts: intervals, exact tests, the calls
that would decide a difference, and all of them in words. A rate is never a lone number: it has its
counts, its interval and its method.
"""

from collections.abc import Iterable
from math import ceil, hypot, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from journeyman.records.verdict import Verdict

CONFIDENCE = 0.95
"""Of every interval here."""

NORMAL_QUANTILE = 1.959963984540054
"""The standard normal quantile at (1 + CONFIDENCE) / 2."""


class Rate(Struct, frozen=True, kw_only=True):
    """Errors among the calls that count. Without such calls nothing is known: then the estimate
    and its interval are None, never 0 and never NaN.
    """

    errors: int
    total: int
    estimate: float | None
    low: float | None
    high: float | None
    method: str = "Wilson 95 %"

    @property
    def bounds(self) -> tuple[float, float, float]:
        """Low, estimate and high of a rate that is known."""
        return self.low or 0.0, self.estimate or 0.0, self.high or 0.0


def wilson(
    errors: int,
    total: int,
    *,
    design_effect: float = 1.0,
    quantile: float = NORMAL_QUANTILE,
    method: str = "Wilson 95 %",
) -> Rate:
    """The rate with Wilson's score interval. Where calls resemble each other, `design_effect` of
    them tell as much as one independent call.
    """
    if not 0 <= errors <= total:
        raise ValueError(f"{errors} errors among {total} calls")
    if total == 0:
        return Rate(errors=0, total=0, estimate=None, low=None, high=None, method=method)
    share = errors / total
    weight = total / design_effect
    spread = quantile * quantile / weight
    middle = (share + spread / 2) / (1 + spread)
    reach = quantile / (1 + spread) * sqrt(share * (1 - share) / weight + spread / (4 * weight))
    # Exact at the ends, where rounding would leave a trace of zero.
    low = 0.0 if errors == 0 else max(0.0, middle - reach)
    high = 1.0 if errors == total else min(1.0, middle + reach)
    return Rate(errors=errors, total=total, estimate=share, low=low, high=high, method=method)


def rate_of(verdicts: Iterable[Verdict]) -> Rate:
    """The error rate of the verdicts that count."""
    counted = [verdict.is_error for verdict in verdicts if verdict.counts]
    return wilson(sum(counted), len(counted))


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
    if not first.total or not second.total:
        where = " on one side" if first.total or second.total else ""
        note = f"not enough data: there are no calls that count{where}"
        return Difference(estimate=None, low=None, high=None, method=method, note=note)
    (low_1, rate_1, high_1), (low_2, rate_2, high_2) = first.bounds, second.bounds
    estimate = rate_1 - rate_2
    down = hypot(rate_1 - low_1, high_2 - rate_2)
    up = hypot(high_1 - rate_1, rate_2 - low_2)
    return Difference(
        estimate=estimate,
        low=max(-1.0, estimate - down),
        high=min(1.0, estimate + up),
        method=method,
    )


def fisher_exact(first: Rate, second: Rate) -> float | None:
    """Fisher's exact test, two-sided: the chance of counts at least as unlikely as these if both
    rates were the same and all calls independent. None when a side has no calls.
    """
    from scipy.stats import fisher_exact as test  # noqa: PLC0415 - loads slowly

    if first.total == 0 or second.total == 0:
        return None
    counts = [[one.errors, one.total - one.errors] for one in (first, second)]
    return float(test(counts).pvalue)


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


def percent(rate: Rate) -> str:
    return "unknown" if rate.estimate is None else f"{100 * rate.estimate:.1f} %"


def errors_than(estimate: float, when: str = "") -> str:
    """How many more or fewer errors, up to the word before what it is compared with."""
    errors = f"errors {when}".rstrip()
    amount = _points(estimate)
    if amount == "0.0":
        return f"about as many {errors} as"
    unit = "percentage point" if amount == "1.0" else "percentage points"
    return f"{amount} {unit} {'fewer' if estimate < 0 else 'more'} {errors} than"


def span(difference: Difference) -> str:
    """The interval, said with fewer and more instead of signs; empty when it is not known."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        return ""
    if high <= 0:
        return f"{_points(high)} to {_points(low)} points fewer"
    if low >= 0:
        return f"{_points(low)} to {_points(high)} points more"
    return f"{_points(low)} points fewer to {_points(high)} points more"


def missing(note: str) -> str:
    """What a note says is missing, for a sentence that already says that something is."""
    return note.removeprefix("not enough data: ")


def _points(value: float) -> str:
    return f"{100 * abs(value):.1f}"


def many(number: int, thing: str) -> str:
    """A count with its noun: 1 call, 2 calls."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def harmless(text: str) -> str:
    """Recorded text that can be shown anywhere: what has no shape of its own, such as control
    characters and those that turn the direction of writing, is replaced.
    """
    return "".join(
        one if one.isprintable() or one == "\n" else " " if one.isspace() else "\ufffd"
        for one in text
    )
