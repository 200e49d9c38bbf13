"""Measures whether an agent improves within its sessions: late calls against early ones. Reads come
early and writes late, so only calls of the same tool are compared. Intervals come from a bootstrap
that resamples whole sessions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from journeyman.records import LateChange
from journeyman.records.verdict import JudgedCall, JudgedSession
from journeyman.reliability.clusters import (
    MIN_SESSIONS,
    distinct,
    session_shortage,
    shortage,
    t_quantile,
)
from journeyman.reliability.rates import (
    Difference,
    Rate,
    change_text,
    interval_text,
    mantel_haenszel,
    shortage_text,
    wilson,
)

DRAWS = 2_000
SEED = 20_250_101
"""An arbitrary fixed seed, so that the same sessions always give the same interval."""

MAX_GROUPS = 2_000
"""With more sessions than this, random groups of equal size are resampled instead, which are also
independent of each other. This bounds memory and time."""

_MAX_UNDEFINED = 0.1

SessionTable = Mapping[str, tuple[int, int, int, int]]
"""Counts of one session by stratum: errors and calls of the first side, then of the second."""


# The interval is the estimate plus or minus the standard deviation of the draws times Student's
# quantile. The degrees of freedom are the sessions with an error (or with a success, if those
# are fewer) minus one, because the others show little about how errors are distributed. In 2,000
# simulations it covered the truth in 94 to 97 of 100, percentiles of the draws in 88 to 94
# (benchmarks/null_simulation.py).
def bootstrap_difference(
    sessions: Sequence[SessionTable],
    *,
    method: str,
    having: str = "calls",
    draws: int = DRAWS,
    seed: int = SEED,
) -> Difference:
    """Return the first rate minus the second, compared within each stratum (Mantel-Haenszel), with
    an interval from resampling sessions. With a single stratum it is the plain difference of the
    two rates. The note describes the sessions as those with `having`.
    """
    used = [table for table in sessions if any(row[1] or row[3] for row in table.values())]
    if not used:
        return _unknown(None, method, session_shortage(0, having=having))
    random = np.random.default_rng(seed)
    groups = _group_counts(used, random)
    observed = float(mantel_haenszel(groups.sum(axis=0)))
    if np.isnan(observed):
        return _unknown(None, method, "not enough data: no tool has calls on both sides")
    totals = np.array([_totals(table) for table in used])
    note = session_shortage(len(used), having=having) or shortage(totals)
    if note:
        return _unknown(observed, method, note)
    drawn = _drawn_differences(groups, draws, random)
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < (1 - _MAX_UNDEFINED) * draws:
        note = "not enough data: too few sessions have calls of the same tool on both sides"
        return _unknown(observed, method, note)
    spread = float(defined.std()) * sqrt(len(groups) / (len(groups) - 1))
    if spread < 1e-12:
        return _unknown(observed, method, "not enough data: all sessions are alike")
    informative = min((totals[:, 0] > 0).sum(), (totals[:, 0] < totals[:, 1]).sum())
    reach = t_quantile(int(informative) - 1) * spread
    return Difference(
        estimate=observed,
        low=max(-1.0, observed - reach),
        high=min(1.0, observed + reach),
        method=method,
    )


def _unknown(estimate: float | None, method: str, note: str) -> Difference:
    return Difference(estimate=estimate, low=None, high=None, method=method, note=note)


def _totals(table: SessionTable) -> tuple[int, int]:
    rows = table.values()
    return sum(row[0] + row[2] for row in rows), sum(row[1] + row[3] for row in rows)


def _group_counts(
    sessions: Sequence[SessionTable], random: np.random.Generator
) -> NDArray[np.float64]:
    """Return the sessions as an array with the axes groups, strata and four counts."""
    strata = {name: None for table in sessions for name in table}
    places = {name: place for place, name in enumerate(strata)}
    number = min(len(sessions), MAX_GROUPS)
    group = random.permutation(len(sessions)) % number
    counts = np.zeros((number, len(strata), 4))
    rows = [row for table in sessions for row in table.values()]
    where = (
        np.repeat(group, [len(table) for table in sessions]),
        np.array([places[name] for table in sessions for name in table]),
    )
    np.add.at(counts, where, np.array(rows, dtype=np.float64))
    return counts


def _drawn_differences(
    counts: NDArray[np.float64], draws: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Return the difference in each draw."""
    number = len(counts)
    picks = random.integers(0, number, size=(draws, number))
    picks += np.arange(draws)[:, None] * number
    times = np.bincount(picks.ravel(), minlength=draws * number).reshape(draws, number)
    sums = times.astype(np.float64) @ counts.reshape(number, -1)
    return mantel_haenszel(sums.reshape(draws, *counts.shape[1:]))


SHARE = 0.2
MIN_CALLS = 5
"""A session with fewer counted calls has no early and no late part."""

_LONG_ENOUGH = f"at least {MIN_CALLS} counted calls"
_BY_TOOL = "Mantel-Haenszel by tool, bootstrap over sessions 95 %"


class LearningEffect(Struct, frozen=True, kw_only=True):
    """Early against late calls, in the sessions that have both. The difference is late minus early
    for the same tools: negative is improvement. The two rates are those of all tools together.
    """

    sessions: int
    early: Rate
    late: Rate
    stratified: Difference
    reading: str


def learning(
    sessions: Sequence[JudgedSession], *, share: float = SHARE, seed: int = SEED
) -> LearningEffect:
    """Compare late calls with early ones, each `share` of a session (0.5 for halves)."""
    counted = [
        [call for call in session.calls if call.verdict.counts] for session in distinct(sessions)
    ]
    parts = [
        table_by_tool(_late_and_early(calls, share)) for calls in counted if len(calls) >= MIN_CALLS
    ]
    late, early = _rates(parts)
    both = "calls of a tool that is used early and late"
    having = both if len(parts) >= MIN_SESSIONS else _LONG_ENOUGH
    stratified = bootstrap_difference(
        tools_on_both_sides(parts), method=_BY_TOOL, having=having, seed=seed
    )
    return LearningEffect(
        sessions=len(parts),
        early=early,
        late=late,
        stratified=stratified,
        reading=_reading(early, late, stratified),
    )


def _late_and_early(calls: Sequence[JudgedCall], share: float) -> Iterator[tuple[JudgedCall, bool]]:
    """Yield the late calls, marked True, and the early ones."""
    size = min(max(1, round(share * len(calls))), len(calls) // 2)
    yield from ((call, True) for call in calls[-size:])
    yield from ((call, False) for call in calls[:size])


def table_by_tool(marked: Iterable[tuple[JudgedCall, bool]]) -> SessionTable:
    """Count the calls of one session by tool; those marked True are on the first side."""
    errors: Counter[tuple[str, bool]] = Counter()
    calls: Counter[tuple[str, bool]] = Counter()
    for call, is_first_side in marked:
        calls[call.tool, is_first_side] += 1
        errors[call.tool, is_first_side] += call.verdict.is_error
    return {
        tool: (errors[tool, True], calls[tool, True], errors[tool, False], calls[tool, False])
        for tool in dict.fromkeys(tool for tool, _ in calls)
    }


def tools_on_both_sides(tables: Sequence[SessionTable]) -> list[SessionTable]:
    """Return the tables with only the tools that have calls on both sides, in any session."""
    sides = [{tool for table in tables for tool in table if table[tool][at]} for at in (1, 3)]
    both = sides[0] & sides[1]
    filtered = ({tool: row for tool, row in table.items() if tool in both} for table in tables)
    return [table for table in filtered if table]


def _rates(tables: Sequence[SessionTable]) -> tuple[Rate, Rate]:
    rows = [row for table in tables for row in table.values()]
    first, second = (
        wilson(sum(row[at] for row in rows), sum(row[at + 1] for row in rows)) for at in (0, 2)
    )
    return first, second


def _reading(early: Rate, late: Rate, stratified: Difference) -> str:
    reading = _stratified_reading(stratified)
    if early.estimate is None or late.estimate is None or stratified.estimate is None:
        return reading
    crude = late.estimate - early.estimate
    if crude * stratified.estimate < 0:
        reading += (
            f" All tools pooled point the other way ({change_text(crude)} late), because"
            " different tools are used late than early; do not rely on that figure."
        )
    return reading


def _stratified_reading(stratified: Difference) -> str:
    if stratified.estimate is None or stratified.low is None:
        shortage = shortage_text(stratified.note)
        return f"Not enough data to say whether the agent improves within a session: {shortage}."
    change = f"with the same tools, {late_change_text(stratified)}"
    if not stratified.decided:
        return f"No significant change within a session: {change}, which may be due to chance."
    verb = "improves" if stratified.estimate < 0 else "gets worse"
    return f"The agent {verb} within a session: {change}."


def late_change_text(difference: Difference | LateChange) -> str:
    """Word the difference between late and early calls."""
    if difference.estimate is None:
        return "late calls cannot be compared with early ones"
    text = f"late calls have {change_text(difference.estimate, than='early ones')}"
    interval = interval_text(difference)
    return f"{text} (95 % interval: {interval})" if interval else text
