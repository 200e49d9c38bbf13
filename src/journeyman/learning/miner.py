"""Mines a session: its episodes, and the calls worth repeating as patterns. Only calls that
verifiably worked and that the agent itself made become patterns, and only from episodes that ended
well.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise

import msgspec

from journeyman.learning.agent_tools import find_arguments
from journeyman.learning.commands import skill_of
from journeyman.learning.episodes import (
    ServedRequest,
    as_step,
    decisive_calls,
    ended_in_error,
    ending_of,
    episode_of,
    hides_failure,
    takes_back_commit,
    why_not_learned,
)
from journeyman.learning.observations import ServingCall
from journeyman.learning.opening_text import opening_length, shows_opening
from journeyman.learning.requests import UserRequest, is_stub, is_truncated, requests
from journeyman.learning.safety import KeptOutList
from journeyman.learning.sanitizer import SUMMARY_LIMIT, clean_pattern, masked_text, redacted_line
from journeyman.outcomes.commands import command_of
from journeyman.records import (
    Call,
    JudgedSession,
    Message,
    MinedSession,
    Pattern,
    PatternKind,
    PatternType,
    Session,
    Verdict,
    join_calls,
)
from journeyman.reliability.task_types import task_type as most_frequent_type
from journeyman.store.patterns import merged_by_id

_RESULT_IN_SEQUENCE = 200
_LONGEST_ARGUMENTS = 2_000
"""A longer call fits no opening, and a truncated one must not be imitated."""

_SEARCHED = 100_000
"""How many characters of a result are searched for openings."""

_NEXT_CALLS = 4
"""The correction of a failed call must follow within this many calls."""

_MOST_OF_A_SKILL = 5
"""How many different calls of one skill are taken for one request: more teach nothing new."""

_ALIKE = 0.6
_COMPARED = 400
"""How similar a failed call and its correction must be, by this many characters of each."""

_PATHS = re.compile(r"(?:[\w.~-]*/)+(?=[\w.-])")
_OWN_SERVER = re.compile(r"(?:mcp_{1,2})?journeyman[_.:/]+\w+", re.IGNORECASE)


def mine(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    *,
    trivial: frozenset[str],
    digest: str = "",
    released: frozenset[str] = frozenset(),
    forgotten: frozenset[int] = frozenset(),
) -> MinedSession:
    """Return the episodes of a session and its patterns, each once, with how often it was seen.
    What the rules exclude is listed; what
    a person has `released` teaches nevertheless. Requests with `forgotten` numbers teach nothing.
    """
    recorded = session
    last = max(messages, key=lambda message: message.position, default=None)
    if in_error := ended_in_error(session, last):
        session = msgspec.structs.replace(session, outcome=0.0)
    kept_out = KeptOutList(session, released)
    all_served = _served_requests(session, messages, judged, kept_out, trivial=trivial)
    served = [entry for entry in all_served if entry.request.number not in forgotten]
    reason = why_not_learned(session, len(judged.calls), [entry.ending for entry in served])
    if in_error and reason == "failed":
        reason = "error"
    patterns: tuple[Pattern, ...] = ()
    if not reason and not _is_of_subagent(session):
        make = partial(_make, session=session, task_type=type_of([judged]), kept_out=kept_out)
        patterns = merged_by_id(_patterns(served, make))
    written: set[str] = set()
    episodes = tuple(episode_of(session, entry, kept_out, written) for entry in served)
    return MinedSession(
        session=session.id,
        digest=digest,
        outcome=recorded.outcome,
        end_reason=session.end_reason,
        reason=reason,
        episodes=episodes,
        patterns=patterns,
        kept_out=kept_out.entries,
        released=released.intersection(entry.key for entry in kept_out.entries),
    )


def _without_none(*times: float | None) -> list[float]:
    return [at for at in times if at is not None]


def type_of(judged: Iterable[JudgedSession]) -> PatternType:
    """Return the type of the task that these sessions are for."""
    task_type = most_frequent_type(call for session in judged for call in session.calls)
    return "mixed" if task_type == "none" else task_type


def _is_of_subagent(session: Session) -> bool:
    """Whether another agent requested the work."""
    return session.lineage is not None and session.lineage.kind == "subagent"


def _served_requests(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    kept_out: KeptOutList,
    *,
    trivial: frozenset[str],
) -> list[ServedRequest]:
    """Return the requests after an opening, each with the agent's calls for it that may teach."""
    ordered = sorted(messages, key=lambda message: message.position)
    live = ordered[opening_length(messages) :]
    parsed = requests(live)
    under = {message.key: request for message, request in zip(live, parsed.under, strict=True)}
    verdicts = {call.index: call.verdict for call in judged.calls}
    calls: defaultdict[int, list[ServingCall]] = defaultdict(list)
    last: dict[int, UserRequest] = {}
    for call in join_calls(ordered):
        verdict, request = verdicts.get(call.index), under.get(call.asked_key)
        if verdict is None or request is None:
            continue
        if call.tool in trivial or _is_artefact(call):
            continue
        last[request.number] = request
        calls[request.number].append(_serving_call(call, request, verdict, kept_out))
    if _is_of_subagent(session):  # its requests are not a person's words
        last = {
            number: msgspec.structs.replace(request, text="") for number, request in last.items()
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
    call: Call, request: UserRequest, verdict: Verdict, kept_out: KeptOutList
) -> ServingCall:
    is_ok = verdict.status == "ok" and not hides_failure(call)
    teaches = kept_out.may_teach(call, request.number, is_ok=is_ok)
    return ServingCall(
        call=call,
        skill=skill_of(call.tool, call.arguments),
        request=request,
        verdict=verdict,
        is_ok=is_ok,
        is_error=verdict.is_error,
        is_safe=bool(teaches),
        is_released=teaches == "released",
        is_example=is_ok
        and bool(teaches)
        and len(call.arguments) <= _LONGEST_ARGUMENTS
        and find_arguments(call.arguments) is not None,
    )


def _patterns(served: Sequence[ServedRequest], make: Callable[..., Pattern]) -> Iterator[Pattern]:
    last = served[-1].calls if served else []
    for entry in served:
        request = entry.request
        if entry.ending == "well" and request.text and not request.is_withdrawal:
            yield from _single_calls(entry.calls, make, is_last=entry.calls is last)
            sequence = decisive_calls(entry)
            if len(sequence) > 1:
                yield make("sequence", sequence[0].request, [serving.call for serving in sequence])


def _single_calls(
    calls: Sequence[ServingCall], make: Callable[..., Pattern], *, is_last: bool
) -> Iterator[Pattern]:
    examples = [index for index, serving in enumerate(calls) if serving.is_example]
    final = examples[-1] if is_last and examples else -1
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for index in examples:
        serving, failed = calls[index], _corrected(calls, index)
        similar, work = taken[serving.skill], masked_text(serving.call.arguments)
        is_surplus = work not in similar and len(similar) >= _MOST_OF_A_SKILL
        if is_surplus and failed is None and index != final:
            continue
        similar.add(work)
        if failed is not None:
            yield make("recovery", serving.request, (failed.call, serving.call), failed=1)
        elif not (index and calls[index - 1].is_error and _is_same(calls[index - 1], serving)):
            # A repetition of an identical failed call is skipped: it worked by chance, or because
            # something outside changed.
            yield make("final" if index == final else "first_try", serving.request, (serving.call,))


def _corrected(calls: Sequence[ServingCall], index: int) -> ServingCall | None:
    """Return the failed call that this one corrects: the last of the same tool, shortly before."""
    serving, before = calls[index], calls[max(0, index - _NEXT_CALLS) : index]
    same_tool = (other for other in reversed(before) if other.call.tool == serving.call.tool)
    failed = next(same_tool, None)
    if failed is None or not (failed.is_error and failed.is_safe):
        return None
    is_short = len(failed.call.arguments) <= _LONGEST_ARGUMENTS
    is_corrected = (
        is_short and not _is_same(failed, serving) and _is_similar(failed.call, serving.call)
    )
    return failed if is_corrected else None


def _is_same(serving: ServingCall, other: ServingCall) -> bool:
    """Whether two calls do the same work; descriptions in words do not matter."""
    return serving.call.tool == other.call.tool and _work(serving.call) == _work(other.call)


def _work(call: Call) -> str:
    return command_of(call.arguments).strip() or call.arguments


def _is_similar(call: Call, other: Call) -> bool:
    """Whether most of one call recurs in the other. Folders in paths are ignored, because all paths
    of a project are alike.
    """
    before, after = (_PATHS.sub("", _work(each))[:_COMPARED] for each in (call, other))
    return SequenceMatcher(None, before, after, autojunk=False).ratio() >= _ALIKE


def _make(
    kind: PatternKind,
    request: UserRequest,
    calls: Sequence[Call],
    *,
    failed: int = 0,
    session: Session,
    task_type: PatternType,
    kept_out: KeptOutList,
) -> Pattern:
    """Return the pattern of some calls for a request, of which the first few `failed`."""
    limit = SUMMARY_LIMIT
    if kind == "sequence":  # an answer in between belongs to single calls
        request, limit = msgspec.structs.replace(request, answer=""), _RESULT_IN_SEQUENCE
    steps = [as_step(call, worked=number >= failed) for number, call in enumerate(calls)]
    times = _without_none(*(call.asked_at for call in calls)) or _without_none(session.started_at)
    models = {redacted_line(call.model or session.model) for call in calls}
    cleaned = clean_pattern(kind, request.intent(), steps, result_limit=limit)
    return msgspec.structs.replace(
        kept_out.reviewed("pattern", cleaned, request.number),
        task_type=task_type,
        source=session.source,
        sessions=(session.id,),
        models=tuple(sorted(models - {""})),
        first_seen=min(times, default=None),
        last_seen=max(times, default=None),
    )
