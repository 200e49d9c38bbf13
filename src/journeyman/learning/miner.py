"""Mines a session: its episodes, with the calls that served each request. Only calls that
verifiably worked and that the agent itself made may be examples, and only in episodes that ended
well.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from journeyman.learning.agent_tools import find_arguments
from journeyman.learning.commands import skill_of
from journeyman.learning.episodes import (
    ServedRequest,
    ended_in_error,
    ending_of,
    episode_of,
    hides_failure,
    takes_back_commit,
    why_not_learned,
)
from journeyman.learning.observations import Observer, takes_in
from journeyman.learning.opening_text import opening_length, shows_opening
from journeyman.learning.requests import (
    ServingCall,
    UserRequest,
    is_stub,
    is_truncated,
    requests,
)
from journeyman.learning.safety import TeachingCheck
from journeyman.learning.slots import Location
from journeyman.outcomes.commands import command_of
from journeyman.records import (
    Call,
    JudgedSession,
    Message,
    MinedSession,
    Session,
    Verdict,
    join_calls,
)

_LONGEST_ARGUMENTS = 2_000
"""A longer call fits no opening, and a truncated one must not be imitated."""

_SEARCHED = 100_000
"""How many characters of a result are searched for openings."""

_OWN_SERVER = re.compile(r"(?:mcp_{1,2})?journeyman[_.:/]+\w+", re.IGNORECASE)


def mine(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    *,
    trivial: frozenset[str],
    digest: str = "",
    forgotten: frozenset[int] = frozenset(),
) -> MinedSession:
    """Return the episodes of a session. Requests with `forgotten` numbers teach nothing."""
    recorded = session
    last = max(messages, key=lambda message: message.position, default=None)
    if in_error := ended_in_error(session, last):
        session = msgspec.structs.replace(session, outcome=0.0)
    all_served = _served_requests(session, messages, judged, trivial=trivial)
    served = [entry for entry in all_served if entry.request.number not in forgotten]
    reason = why_not_learned(session, len(judged.calls), [entry.ending for entry in served])
    if in_error and reason == "failed":
        reason = "error"
    observer = Observer(Location(session.cwd, session.project).root)
    # What is forgotten teaches nothing, but it happened.
    observed = [(entry, episode_of(session, entry, observer)) for entry in all_served]
    episodes = tuple(
        episode for entry, episode in observed if entry.request.number not in forgotten
    )
    return MinedSession(
        session=session.id,
        digest=digest,
        outcome=recorded.outcome,
        end_reason=session.end_reason,
        reason=reason,
        episodes=episodes,
    )


def _is_of_subagent(session: Session) -> bool:
    """Whether another agent requested the work."""
    return session.lineage is not None and session.lineage.kind == "subagent"


def _served_requests(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    *,
    trivial: frozenset[str],
) -> list[ServedRequest]:
    """Return the requests after an opening, each with the agent's calls for it that may teach."""
    ordered = sorted(messages, key=lambda message: message.position)
    live = ordered[opening_length(messages) :]
    parsed = requests(live)
    under = {message.key: request for message, request in zip(live, parsed.under, strict=True)}
    check, location = TeachingCheck(session.cwd), Location(session.cwd, session.project)
    verdicts = {call.index: call.verdict for call in judged.calls}
    calls: defaultdict[int, list[ServingCall]] = defaultdict(list)
    last: dict[int, UserRequest] = {}
    intake = len(live) + 1
    for call in join_calls(ordered):
        verdict, request = verdicts.get(call.index), under.get(call.asked_key)
        if verdict is None or request is None:
            continue
        if takes_in(call):
            intake = min(intake, request.number)
        if call.tool in trivial or _is_artefact(call):
            continue
        last[request.number] = request
        calls[request.number].append(_serving_call(call, request, verdict, check, location))
    if _is_of_subagent(session):  # its requests are not a person's words
        last = {
            number: msgspec.structs.replace(request, text="", correction="")
            for number, request in last.items()
        }
    numbers = list(calls)
    undone = {
        before
        for before, after in pairwise(numbers)
        if _commits(calls[before]) and takes_back_commit(calls[after])
    }
    return [
        ServedRequest(
            request=last[number],
            calls=serving,
            ending=ending_of(
                session,
                serving,
                rejected=number in parsed.rejected
                or number in undone
                or last[number].is_withdrawal,
                interrupted=number in parsed.interrupted,
            ),
            correction=last[number].correction,
            is_tainted=number >= intake,
        )
        for number, serving in calls.items()
    ]


def _commits(calls: Iterable[ServingCall]) -> bool:
    return any(
        serving.is_ok and "git commit" in command_of(serving.call.arguments) for serving in calls
    )


def _is_artefact(call: Call) -> bool:
    """Whether a call shows nothing of the agent's work: a call of our own server, one with a
    replaced result or truncated arguments, or one that shows an opening.
    """
    result = call.result or ""
    return (
        _OWN_SERVER.fullmatch(call.tool) is not None
        or is_stub(result)
        or is_truncated(call.arguments)
        or shows_opening(call.arguments)
        or shows_opening(result[:_SEARCHED])
    )


def _serving_call(
    call: Call,
    request: UserRequest,
    verdict: Verdict,
    check: TeachingCheck,
    location: Location,
) -> ServingCall:
    is_ok = verdict.status == "ok" and not hides_failure(call)
    is_safe = check.may_teach(call, request.number)
    return ServingCall(
        call=call,
        skill=skill_of(call.tool, call.arguments),
        request=request,
        verdict=verdict,
        is_ok=is_ok,
        is_error=verdict.is_error,
        is_safe=is_safe,
        folder=location.of(call, worked=is_ok),
        is_example=is_ok
        and is_safe
        and len(call.arguments) <= _LONGEST_ARGUMENTS
        and find_arguments(call.arguments) is not None,
    )
