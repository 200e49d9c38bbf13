"""The statistics computed here agree with scipy, which the program itself does not need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from journeyman.reliability.clusters import t_quantile
from journeyman.reliability.rates import fisher_exact, wilson
from journeyman.reliability.warm_up import median_over_sessions


@pytest.mark.parametrize("degrees", [4, 5, 7, 10, 30, 1_000])
def test_student_quantile(degrees):
    assert t_quantile(degrees) == pytest.approx(special.stdtrit(degrees, 0.975), rel=5e-4)


@given(st.data())
def test_fisher(data):
    totals = data.draw(st.tuples(st.integers(1, 300), st.integers(1, 300)))
    first, second = (data.draw(st.integers(0, total)) for total in totals)
    table = [[first, totals[0] - first], [second, totals[1] - second]]
    ours = fisher_exact(wilson(first, totals[0]), wilson(second, totals[1]))
    assert ours == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-6, abs=1e-12)


@given(st.integers(1, 2_000))
def test_interval_of_the_median(count):
    result = median_over_sessions(range(count))
    outside = sum(special.bdtr(k, count, 0.5) <= 0.025 for k in range(count // 2))
    expected = (outside - 1, count - outside) if outside else (None, None)
    assert (result.low, result.high) == expected
