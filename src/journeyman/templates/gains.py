"""The gain behind a template: by how much errors fell in the sessions that it was built from."""

from collections.abc import Sequence

from journeyman.records import Gain, JudgedSession
from journeyman.reliability.learning import learning


def gain_of(judged: Sequence[JudgedSession]) -> Gain:
    """Late against early calls of these sessions, tool by tool; positive is better."""
    found = learning(judged)
    late, early = found.stratified, found.early
    turned = {
        "estimate": None if late.estimate is None else -late.estimate,
        "low": None if late.high is None else -late.high,
        "high": None if late.low is None else -late.low,
    }
    return Gain(**turned, calls=early.total + found.late.total, method=late.method)
