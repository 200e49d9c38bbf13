"""Which sessions may teach. Experience from failed work makes agents worse, so the gate is strict:
an outcome that somebody outside measured decides; without one, the session must have ended in
order and most of its calls must have worked.
"""

from collections.abc import Sequence
from typing import Literal

from journeyman.records import JudgedSession, Message, Session

SUCCESS = 0.99
"""A reward from which on a session counts as a success: a part of the work is not the work."""

MOST_ERRORS = 0.5

Reason = Literal["", "no calls", "failed", "errors", "no orderly end"]
"""Why a session teaches nothing; empty when it may."""

WHY_NOT = {
    "no calls": "it has no calls",
    "failed": "its outcome is known, and was not a success",
    "errors": "more than half of its calls failed",
    "no orderly end": "it did not end in order",
}
"""Why a session teaches nothing, in words."""

_ORDERLY = frozenset({"submitted", "user_stop", "agent_stop", "compression", "branched"})
_BAD_ENDS = """agent_error too_many_errors max_steps max_turns error failed timeout timed_out
cancelled interrupted limitsexceeded costlimitexceeded exit_cost exit_context exit_error
context_window_exceeded infrastructure_error"""
_DISORDERLY = frozenset(_BAD_ENDS.split())
_BROKEN_OFF = frozenset({"error", "agent_error", "content_filter"})


def why_not(session: Session, messages: Sequence[Message], judged: JudgedSession) -> Reason:
    """Why nothing is learned from a session, or nothing if it may teach."""
    if not judged.calls:
        return "no calls"
    if session.outcome is not None:
        if session.outcome < SUCCESS:
            return "failed"
    elif not _ended_in_order(session, messages):
        return "no orderly end"
    counted = [call.verdict for call in judged.calls if call.verdict.counts]
    errors = sum(verdict.is_error for verdict in counted)
    if counted and errors > MOST_ERRORS * len(counted):
        return "errors"
    return ""


def _ended_in_order(session: Session, messages: Sequence[Message]) -> bool:
    """By the recorder's word where it has one that says something; else the agent must have had
    the last word, without a call left open.
    """
    reason = session.end_reason.casefold()
    if reason in _ORDERLY:
        return True
    if reason in _DISORDERLY:
        return False
    spoken = [one for one in messages if one.role != "system"]
    said = [one for one in spoken if one.kind == "plain"]
    if not said or spoken[-1].text.startswith("[Request interrupted"):
        return False
    last = said[-1]
    return (
        last.role == "assistant"
        and not last.tool_calls
        and last.finish_reason not in _BROKEN_OFF
        and bool(last.text.strip())
    )
