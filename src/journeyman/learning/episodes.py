"""Mines a session: its episodes, each a request with the calls that served it, how it ended, and
what it shows about its project. Only calls that verifiably worked and that the agent itself made
may be examples, and only in episodes that ended well.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Literal

from msgspec.structs import replace

from journeyman.learning.agent_tools import KNOWN_TOOLS, find_arguments, parse_arguments
from journeyman.learning.commands import Command, check_kind, is_plain, skill_of
from journeyman.learning.observations import observed, takes_in, written_names
from journeyman.learning.opening_text import opening_length, shows_opening
from journeyman.learning.requests import (
    UserRequest,
    is_stub,
    is_truncated,
    requests,
    without_reminders,
)
from journeyman.learning.safety import why_unsafe
from journeyman.learning.sanitizer import cleaned
from journeyman.learning.slots import CHANGES, Location, ServingCall
from journeyman.records import (
    Call,
    Ending,
    Episode,
    JudgedCall,
    Message,
    MinedSession,
    Session,
    Step,
    join_calls,
)
from journeyman.text.strict_json import canonical_json

SUCCESS = 0.99
"""The lowest reward of a successful session: partial work does not count."""

MOST_ERRORS = 0.5

Reason = Literal["", "no calls", "failed", "error", "nothing ended well"]
"""Why a session teaches nothing; empty if it may teach."""

NOT_LEARNED_REASONS = {
    "no calls": "it has no calls",
    "failed": "its outcome is known, and was not a success",
    "error": "its recorder ended it with an error",
    "nothing ended well": "nothing in it ended well: calls failed, or the person rejected the work",
    "forgotten": "it was forgotten on request (`journeyman forget --list`)",
}
"""Why a session teaches nothing, in words."""

_ENDED_IN_ERROR = re.compile(r"(?!.*abort).*(?:error|fail|crash|exception|fatal)", re.IGNORECASE)
_ERROR_FINISHES = ("error", "agent_error", "content_filter")

_MOST_STEPS = 6
_LONGEST_ARGUMENTS = 2_000
"""A longer call fits no opening, and a truncated one must not be imitated."""

_SEARCHED = 100_000
"""How many characters of a result are searched for openings."""

_SAID = frozenset(("description", "explanation", "justification"))
"""Arguments in which agents explain their calls."""

_OWN_SERVER = re.compile(r"(?:mcp_{1,2})?journeyman[_.:/]+\w+", re.IGNORECASE)
_TAKES_BACK = re.compile(r"git revert\b|git reset\b.* (?:--hard|--soft|HEAD[~^])")


def mine(
    session: Session,
    messages: Sequence[Message],
    judged: Sequence[JudgedCall],
    *,
    trivial: Collection[str],
    digest: str = "",
    forgotten: Collection[int] = (),
) -> MinedSession:
    """Return the episodes of a session. Requests with `forgotten` numbers teach nothing."""
    ordered = sorted(messages, key=lambda message: message.position)
    in_error = _ended_in_error(session, ordered)
    found = _episodes(
        replace(session, outcome=0.0) if in_error else session, ordered, judged, trivial
    )
    # What is forgotten teaches nothing, but it happened.
    episodes = tuple(episode for episode in found if episode.number not in forgotten)
    reason: Reason = ""
    if not judged:
        reason = "no calls"
    elif in_error:
        reason = "error"
    elif session.outcome is not None and session.outcome < SUCCESS:
        reason = "failed"
    elif not any(episode.ending == "well" for episode in episodes):
        reason = "nothing ended well"
    return MinedSession(
        session=session.id,
        digest=digest,
        outcome=session.outcome,
        end_reason=session.end_reason,
        reason=reason,
        episodes=episodes,
    )


def _ended_in_error(session: Session, ordered: Sequence[Message]) -> bool:
    """Whether the recorder ended a session with an error, by its end reason or its last message. A
    person's interruption is not an error, and a known outcome decides instead.
    """
    finish = ordered[-1].finish_reason if ordered else ""
    return session.outcome is None and (
        finish in _ERROR_FINISHES or _ENDED_IN_ERROR.match(session.end_reason) is not None
    )


def _episodes(
    session: Session,
    ordered: Sequence[Message],
    judged: Sequence[JudgedCall],
    trivial: Collection[str],
) -> Iterator[Episode]:
    """Yield an episode for each request after an opening that the agent's calls served."""
    live = ordered[opening_length(ordered) :]
    under = {message.key: request for message, request in zip(live, requests(live), strict=True)}
    location = Location(session.cwd, session.project)
    verdicts = {call.index: call.verdict for call in judged}
    served: defaultdict[int, list[ServingCall]] = defaultdict(list)
    by_number: dict[int, UserRequest] = {}
    clean: dict[int, int] = {}
    for call in join_calls(ordered):
        verdict, request = verdicts.get(call.index), under.get(call.asked_key)
        if verdict is None or request is None:
            continue
        if _is_artefact(call):
            continue
        if call.tool not in trivial:
            by_number[request.number] = request
            served[request.number].append(
                ServingCall(
                    call=call,
                    verdict=verdict,
                    is_safe=why_unsafe(call.tool, call.arguments, session.cwd) is None,
                    folder=location.of(call, worked=verdict.status == "ok"),
                )
            )
        is_refused = "invalid" in (verdict.status, verdict.kind[:7])
        if takes_in(call) and not (is_refused or clean):
            clean[request.number] = len(served[request.number])
    for before, after in pairwise(served):
        if _takes_back_commit(served[before], served[after]):
            by_number[before].is_rejected = True
    scripts: set[str] = set()
    intake = min(clean, default=math.inf)
    for number, calls in served.items():
        if calls:
            scripts.update(written_names(calls))
            until = clean.get(number, 0 if number > intake else None)
            yield _episode(session, by_number[number], calls, location.root, scripts, until=until)


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


def _takes_back_commit(calls: Iterable[ServingCall], later: Iterable[ServingCall]) -> bool:
    """Whether calls commit, and later ones revert or reset that before they commit themselves."""
    has_commit = any(command.name == "git commit" for command in _worked(calls))
    until = takewhile(lambda command: command.name != "git commit", _worked(later))
    return has_commit and any(_TAKES_BACK.match(command.form) for command in until)


def _worked(calls: Iterable[ServingCall]) -> Iterator[Command]:
    return (command for serving in calls if serving.is_ok for command in serving.commands)


def _episode(
    session: Session,
    request: UserRequest,
    calls: Sequence[ServingCall],
    root: str,
    scripts: set[str],
    *,
    until: int | None,
) -> Episode:
    """Return the episode of one request, redacted; of failed or rejected work only its mistakes,
    and no text, command or file if any of it instructs its reader. `until` counts the calls up to
    the first that took in content from outside: what came after it, others may have steered.
    """
    # Another agent's words are not a person's.
    is_subagent = session.lineage is not None and session.lineage.kind == "subagent"
    ending = _ending(session, request, calls)
    has_failed = session.outcome is not None and ending == "failed"
    shows_steps = ending == "well" and request.text and not is_subagent
    steps = _decisive_steps(calls, until) if shows_steps else []
    intent, clean_steps, suspicion = cleaned("" if is_subagent else request.intent(), steps)
    is_usable = ending != "rejected" and not has_failed
    said = "" if is_subagent else request.correction
    seen = observed(calls, root, scripts, correction=said, is_usable=is_usable)
    if until == 0:
        seen = replace(seen, tainted=True)
    elif until is not None:
        before = observed(calls[:until], root, scripts, is_usable=is_usable)
        seen = replace(before, files=seen.files, remarks=seen.remarks)
    if suspicion is not None:
        intent, clean_steps = "", ()
        seen = replace(seen, commands=(), files=())
    times = [serving.call.asked_at for serving in calls if serving.call.asked_at is not None]
    return Episode(
        session=session.id,
        number=request.number,
        request=intent,
        ending=ending,
        at=min(times, default=session.started_at),
        source=session.source,
        project=session.project,
        steps=clean_steps,
        observed=seen,
    )


def _ending(session: Session, request: UserRequest, calls: Sequence[ServingCall]) -> Ending:
    """Return how the work on a request ended."""
    if request.is_rejected or request.is_withdrawal:
        return "rejected"
    if session.outcome is not None:
        return "well" if session.outcome >= SUCCESS else "failed"
    if calls[-1].verdict.status == "refused":
        return "rejected"
    if request.is_interrupted:
        return "interrupted"
    counted = [serving for serving in calls if serving.verdict.counts]
    if not counted:
        return "unknown"
    error_count = sum(serving.is_error for serving in counted)
    has_failed = counted[-1].is_error or error_count > MOST_ERRORS * len(counted)
    return "failed" if has_failed or _last_check_failed(calls) else "well"


def _last_check_failed(calls: Sequence[ServingCall]) -> bool:
    """Whether the last test, lint or build after the last edit failed."""
    for serving in reversed(calls):
        if serving.is_ok and serving.operation in CHANGES:
            return False
        is_check = any(check_kind(command.name) for command in serving.commands)
        if is_check and (serving.is_ok or serving.is_error):
            return serving.is_error
    return False


def _decisive_steps(calls: Sequence[ServingCall], until: int | None) -> list[Step]:
    """Return the first call of each skill that worked, of the first `until` ones; of many, the
    first and the last.
    """
    worked = [serving for serving in calls if serving.is_ok]
    if worked and not worked[-1].is_safe:
        return []  # the final call must not be shown, and the rest is only half of the work
    first: dict[str, Step] = {}
    for serving in calls[:until]:
        call = serving.call
        is_short = len(call.arguments) <= _LONGEST_ARGUMENTS
        is_complete = is_short and find_arguments(call.arguments) is not None
        if serving.is_ok and serving.is_safe and is_complete and is_plain(serving.line):
            result = without_reminders(call.result or "")
            step = Step(tool=call.tool, arguments=_arguments(call), result=result)
            first.setdefault(skill_of(call.tool, call.arguments), step)
    found = list(first.values())
    return [*found[:1], *found[1:][1 - _MOST_STEPS :]]


def _arguments(call: Call) -> str:
    """Return the arguments of a call without what the agent said about it."""
    values = parse_arguments(call.arguments)
    if call.tool not in KNOWN_TOOLS or _SAID.isdisjoint(values):
        return call.arguments
    return canonical_json({name: value for name, value in values.items() if name not in _SAID})
