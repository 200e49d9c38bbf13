"""Rates and Wilson's interval."""

import pytest
from tests.tables import table

from journeyman.records import Verdict
from journeyman.reliability.rates import rate_of, wilson


@table(
    ("errors", "total", "low", "high"),
    [
        # Newcombe 1998 (single proportion), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_intervals(errors: int, total: int, low: float, high: float) -> None:
    rate = wilson(errors, total)
    assert rate.estimate == errors / total
    assert (rate.low, rate.high) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


def test_the_ends_and_the_design_effect() -> None:
    # The ends are exact.
    assert wilson(0, 7).low == 0.0
    assert wilson(7, 7).high == 1.0

    # Without calls nothing is known.
    rate = wilson(0, 0)
    assert (rate.estimate, rate.low, rate.high) == (None, None, None)

    # A design effect of two halves what the calls are worth.
    alike, independent = wilson(20, 100, design_effect=2.0), wilson(10, 50)
    assert (alike.errors, alike.total) == (20, 100)
    assert (alike.low, alike.high) == pytest.approx((independent.low, independent.high))

    # Only what says something about the tool is counted.
    statuses = ("ok", "failed", "invalid", "refused", "interrupted", "unknown")
    verdicts = [Verdict(status=status, rule="") for status in statuses]
    verdicts.append(Verdict(status="failed", rule="", kind="no_match"))
    rate = rate_of(verdicts)
    assert (rate.errors, rate.total) == (2, 4)


@table(("errors", "total"), [(2, 1), (-1, 3)], ids=["too many", "negative"])
def test_impossible_counts_are_refused(errors: int, total: int) -> None:
    with pytest.raises(ValueError, match=f"{errors} errors among {total} calls"):
        wilson(errors, total)
