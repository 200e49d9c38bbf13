"""Rates and differences over sessions as clusters. Calls within one session are correlated, so a
hundred calls in one session carry less information than a hundred in fifty. This module estimates
the correlation, widens intervals accordingly, and states when there is not enough data.
"""

from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from journeyman.records.verdict import JudgedCall, JudgedSession
from journeyman.reliability.rates import CONFIDENCE, Difference, Rate, newcombe, wilson

MIN_SESSIONS = 8
"""Sessions with calls that an interval over sessions needs (per side, if it compares two sides)."""

MIN_INFORMATIVE_SESSIONS = 5
"""Sessions with an error, and sessions with a successful call, that it needs in total. With fewer,
the data do not show how errors are distributed over sessions."""

Counts = NDArray[np.int64]
"""One row per session: its errors and its counted calls."""


class Contrast(Struct, frozen=True, kw_only=True):
    """Two rates and the first minus the second."""

    first: Rate
    second: Rate
    difference: Difference


def distinct(sessions: Sequence[JudgedSession]) -> list[JudgedSession]:
    """Return each session once: the same calls passed twice are not twice the evidence."""
    return list({session.id: session for session in sessions}.values())


def t_quantile(degrees: int) -> float:
    """Return Student's t quantile for a two-sided interval, by the Cornish-Fisher expansion around
    the normal quantile; with four degrees of freedom or more it is exact to three digits.
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return float(sum(term / degrees**power for power, term in enumerate(terms)))


def shortage(counts: Counts) -> str:
    """State what is missing for an interval over sessions; empty if there is enough data."""
    failing = int((counts[:, 0] > 0).sum())
    succeeding = int((counts[:, 0] < counts[:, 1]).sum())
    for number, having in ((failing, "errors"), (succeeding, "successful calls")):
        if number < MIN_INFORMATIVE_SESSIONS:
            sessions = f"{_sessions(number)} with {having}"
            return f"not enough data: {sessions}; {MIN_INFORMATIVE_SESSIONS} are needed"
    return ""


def session_shortage(sessions: int, *, which: str = "", having: str = "calls") -> str:
    """State that there are not enough sessions; empty if there are."""
    if sessions >= MIN_SESSIONS:
        return ""
    available = f"{_sessions(sessions, which)} with {having}"
    return f"not enough data: {available}; {MIN_SESSIONS} are needed"


def _sessions(count: int, which: str = "") -> str:
    return f"{count} {which} ".replace("  ", " ") + ("session" if count == 1 else "sessions")


def correlation(*sets: Counts) -> float:
    """Return the correlation of calls within one session, from 0 (independent) to 1 (identical):
    the variation between sessions beyond that of independent calls, relative to its maximum.
    """
    excess = maximum = 0.0
    for counts in sets:
        errors, calls = counts[:, 0], counts[:, 1]
        total = int(calls.sum())
        share = errors.sum() / total
        variation = ((errors - share * calls) ** 2).sum() * len(counts) / (len(counts) - 1)
        excess += variation - share * (1 - share) * total
        maximum += share * (1 - share) * ((calls**2).sum() - total)
    return float(np.clip(excess / maximum, 0.0, 1.0)) if maximum > 0 else 0.0


def counts_of(sessions: Iterable[Iterable[JudgedCall]]) -> Counts:
    """Return errors and counted calls, one row for each session that has counted calls."""
    counted = ([c.verdict.is_error for c in calls if c.verdict.counts] for calls in sessions)
    rows = [(sum(errors), len(errors)) for errors in counted if errors]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def rate_over_sessions(counts: Counts) -> Rate:
    """Return the error rate over many sessions, with an interval that accounts for the correlation
    of calls within one session. With fewer than `MIN_SESSIONS` the correlation cannot be estimated,
    and calls are treated as independent.
    """
    if len(counts) < MIN_SESSIONS:
        return wilson(*_sums(counts))
    effect = _design_effect(counts, correlation(counts))
    return _clustered_rate(counts, effect, t_quantile(len(counts) - 1))


def _clustered_rate(counts: Counts, effect: float, quantile: float) -> Rate:
    method = "Wilson 95 %, by session"
    return wilson(*_sums(counts), design_effect=effect, quantile=quantile, method=method)


# Newcombe's interval on the effective number of calls, because resampling sessions does not reach
# its nominal coverage for two sets: in 2,000 simulated comparisons of beta-binomial sessions,
# percentiles of a bootstrap covered the truth in 79 to 91 of 100, calls taken as independent in 40
# to 74, this in 96 to 99 (benchmarks/null_simulation.py). With the other methods, a small set that
# happens to have few errors gets too narrow an interval. Here the correlation of a set is that of
# both sets together, or its own if that is higher.
def contrast_sets(first: Counts, second: Counts, names: tuple[str, str]) -> Contrast:
    """Return the difference between two sets of sessions, whose names the note uses."""
    method = "Newcombe 95 %, by session"
    note = (
        session_shortage(len(first), which=names[0])
        or session_shortage(len(second), which=names[1])
        or shortage(np.concatenate([first, second]))
    )
    if note:
        plain = contrast_sessions(first, second)
        estimate = plain.difference.estimate
        difference = Difference(estimate=estimate, low=None, high=None, method=method, note=note)
        return replace(plain, difference=difference)
    quantile = t_quantile(min(len(first), len(second)) - 1)
    pooled = correlation(first, second)
    rates = [
        _clustered_rate(counts, _design_effect(counts, max(pooled, correlation(counts))), quantile)
        for counts in (first, second)
    ]
    difference = newcombe(*rates, method=method)
    return Contrast(first=rates[0], second=rates[1], difference=difference)


def contrast_sessions(first: Counts, second: Counts) -> Contrast:
    """Return the difference between two single sessions. It applies to these two only, so their
    calls are treated as independent.
    """
    rates = wilson(*_sums(first)), wilson(*_sums(second))
    return Contrast(first=rates[0], second=rates[1], difference=newcombe(*rates))


def _design_effect(counts: Counts, within_correlation: float) -> float:
    calls = counts[:, 1]
    return float(1 + ((calls**2).sum() / calls.sum() - 1) * within_correlation)


def _sums(counts: Counts) -> tuple[int, int]:
    return int(counts[:, 0].sum()), int(counts[:, 1].sum())
