"""Which sessions and episodes may teach. Experience from failed work makes agents worse, so the
gate is strict: an outcome that somebody outside measured decides; without one, what an episode did
last must have worked, most of its calls must have worked, and nobody may have rejected it. How the
session ended does not matter.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from journeyman.records import Ending, Session, Verdict

SUCCESS = 0.99
"""A reward from which on a session counts as a success: a part of the work is not the work."""

MOST_ERRORS = 0.5

Reason = Literal["", "no calls", "failed", "nothing ended well"]
"""Why a session teaches nothing; empty when it may."""

WHY_NOT = {
    "no calls": "it has no calls",
    "failed": "its outcome is known, and was not a success",
    "nothing ended well": "nothing in it ended well: calls failed, or the person rejected the work",
    "forgotten": "you had it forgotten (`journeyman forget --list`)",
}
"""Why a session teaches nothing, in words."""


def why_not(session: Session, calls: int, endings: Iterable[Ending]) -> Reason:
    """Why nothing is learned from a session, or nothing if it may teach."""
    if not calls:
        return "no calls"
    if session.outcome is not None and session.outcome < SUCCESS:
        return "failed"
    return "" if "well" in endings else "nothing ended well"


def ending_of(
    session: Session, verdicts: Sequence[Verdict], *, rejected: bool, interrupted: bool
) -> Ending:
    """How an episode with these verdicts on its calls, in order, ended."""
    if rejected:
        return "rejected"
    if session.outcome is not None:
        return "well" if session.outcome >= SUCCESS else "failed"
    if interrupted:
        return "interrupted"
    counted = [verdict for verdict in verdicts if verdict.counts]
    if not counted:
        return "unknown"
    errors = sum(verdict.is_error for verdict in counted)
    if counted[-1].is_error or errors > MOST_ERRORS * len(counted):
        return "failed"
    return "well"
