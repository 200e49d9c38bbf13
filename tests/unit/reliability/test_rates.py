"""Error rates and their differences."""

import numpy as np
import pytest
from tests.tables import table

from journeyman.records import Verdict
from journeyman.reliability.rates import (
    Difference,
    mantel_haenszel,
    newcombe,
    rate_of,
    wilson,
)


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
def test_published_wilson_intervals(errors: int, total: int, low: float, high: float) -> None:
    rate = wilson(errors, total)
    assert rate.estimate == errors / total
    assert (rate.low, rate.high) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


def test_bounds_design_effect_and_counted_calls() -> None:
    # Bounds of 0 and 1 are exact.
    assert wilson(0, 7).low == 0.0
    assert wilson(7, 7).high == 1.0

    # Unknown without calls.
    rate = wilson(0, 0)
    assert (rate.estimate, rate.low, rate.high) == (None, None, None)

    # A design effect of 2 halves the effective number of calls.
    correlated, independent = wilson(20, 100, design_effect=2.0), wilson(10, 50)
    assert (correlated.errors, correlated.total) == (20, 100)
    assert (correlated.low, correlated.high) == pytest.approx((independent.low, independent.high))

    # Only outcomes that depend on the tool are counted.
    statuses = ("ok", "failed", "invalid", "refused", "interrupted", "unknown")
    verdicts = [Verdict(status=status, rule="") for status in statuses]
    verdicts.append(Verdict(status="failed", rule="", kind="no_match"))
    rate = rate_of(verdicts)
    assert (rate.errors, rate.total) == (2, 4)


@table(("errors", "total"), [(2, 1), (-1, 3)], ids=["too many", "negative"])
def test_impossible_counts_are_refused(errors: int, total: int) -> None:
    with pytest.raises(ValueError, match=f"{errors} errors among {total} calls"):
        wilson(errors, total)


@table(
    ("first", "second", "low", "high"),
    [
        # Newcombe 1998 (independent proportions), table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 10), 0.6075, 1.0),
        ((5, 56), (0, 29), -0.0381, 0.1926),
    ],
    ids=["56/70 48/80", "9/10 3/10", "10/10 0/10", "5/56 0/29"],
)
def test_published_newcombe_intervals(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    found = newcombe(wilson(*first), wilson(*second))
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


def test_unknown_rate_gives_an_unknown_difference() -> None:
    known, unknown = wilson(1, 2), wilson(0, 0)
    one = newcombe(known, unknown)
    assert (one.estimate, one.low, one.high) == (None, None, None)
    assert one.note == "not enough data: no counted calls on one side"
    assert newcombe(unknown, unknown).note == "not enough data: no counted calls"


@table(
    ("low", "high", "decided"),
    [
        (-0.2, -0.1, True),
        (0.1, 0.2, True),
        (-0.1, 0.1, False),
        (0.0, 0.1, False),
        (None, None, False),
    ],
)
def test_interval_decides_if_it_excludes_zero(
    low: float | None, high: float | None, decided: bool
) -> None:
    assert Difference(estimate=0.0, low=low, high=high, method="").decided is decided


def test_known_values_of_mantel_haenszel() -> None:
    # By hand: weights 25 and 20, differences 0.1 and 1/6.
    strata = [(10, 50, 5, 50), (20, 30, 30, 60)]
    assert mantel_haenszel(strata) == pytest.approx((25 * 0.1 + 20 / 6) / 45)

    # Simpson's paradox. Charig 1986: treatment A is better for small kidney stones and for large
    # ones, and looks worse overall.
    small, large = (81, 87, 234, 270), (192, 263, 55, 80)
    together = np.add(small, large)
    assert mantel_haenszel([together]) == pytest.approx(273 / 350 - 289 / 350)
    assert mantel_haenszel([small, large]) == pytest.approx(0.053835, abs=1e-6)

    # Strata with calls on one side only have no weight.
    assert mantel_haenszel([(1, 4, 0, 4), (9, 9, 0, 0)]) == pytest.approx(0.25)
    assert np.isnan(mantel_haenszel([(9, 9, 0, 0), (0, 0, 1, 2)]))
    assert np.isnan(mantel_haenszel(np.zeros((0, 4))))
