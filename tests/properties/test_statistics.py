"""Properties of the statistics for any sessions, and their error rates in simulations."""

from dataclasses import dataclass
from typing import get_args

import msgspec
import numpy as np
import pytest
from benchmarks.null_simulation import (
    AGENTS,
    SETS,
    Agent,
    Sets,
    answered,
    comparisons,
    coverage,
    independent,
    lessons,
    single_sessions,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict, VerdictStatus
from journeyman.reliability.comparison import compare
from journeyman.reliability.learning_curve import learning
from journeyman.reliability.rates import (
    Difference,
    Rate,
    mantel_haenszel,
    newcombe,
    wilson,
)

rates = st.integers(1, 200).flatmap(
    lambda total: st.integers(0, total).map(lambda errors: wilson(errors, total))
)
verdicts = st.sampled_from(get_args(VerdictStatus)).map(
    lambda status: Verdict(status=status, rule="")
)
calls = st.builds(JudgedCall, call_id=st.just(""), tool=st.sampled_from("abc"), verdict=verdicts)
sessions = st.lists(
    st.builds(
        JudgedSession,
        id=st.integers(0, 40).map(lambda n: SessionId(str(n))),
        source=st.just("test"),
        model=st.just(""),
        messages=st.just(0),
        tags=st.just(()),
        calls=st.lists(calls, max_size=12).map(tuple),
    ),
    max_size=24,
)


def is_sound(difference: Difference) -> bool:
    """Return whether the difference is known and ordered, or unknown with a reason."""
    if difference.low is None or difference.high is None:
        return difference.low is difference.high and difference.note != ""
    assert difference.estimate is not None
    return -1 <= difference.low <= difference.estimate <= difference.high <= 1


@settings(deadline=None)
@given(rates, rates)
def test_swapping_the_sides_reverses_the_sign(first: Rate, second: Rate) -> None:
    difference, swapped = newcombe(first, second), newcombe(second, first)
    assert is_sound(difference)
    assert difference.low is not None
    assert swapped.high is not None
    assert difference.low == pytest.approx(-swapped.high, abs=1e-12)


@settings(deadline=None)
@given(rates, rates)
def test_single_stratum_equals_the_plain_difference(first: Rate, second: Rate) -> None:
    stratum = (first.errors, first.total, second.errors, second.total)
    plain = newcombe(first, second).estimate
    assert mantel_haenszel([stratum]) == pytest.approx(plain, abs=1e-12)
    assert mantel_haenszel([stratum] * 3) == pytest.approx(plain, abs=1e-12)


@settings(deadline=None)
@given(sessions, sessions)
def test_any_two_sets_can_be_compared(warm: list[JudgedSession], cold: list[JudgedSession]) -> None:
    found = compare(warm, cold)
    swapped = compare(cold, warm)
    opposite = {"better": "worse", "worse": "better", "undecided": "undecided"}
    assert swapped.verdict == opposite[found.verdict]
    assert is_sound(found.difference)
    assert b"NaN" not in msgspec.json.encode(found)


@settings(deadline=None)
@given(sessions, st.sampled_from([0.2, 0.5]))
def test_learning_curve_of_any_sessions(drawn_sessions: list[JudgedSession], share: float) -> None:
    found = learning(drawn_sessions, share=share)
    assert found.early.total == found.late.total
    assert is_sound(found.stratified)
    assert b"NaN" not in msgspec.json.encode(found)


@dataclass(frozen=True)
class Simulation:
    """Number of runs, and limits that a method with 5 % errors exceeds once in 270 times. A broken
    method has 20 % errors or more.
    """

    runs: int
    most_errors: float
    least_coverage: float


SIMULATIONS = [
    pytest.param(Simulation(150, 0.107, 0.893), id="few"),
    pytest.param(Simulation(400, 0.08, 0.92), id="many", marks=pytest.mark.soak),
]
LESSONS = [
    pytest.param(Simulation(100, 0.12, 0.88), id="few"),
    pytest.param(Simulation(200, 0.095, 0.9), id="many", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("simulation", SIMULATIONS)
@table("setting", SETS[:4], ids=lambda setting: f"{setting.sessions}")
def test_false_positive_rate_for_equal_sets(setting: Sets, simulation: Simulation) -> None:
    found = list(comparisons(setting, simulation.runs, np.random.default_rng(3)))
    assert np.mean([one.verdict != "undecided" for one in found]) <= simulation.most_errors
    assert np.mean([independent(one).decided for one in found]) > 0.15


@pytest.mark.parametrize("simulation", SIMULATIONS)
def test_false_positive_rate_for_equal_single_sessions(
    simulation: Simulation,
) -> None:
    found = list(single_sessions(60, 0.2, simulation.runs, np.random.default_rng(4)))
    assert np.mean([one.verdict != "undecided" for one in found]) <= simulation.most_errors


@pytest.mark.parametrize("simulation", SIMULATIONS)
@table("setting", SETS[4:], ids=lambda setting: f"{setting.sessions}")
def test_interval_between_sets_covers_the_true_difference(
    setting: Sets, simulation: Simulation
) -> None:
    drawn = comparisons(setting, simulation.runs, np.random.default_rng(5))
    found = [one.difference for one in drawn]
    assert answered(found) > 0.9
    assert coverage(found, setting.rates[0] - setting.rates[1]) >= simulation.least_coverage


@pytest.mark.parametrize("simulation", LESSONS)
@table("agent", AGENTS[1:4], ids=lambda agent: agent.name)
def test_learning_intervals_cover_the_true_difference(agent: Agent, simulation: Simulation) -> None:
    found = list(lessons(agent, simulation.runs, np.random.default_rng(6)))
    assert answered([one.stratified for one in found]) > 0.9
    assert coverage([one.stratified for one in found], agent.change) >= simulation.least_coverage
