"""Differences between two rates, against published and hand-made answers."""

import numpy as np
import pytest
from tests.tables import table

from journeyman.reliability.differences import (
    Difference,
    calls_to_decide,
    fisher_exact,
    mantel_haenszel,
    newcombe,
)
from journeyman.reliability.rates import wilson


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


def test_an_unknown_rate_makes_an_unknown_difference() -> None:
    known, unknown = wilson(1, 2), wilson(0, 0)
    one = newcombe(known, unknown)
    assert (one.estimate, one.low, one.high) == (None, None, None)
    assert one.note == "not enough data: there are no calls that count on one side"
    assert newcombe(unknown, unknown).note == "not enough data: there are no calls that count"


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
def test_an_interval_decides_when_it_leaves_out_zero(
    low: float | None, high: float | None, decided: bool
) -> None:
    assert Difference(estimate=0.0, low=low, high=high, method="").decided is decided


def test_known_answers_of_fisher() -> None:
    # The lady tasting tea.
    assert fisher_exact(wilson(3, 4), wilson(1, 4)) == pytest.approx(0.485714, abs=1e-6)
    assert fisher_exact(wilson(4, 4), wilson(0, 4)) == pytest.approx(0.028571, abs=1e-6)

    # Fisher on many calls and on none.
    assert fisher_exact(wilson(50_000, 1_000_000), wilson(50_100, 1_000_000)) == pytest.approx(
        0.7477, abs=1e-3
    )
    assert fisher_exact(wilson(0, 0), wilson(1, 2)) is None
    assert fisher_exact(wilson(0, 5), wilson(0, 9)) == 1.0


def test_fisher_agrees_with_scipy_on_a_grid() -> None:
    from scipy import stats

    for first in (1, 4, 9, 30):
        for second in (1, 6, 17):
            for errors in range(first + 1):
                for others in range(0, second + 1, 3):
                    table = [[errors, first - errors], [others, second - others]]
                    expected = stats.fisher_exact(table).pvalue
                    found = fisher_exact(wilson(errors, first), wilson(others, second))
                    assert found == pytest.approx(expected, rel=1e-7), table


def test_known_answers_of_mantel_haenszel() -> None:
    # Mantel haenszel by hand.
    # Weights 25 and 20, differences 0.1 and 1/6.
    strata = [(10, 50, 5, 50), (20, 30, 30, 60)]
    assert mantel_haenszel(strata) == pytest.approx((25 * 0.1 + 20 / 6) / 45)

    # Mantel haenszel turns the sign of the kidney stones. Charig 1986: treatment A is better for
    # small stones and for large ones, and looks worse.
    small, large = (81, 87, 234, 270), (192, 263, 55, 80)
    together = np.add(small, large)
    assert mantel_haenszel([together]) == pytest.approx(273 / 350 - 289 / 350)
    assert mantel_haenszel([small, large]) == pytest.approx(0.053835, abs=1e-6)

    # Strata with calls on one side weigh nothing.
    assert mantel_haenszel([(1, 4, 0, 4), (9, 9, 0, 0)]) == pytest.approx(0.25)
    assert np.isnan(mantel_haenszel([(9, 9, 0, 0), (0, 0, 1, 2)]))
    assert np.isnan(mantel_haenszel(np.zeros((0, 4))))


def test_calls_to_decide_as_in_the_textbook() -> None:
    """Fleiss: 10 % against 20 % takes 199 a group, 60 % against 80 % takes 82."""
    assert calls_to_decide(wilson(10, 100), wilson(20, 100)).calls == 199
    assert calls_to_decide(wilson(8, 10), wilson(6, 10)).calls == 82
    assert calls_to_decide(wilson(10, 100), wilson(20, 100), design_effect=3.0).calls == 597


@table(
    ("first", "second", "note"),
    [
        ((1, 10), (2, 20), "the two rates are equal"),
        ((0, 0), (2, 20), "the difference is not known"),
        ((1000, 10_000), (1001, 10_000), "more than a million calls"),
    ],
    ids=["equal", "unknown", "tiny"],
)
def test_when_no_number_of_calls_can_be_given(
    first: tuple[int, int], second: tuple[int, int], note: str
) -> None:
    needed = calls_to_decide(wilson(*first), wilson(*second))
    assert needed.calls is None
    assert note in needed.note
