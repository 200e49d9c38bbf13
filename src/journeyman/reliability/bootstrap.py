"""The bootstrap over sessions: a difference inside sessions, its spread found by drawing whole
sessions again and again. What is compared with what, the caller decides; two separate sets of
sessions are compared in `clusters`.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from journeyman.reliability.clusters import shortage, t_quantile, too_few
from journeyman.reliability.differences import Difference, mantel_haenszel

DRAWS = 2_000
SEED = 20_250_101
"""Any number would do; a fixed one makes the same sessions give the same interval."""

MOST_GROUPS = 2_000
"""With more sessions than this, sessions are drawn in random groups of equal size, which are
independent of each other too. It bounds memory and time."""

_CELLS = 1_000_000
_MOST_UNDEFINED = 0.1

SessionTable = Mapping[str, tuple[int, int, int, int]]
"""What one session adds to each stratum: errors and calls of the first side, then of the second."""


# The interval is the estimate, give or take the spread of the draws times Student's quantile, with
# one degree of freedom for each session with an error but the first: sessions without any show
# little of how errors spread. Coverage / width in points of 2,000 simulations each, where 95 is
# aimed at; sessions, what is compared, error rates, correlation in a session:
#
#                             15, halves  25, halves  40, fifths  10, fifths  60, fifths
#                             10, 2 % .2  10, 2 % .3  5, 1 % .2   4 tools .2  30 tools .3
#   percentiles of the draws  88.0 / 16   91.3 / 18   91.3 / 9    89.1 / 20   93.7 / 18
#     widened by Student's t  91.4 / 18   92.5 / 19   92.2 / 9    92.9 / 24   94.5 / 18
#   spread, t by sessions     91.8 / 19   91.9 / 20   93.1 / 9    95.4 / 25   94.9 / 18
#   jackknife, t by sessions  92.1 / 19   92.0 / 21   93.1 / 9    95.0 / 25   95.3 / 19
#   this one                  94.4 / 21   94.3 / 23   96.6 / 10   97.1 / 28   95.2 / 19
def bootstrap_difference(
    sessions: Sequence[SessionTable],
    *,
    method: str,
    having: str = "calls",
    draws: int = DRAWS,
    seed: int = SEED,
) -> Difference:
    """The first rate minus the second, compared inside each stratum (Mantel-Haenszel) and with
    sessions as the unit. With a single stratum it is the plain difference of the two rates. The
    note calls the sessions those `having` something.
    """
    used = [table for table in sessions if any(row[1] or row[3] for row in table.values())]
    if not used:
        return _unknown(None, method, too_few(0, having=having))
    random = np.random.default_rng(seed)
    groups = _grouped(used, random)
    observed = float(mantel_haenszel(groups.sum(axis=0)))
    if np.isnan(observed):
        return _unknown(None, method, "not enough data: no tool has calls on both sides")
    totals = np.array([_totals(table) for table in used])
    missing = too_few(len(used), having=having) or shortage(totals)
    if missing:
        return _unknown(observed, method, missing)
    drawn = _drawn(groups, draws, random)
    known = drawn[~np.isnan(drawn)]
    if len(known) < (1 - _MOST_UNDEFINED) * draws:
        few = "not enough data: too few sessions have calls of the same tool on both sides"
        return _unknown(observed, method, few)
    spread = float(known.std()) * sqrt(len(groups) / (len(groups) - 1))
    if spread < 1e-12:
        return _unknown(observed, method, "not enough data: all sessions are alike")
    telling = min((totals[:, 0] > 0).sum(), (totals[:, 0] < totals[:, 1]).sum())
    reach = t_quantile(int(telling) - 1) * spread
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


def _grouped(sessions: Sequence[SessionTable], random: np.random.Generator) -> NDArray[np.float64]:
    """The sessions as an array of groups, strata and four counts."""
    strata = {name: None for table in sessions for name in table}
    places = {name: place for place, name in enumerate(strata)}
    number = min(len(sessions), MOST_GROUPS)
    group = random.permutation(len(sessions)) % number
    counts = np.zeros((number, len(strata), 4))
    rows = [row for table in sessions for row in table.values()]
    where = (
        np.repeat(group, [len(table) for table in sessions]),
        np.array([places[name] for table in sessions for name in table]),
    )
    np.add.at(counts, where, np.array(rows, dtype=np.float64))
    return counts


def _drawn(
    counts: NDArray[np.float64], draws: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """The difference in each draw, a block of draws at a time."""
    number = len(counts)
    flat = counts.reshape(number, -1)
    step = max(1, _CELLS // max(flat.shape))
    blocks = []
    for start in range(0, draws, step):
        size = min(step, draws - start)
        picks = random.integers(0, number, size=(size, number))
        picks += np.arange(size)[:, None] * number
        times = np.bincount(picks.ravel(), minlength=size * number).reshape(size, number)
        sums = times.astype(np.float64) @ flat
        blocks.append(mantel_haenszel(sums.reshape(size, *counts.shape[1:])))
    return np.concatenate(blocks)
