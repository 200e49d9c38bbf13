"""The statistics computed here agree with scipy, which the program itself does not need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from journeyman.reliability.clusters import t_quantile
from journeyman.reliability.warm_up import median_over_sessions


@pytest.mark.parametrize("degrees", [4, 5, 7, 10, 30, 1_000])
def test_student_quantile(degrees):
    assert t_quantile(degrees) == pytest.approx(special.stdtrit(degrees, 0.975), rel=5e-4)


@given(st.integers(1, 2_000))
def test_interval_of_the_median(count):
    result = median_over_sessions(range(count))
    outside = sum(special.bdtr(k, count, 0.5) <= 0.025 for k in range(count // 2))
    expected = (outside - 1, count - outside) if outside else (None, None)
    assert (result.low, result.high) == expected
