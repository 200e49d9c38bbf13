"""The effect of correlated calls within a session on rates and their intervals."""

import numpy as np
import pytest

from journeyman.reliability.clusters import Counts, contrast_sets, correlation, t_quantile
from journeyman.reliability.rates import newcombe, wilson

NAMES = ("warm", "cold")


def counts(*rows: tuple[int, int], times: int = 1) -> Counts:
    return np.array(rows * times, dtype=np.int64)


class TestCorrelation:
    def test_known_values(self) -> None:
        # Sessions that fail as a whole.
        assert correlation(counts((10, 10), (0, 10), times=50)) == pytest.approx(1.0)

        # Identical sessions.
        assert correlation(counts((2, 10), times=50)) == 0.0

        # By hand: four sessions of 10 calls with 0, 0, 4 and 4 errors deviate by 2 from their mean
        # of 2, which gives 16 * 4/3. Independent calls would give 40 * 0.2 * 0.8 = 6.4, and
        # sessions that fail as a whole ten times that.
        found = correlation(counts((0, 10), (0, 10), (4, 10), (4, 10)))
        assert found == pytest.approx((16 * 4 / 3 - 6.4) / (64 - 6.4))

        # No variation to measure.
        assert correlation(counts((0, 10), times=9)) == 0.0
        assert correlation(counts((1, 1), (0, 1), times=9)) == 0.0

    def test_simulated_beta_binomial_sessions(self) -> None:
        random = np.random.default_rng(1)
        share = random.beta(0.1 * 4, 0.9 * 4, size=20_000)
        errors = random.binomial(12, share)
        assert correlation(np.column_stack([errors, np.full(20_000, 12)])) == pytest.approx(
            0.2, abs=0.02
        )


def test_design_effect_of_sessions() -> None:
    # Sessions of one call are independent calls: the interval differs from Newcombe's only by
    # Student's quantile.
    found = contrast_sets(counts((1, 1), (0, 1), times=20), counts((1, 1), times=40), NAMES)
    quantile = t_quantile(39)
    plain = newcombe(wilson(20, 40, quantile=quantile), wilson(40, 40, quantile=quantile))
    assert found.difference.low == pytest.approx(plain.low)

    # Sessions that fail as a whole count as one call each.
    found = contrast_sets(
        counts((10, 10), (0, 10), times=20), counts((10, 10), (0, 10), (0, 10), times=20), NAMES
    )
    quantile = t_quantile(39)
    plain = newcombe(wilson(20, 40, quantile=quantile), wilson(20, 60, quantile=quantile))
    assert found.difference.low == pytest.approx(plain.low, abs=0.005)
    assert found.difference.high == pytest.approx(plain.high, abs=0.005)

    # A set with few errors uses the correlation of both sets.
    cold = counts((10, 10), (0, 10), times=10)
    lucky = contrast_sets(counts((0, 10), times=10), cold, NAMES).first
    alone = wilson(0, 100, quantile=t_quantile(9))
    assert lucky.high is not None
    assert alone.high is not None
    assert lucky.high > 3 * alone.high
