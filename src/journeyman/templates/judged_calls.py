"""The verdicts on a session's calls, as profiles count them and mining uses them."""

from collections.abc import Callable, Sequence

import msgspec

from journeyman.records import (
    Call,
    JudgedCall,
    JudgedSession,
    Message,
    SessionOverview,
    Verdict,
    join_calls,
)
from journeyman.redaction.records import redacted_evidence
from journeyman.templates.mining.own_openings import after_opening, is_own_call_id

Judge = Callable[[Call], Verdict]


def judged_calls(messages: Sequence[Message], judge: Judge) -> tuple[JudgedCall, ...]:
    """The verdicts on an agent's calls. Calls of a simulated user say nothing about the agent, nor
    do those that an opening of ours put before it.
    """
    shown = {message.key for message in messages[: after_opening(messages)]}
    return tuple(
        JudgedCall(
            call_id=call.id,
            tool=call.tool,
            verdict=_shown(judge(call), call.result or ""),
            index=call.index,
            generation=call.generation,
            model=call.model,
        )
        for call in join_calls(messages)
        if call.asked_by == "assistant"
        and call.asked_key not in shown
        and not is_own_call_id(call.id)
    )


def judged_session(overview: SessionOverview, calls: tuple[JudgedCall, ...]) -> JudgedSession:
    """A session with the verdicts on its calls."""
    session = overview.session
    return JudgedSession(
        id=session.id,
        source=session.source,
        model=session.model,
        messages=overview.messages,
        tags=session.tags,
        project=session.project,
        calls=calls,
    )


def _shown(verdict: Verdict, result: str) -> Verdict:
    """The verdict with secrets taken out of its evidence, which reports show, and half characters,
    which no encoding has: a result may spell them as escapes.
    """
    if not verdict.evidence:
        return verdict
    evidence = redacted_evidence(verdict.evidence, result if verdict.is_error else "")
    evidence = evidence.encode("utf-8", "replace").decode()
    return msgspec.structs.replace(verdict, evidence=evidence)
