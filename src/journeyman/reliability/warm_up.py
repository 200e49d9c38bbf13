"""How sessions get going: the error rate over their first turns, the calls and the time until the
first success.
"""

from collections.abc import Iterable, Sequence
from math import log
from statistics import median

import numpy as np
from msgspec import Struct

from journeyman.records.verdict import JudgedCall, JudgedSession
from journeyman.reliability.clusters import counts_of, distinct, rate_over_sessions
from journeyman.reliability.rates import CONFIDENCE, Rate

FIRST_TURNS = 30
"""A turn is one answer of the model."""


class Median(Struct, frozen=True, kw_only=True):
    """The median over sessions. The interval is between two sessions' values (order statistics),
    whatever their distribution; it needs six sessions.
    """

    estimate: float | None
    low: float | None
    high: float | None
    sessions: int
    method: str = "median over sessions, 95 % by order statistics"


class WarmUp(Struct, frozen=True, kw_only=True):
    """The beginning of sessions. `first_turns` is the error rate over the first `turns` answers of
    the model. The first success is the first counted call that is not an error: `calls` counts up
    to it and includes it, `seconds` run from the start of the session. Sessions without a success
    have no such values; `without_success` counts them.
    """

    turns: int
    first_turns: Rate
    calls: Median
    seconds: Median
    without_success: int


def warm_up(sessions: Sequence[JudgedSession]) -> WarmUp:
    """Describe the beginning of these sessions. Only sessions with counted calls have one."""
    calls: list[float] = []
    seconds: list[float] = []
    without_success = 0
    used = [session for session in distinct(sessions) if _counted(session)]
    for session in used:
        counted = _counted(session)
        at = next((at for at, call in enumerate(counted) if not call.verdict.is_error), None)
        if at is None:
            without_success += 1
            continue
        calls.append(at + 1)
        ended, started = counted[at].at, session.started_at
        if ended is not None and started is not None and ended >= started:
            seconds.append(ended - started)
    return WarmUp(
        turns=FIRST_TURNS,
        first_turns=rate_over_sessions(counts_of(map(first_calls, used))),
        calls=median_over_sessions(calls),
        seconds=median_over_sessions(seconds),
        without_success=without_success,
    )


def first_calls(session: JudgedSession) -> list[JudgedCall]:
    """Return the calls of the first turns."""
    return [call for call in session.calls if 0 < call.turn <= FIRST_TURNS]


def median_over_sessions(values: Iterable[float]) -> Median:
    """Return the median of one value for each session."""
    ordered = sorted(values)
    count = len(ordered)
    if not ordered:
        return Median(estimate=None, low=None, high=None, sessions=0)
    # The number of values below the interval, which is also the number above it.
    below = np.arange(1, count // 2)
    chances = np.cumsum(np.log((count - below + 1) / below)) - count * log(2)
    tails = np.cumsum(np.exp(np.append(-count * log(2), chances)))
    outside = int((tails <= (1 - CONFIDENCE) / 2).sum())
    return Median(
        estimate=float(median(ordered)),
        low=float(ordered[outside - 1]) if outside else None,
        high=float(ordered[count - outside]) if outside else None,
        sessions=count,
    )


def _counted(session: JudgedSession) -> list[JudgedCall]:
    return [call for call in session.calls if call.verdict.counts]
