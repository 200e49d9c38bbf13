"""Error rates and differences between them: intervals and their wording. A rate is
never a bare number: it has its counts, its interval and its method.
"""

from collections.abc import Callable, Iterable, Sequence
from math import hypot, sqrt
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from journeyman.records import LateChange
from journeyman.records.verdict import Verdict

CONFIDENCE = 0.95
"""The confidence level of every interval in this package."""

NORMAL_QUANTILE = 1.959963984540054
"""The standard normal quantile at (1 + CONFIDENCE) / 2."""


class Rate(Struct, frozen=True, kw_only=True):
    """Errors among the counted calls. Without counted calls the estimate and its interval are None,
    never 0 and never NaN.
    """

    errors: int
    total: int
    estimate: float | None
    low: float | None
    high: float | None
    method: str = "Wilson 95 %"

    @property
    def bounds(self) -> tuple[float, float, float]:
        """Low, estimate and high of a rate with counted calls."""
        return self.low or 0.0, self.estimate or 0.0, self.high or 0.0


def wilson(
    errors: int,
    total: int,
    *,
    design_effect: float = 1.0,
    quantile: float = NORMAL_QUANTILE,
    method: str = "Wilson 95 %",
) -> Rate:
    """Return the rate with Wilson's score interval. If calls are correlated, `design_effect` is the
    number of them that carries as much information as one independent call.
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
    # Exact at the ends, where rounding would leave a tiny remainder.
    low = 0.0 if errors == 0 else max(0.0, middle - reach)
    high = 1.0 if errors == total else min(1.0, middle + reach)
    return Rate(errors=errors, total=total, estimate=share, low=low, high=high, method=method)


def rate_of(verdicts: Iterable[Verdict]) -> Rate:
    """Return the error rate of the verdicts that count as success or error."""
    counted = [verdict.is_error for verdict in verdicts if verdict.counts]
    return wilson(sum(counted), len(counted))


class Difference(Struct, frozen=True, kw_only=True):
    """The first rate minus the second. What is hoped to be better comes first (late, later, after,
    warm), so a negative difference is an improvement everywhere. Unknown values are None, and the
    note states why.
    """

    estimate: float | None
    low: float | None
    high: float | None
    method: str
    note: str = ""

    @property
    def decided(self) -> bool:
        """Whether the interval is known and excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


_Rated = TypeVar("_Rated")


def shown_with_worst(
    rows: Sequence[_Rated], limit: int, rate: Callable[[_Rated], Rate]
) -> Sequence[_Rated]:
    """Return the first rows. If the worst of all is not among them, it takes the last place. The
    worst is the one with the highest lower bound, so that a single failed call does not outrank a
    tool that fails all the time.
    """
    shown = rows[:limit]
    worst = max(rows, key=lambda row: rate(row).low or 0.0, default=None)
    if worst is None or worst in shown or not rate(worst).errors:
        return shown
    return [*shown[:-1], worst]


def newcombe(first: Rate, second: Rate, *, method: str = "Newcombe 95 %") -> Difference:
    """Return the difference with Newcombe's hybrid score interval (his method 10), computed from
    the intervals of the two rates.
    """
    if not first.total or not second.total:
        where = " on one side" if first.total or second.total else ""
        note = f"not enough data: no counted calls{where}"
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


def mantel_haenszel(strata: ArrayLike) -> NDArray[np.float64]:
    """Return the difference between two rates, compared within each stratum and then averaged.

    The last axis holds the errors and calls of the first side, then of the second; the axis before
    it holds the strata. The weight of a stratum is n1 * n2 / (n1 + n2), so a stratum with calls on
    one side only has weight 0. The result is NaN if all weights are 0.
    """
    counts = np.asarray(strata, dtype=np.float64)
    first_errors, first, second_errors, second = np.moveaxis(counts, -1, 0)
    both = np.maximum(first + second, 1.0)
    weight = (first * second / both).sum(axis=-1)
    weighted = ((first_errors * second - second_errors * first) / both).sum(axis=-1)
    unknown = np.full_like(weight, np.nan)
    average: NDArray[np.float64] = np.divide(weighted, weight, out=unknown, where=weight > 0)
    return average


def percent_text(value: float) -> str:
    return f"{100 * value:.1f} %"


def percent(rate: Rate) -> str:
    return "unknown" if rate.estimate is None else percent_text(rate.estimate)


def rate_interval_text(rate: Rate) -> str:
    """Return the interval of a rate in percent; empty if it is unknown."""
    if rate.low is None or rate.high is None:
        return ""
    return f"{100 * rate.low:.1f} to {percent_text(rate.high)}"


def change_text(estimate: float, *, than: str = "") -> str:
    """Word a difference between error rates, of which the negative is the improvement: "2.3 points
    fewer errors". Points are percentage points.
    """
    amount = _points(estimate)
    if amount == "0.0":
        return f"the same error rate as {than}" if than else "no difference"
    unit = "point" if amount == "1.0" else "points"
    change = f"{amount} {unit} {'fewer' if estimate < 0 else 'more'} errors"
    return f"{change} than {than}" if than else change


def interval_text(difference: Difference | LateChange) -> str:
    """Word the interval with fewer and more instead of signs; empty if it is unknown."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        return ""
    if high <= 0:
        return f"{_points(high)} to {_points(low)} fewer"
    if low >= 0:
        return f"{_points(low)} to {_points(high)} more"
    return f"{_points(low)} fewer to {_points(high)} more"


def shortage_text(note: str) -> str:
    """Return the data that a note states to be missing, for use in a sentence."""
    return note.removeprefix("not enough data: ")


def _points(value: float) -> str:
    return f"{100 * abs(value):.1f}"
