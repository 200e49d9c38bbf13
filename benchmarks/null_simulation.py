"""How often the statistics are wrong when the truth is known, compared with treating calls as
independent.

Sessions are simulated: each has its own error rates (beta distributed, so that calls within one
session are correlated), lengths from 3 to 60 calls, and, for learning, tools used early or late.
The output is the share of false alarms where warm and cold are the same, and the share of intervals
that contain the truth. Run: python benchmarks/null_simulation.py [--runs 2000]
"""

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from scipy.special import betaincinv

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.comparison import Comparison, compare
from journeyman.reliability.learning_curve import LearningEffect, learning
from journeyman.reliability.rates import Difference, newcombe, wilson

Random = np.random.Generator


class Sets(Struct, frozen=True):
    """Two sets: sessions and error rates of warm and cold, and the correlation within a session."""

    sessions: tuple[int, int]
    rates: tuple[float, float]
    correlation: float


class Agent(Struct, frozen=True):
    """An agent with these error rates per tool early in a session, and `change` more late in it.
    The mixes state how often each tool is used early and late.
    """

    name: str
    sessions: int
    share: float
    rates: tuple[float, ...]
    early: tuple[float, ...]
    late: tuple[float, ...]
    correlation: float
    change: float


SETS = (
    Sets((10, 10), (0.05, 0.05), 0.3),
    Sets((10, 10), (0.2, 0.2), 0.05),
    Sets((10, 60), (0.1, 0.1), 0.2),
    Sets((60, 60), (0.1, 0.1), 0.15),
    Sets((12, 12), (0.05, 0.15), 0.2),
    Sets((12, 40), (0.2, 0.05), 0.3),
)
READS_FIRST = ((0.02, 0.05, 0.15, 0.3), (0.5, 0.3, 0.15, 0.05), (0.15, 0.2, 0.3, 0.35))
AGENTS = (
    Agent("one tool, no change", 12, 0.5, (0.1,), (1.0,), (1.0,), 0.2, 0.0),
    Agent("one tool, improves", 15, 0.5, (0.1,), (1.0,), (1.0,), 0.2, -0.08),
    Agent("reads first, no change", 20, 0.2, *READS_FIRST, 0.2, 0.0),
    Agent("reads first, gets worse", 40, 0.2, *READS_FIRST, 0.1, 0.05),
    Agent("30 tools, no change", 40, 0.2, (0.1,) * 30, (1 / 30,) * 30, (1 / 30,) * 30, 0.2, 0.0),
)

_OK = Verdict(status="ok", rule="simulated")
_FAILED = Verdict(status="failed", rule="simulated")
_CALLS = {
    (tool, failed): JudgedCall(call_id="", tool=f"tool{tool}", verdict=_FAILED if failed else _OK)
    for tool in range(30)
    for failed in (False, True)
}


def session(name: str, calls: Sequence[tuple[int, bool]]) -> JudgedSession:
    """A judged session from the tool of each call and whether it failed."""
    return JudgedSession(
        id=SessionId(name),
        source="simulated",
        model="",
        messages=0,
        tags=(),
        calls=tuple(_CALLS[call] for call in calls),
    )


def simulated_set(
    number: int, rate: float, correlation: float, random: Random, label: str = ""
) -> list[JudgedSession]:
    """Sessions with one tool and an error rate that varies between sessions."""
    alike = 1 / correlation - 1
    made = []
    for place in range(number):
        failing = random.beta(rate * alike, (1 - rate) * alike)
        failed = random.random(random.integers(3, 61)) < failing
        made.append(session(f"{label}{place}", [(0, bool(one)) for one in failed]))
    return made


def simulated_agent(agent: Agent, random: Random) -> list[JudgedSession]:
    """Sessions of an agent: the success in half a session affects all its tools alike."""
    alike = 1 / agent.correlation - 1
    rates = np.array([agent.rates, np.add(agent.rates, agent.change)])
    mixes = np.cumsum([agent.early, agent.late], axis=1)
    luck = random.random((agent.sessions, 2, 1))
    failing = betaincinv(rates * alike, (1 - rates) * alike, luck)
    made = []
    for place in range(agent.sessions):
        number = int(random.integers(5, 61))
        late = (np.arange(number) >= number / 2).astype(int)
        tools = (random.random(number)[:, None] > mixes[late]).sum(axis=1)
        tools = np.minimum(tools, len(agent.rates) - 1)
        failed = random.random(number) < failing[place, late, tools]
        made.append(session(str(place), list(zip(tools.tolist(), failed.tolist(), strict=True))))
    return made


def comparisons(setting: Sets, runs: int, random: Random) -> Iterator[Comparison]:
    for _ in range(runs):
        warm, cold = (
            simulated_set(number, rate, setting.correlation, random, label)
            for number, rate, label in zip(setting.sessions, setting.rates, "wc", strict=True)
        )
        yield compare(warm, cold)


def single_sessions(calls: int, rate: float, runs: int, random: Random) -> Iterator[Comparison]:
    """Two single sessions with independent calls."""
    for _ in range(runs):
        warm, cold = (
            session(label, [(0, bool(one)) for one in random.random(calls) < rate])
            for label in "wc"
        )
        yield compare([warm], [cold])


def lessons(agent: Agent, runs: int, random: Random) -> Iterator[LearningEffect]:
    for _ in range(runs):
        yield learning(simulated_agent(agent, random), share=agent.share)


def coverage(found: Sequence[Difference], truth: float) -> float:
    """The share of the known intervals that contain the truth."""
    known = [(one.low, one.high) for one in found if one.low is not None and one.high is not None]
    return float(np.mean([low <= truth <= high for low, high in known])) if known else 0.0


def answered(found: Sequence[Difference]) -> float:
    return float(np.mean([one.low is not None for one in found]))


def independent(one: Comparison) -> Difference:
    """The interval that treats calls as independent."""
    warm, cold = (wilson(side.rate.errors, side.rate.total) for side in (one.warm, one.cold))
    return newcombe(warm, cold)


def show_comparisons(runs: int, random: Random) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    print("compare, sets            answered  coverage  false alarms | calls independent: the same")
    for setting in SETS:
        found = list(comparisons(setting, runs, random))
        intervals = [one.difference for one in found]
        naive = [independent(one) for one in found]
        truth = setting.rates[0] - setting.rates[1]
        alarms = float(np.mean([one.verdict != "undecided" for one in found]))
        naive_alarms = float(np.mean([one.decided for one in naive]))
        shown = (f"{alarms:7.1%}", f"{naive_alarms:7.1%}") if truth == 0 else ("      -",) * 2
        if truth == 0:
            ours.append(alarms)
            theirs.append(naive_alarms)
        sizes, rates = setting.sessions, setting.rates
        name = (
            f"{sizes[0]:2}:{sizes[1]:2} {rates[0]:4.0%}:{rates[1]:3.0%} corr. {setting.correlation}"
        )
        print(
            f"{name:27} {answered(intervals):5.0%}   {coverage(intervals, truth):7.1%}   {shown[0]}"
            f"      | {coverage(naive, truth):7.1%} {shown[1]}",
            flush=True,
        )
    print("compare, single sessions                     false alarms")
    for calls, rate in ((30, 0.1), (100, 0.1), (100, 0.3)):
        found = list(single_sessions(calls, rate, runs, random))
        alarms = float(np.mean([one.verdict != "undecided" for one in found]))
        name = f"{calls} calls each, {rate:.0%} errors"
        print(f"{name:47} {alarms:7.1%}", flush=True)
    return ours, theirs


def show_learning(runs: int, random: Random) -> None:
    print("learning                 coverage: stratified (answered) | calls independent, all tools")
    for agent in AGENTS:
        found = list(lessons(agent, runs, random))
        # All tools pooled also change with the mix of tools.
        crude = float(np.dot(agent.late, agent.rates) - np.dot(agent.early, agent.rates))
        by_tool = [one.stratified for one in found]
        naive = [newcombe(one.late, one.early) for one in found]
        print(
            f"{agent.name:30} {coverage(by_tool, agent.change):8.1%}   ({answered(by_tool):4.0%})"
            f"        | {coverage(naive, crude + agent.change):7.1%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    random = np.random.default_rng(1)
    ours, theirs = show_comparisons(runs, random)
    show_learning(max(1, runs // 2), random)
    print(f"most false alarms in a setting: {max(ours):.1%}, calls independent {max(theirs):.1%}")
    print(f"false alarms, calls independent / ours: {np.mean(theirs) / np.mean(ours):.1f}")


if __name__ == "__main__":
    main()
