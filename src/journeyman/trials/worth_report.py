"""The measurement of what facts are worth, as records: means over sessions with their intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from journeyman.experience.moments import Moment
from journeyman.records.fact import FactKind

_RESAMPLES, _SEED = 2_000, 20_260_101


class Interval(Struct, frozen=True, kw_only=True):
    """A mean over sessions with its 95 % interval, from resampling sessions; `of` counts them."""

    estimate: float
    low: float
    high: float
    of: int


class Arm(Struct, frozen=True, kw_only=True):
    """What one way of telling achieves per session: calls made needless, facts not used, the one
    minus the other, and tokens.
    """

    name: str
    needless: Interval
    unused: Interval
    net: Interval
    tokens: float


class KindWorth(Struct, frozen=True, kw_only=True):
    """What one kind of fact achieved, in all sessions together, and at which moment."""

    kind: FactKind
    moment: Moment
    told: int
    used: int
    needless: int


class Worth(Struct, frozen=True, kw_only=True):
    """The measurement of one project. `ceiling` is what could have been made needless at the most:
    searches before a file was found, and calls that failed for a lasting reason, per session.
    `alarms` are the unrelated requests that would now be told something, with what.
    """

    project: str
    sessions: int
    ceiling: Interval
    arms: tuple[Arm, ...]
    kinds: tuple[KindWorth, ...]
    start_tokens: int
    alarms: tuple[tuple[str, str], ...] = ()


class Score(NamedTuple):
    """What one way of telling achieved in one session."""

    needless: int
    unused: int
    tokens: int


def arm_of(name: str, scores: Sequence[Score]) -> Arm:
    return Arm(
        name=name,
        needless=interval_of([score.needless for score in scores]),
        unused=interval_of([score.unused for score in scores]),
        net=interval_of([score.needless - score.unused for score in scores]),
        tokens=sum(score.tokens for score in scores) / max(len(scores), 1),
    )


def interval_of(values: Sequence[float]) -> Interval:
    """Return the mean of values with the interval in which 95 % of resampled means lie."""
    if not values:
        return Interval(estimate=0.0, low=0.0, high=0.0, of=0)
    found = np.array(values, dtype=np.float64)
    chance = np.random.default_rng(_SEED)
    means = found[chance.integers(len(found), size=(_RESAMPLES, len(found)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(estimate=float(found.mean()), low=float(low), high=float(high), of=len(found))
