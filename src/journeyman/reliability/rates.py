"""Error rates. A rate is never a lone number: it has its counts, its interval and its method."""

from collections.abc import Iterable
from math import sqrt

from msgspec import Struct

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
