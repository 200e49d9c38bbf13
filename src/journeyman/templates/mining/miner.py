"""Mining a session: its episodes, and which of its calls are worth repeating as patterns: only
calls that are verified to have worked, that the agent itself made, and only from episodes that
ended well.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial

import msgspec

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
    join_calls,
)
from journeyman.reliability.task_types import task_type as most_frequent_type
from journeyman.templates.cleaning import SUMMARY_LIMIT, clean_pattern, masked, redacted_line
from journeyman.templates.commands import skill_of
from journeyman.templates.mining.episodes import (
    Served,
    ServingCall,
    as_step,
    decisive,
    ending_of,
    episode_of,
    hides_failure,
    why_not,
)
from journeyman.templates.mining.requests import Request, are_cut, is_stub, requests
from journeyman.templates.mining.safety import KeptOutList
from journeyman.templates.shown.wording import after_opening, shows_opening
from journeyman.templates.translation.argument_fields import find_object

_RESULT_IN_SEQUENCE = 200
_LONGEST_ARGUMENTS = 2_000
"""A call with more than that fits no opening, and a cut one must not be imitated."""

_LOOKED_AT = 100_000
"""How much of a result is looked through for openings of ours."""

_NEXT_CALLS = 4
"""How many calls later the correction of a failed one may come."""

_MOST_OF_A_SKILL = 5
"""How many different calls of one kind for one request are taken: more teach nothing new."""

_LIKE = 0.6
_COMPARED = 400
"""How alike a failed call and its correction are, by how much of their beginnings."""

_PATHS = re.compile(r"(?:[\w.~-]*/)+(?=[\w.-])")
_OWN_SERVER = re.compile(r"(?:mcp_{1,2})?journeyman[_.:/]+\w+", re.IGNORECASE)

CallKey = tuple[str, str, str, str | None]


def mine(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    *,
    trivial: frozenset[str],
    digest: str = "",
    copied: frozenset[CallKey] = frozenset(),
    released: frozenset[str] = frozenset(),
    forgotten: frozenset[int] = frozenset(),
) -> MinedSession:
    """The episodes of a session and its patterns, each once, with how often it was seen. Calls
    that are `copied` from another session teach there. What the rules keep out is listed; what a
    person has `released` teaches all the same. Requests that are `forgotten`, by number, teach
    nothing.
    """
    kept_out = KeptOutList(session, released)
    every = _served(session, messages, judged, kept_out, trivial=trivial, copied=copied)
    served = [one for one in every if one.request.number not in forgotten]
    reason = why_not(session, len(judged.calls), [one.ending for one in served])
    patterns: tuple[Pattern, ...] = ()
    if not reason and not _is_of_subagent(session):
        make = partial(_make, session=session, task_type=type_of([judged]), kept_out=kept_out)
        patterns = merged_by_id(_patterns(served, make))
    return MinedSession(
        session=session.id,
        digest=digest,
        outcome=session.outcome,
        end_reason=session.end_reason,
        reason=reason,
        episodes=tuple(episode_of(session, one, kept_out) for one in served),
        patterns=patterns,
        kept_out=kept_out.entries,
        released=released.intersection(one.key for one in kept_out.entries),
    )


def merged_by_id(patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """Each pattern once, with all its sightings."""
    found: dict[str, Pattern] = {}
    for one in patterns:
        found[one.id] = merged(found[one.id], one) if one.id in found else one
    return tuple(found.values())


def merged(one: Pattern, other: Pattern) -> Pattern:
    """Two sightings of one pattern as one; the earlier is shown. Associative."""
    first, second = sorted((one, other), key=lambda pattern: pattern.age)
    sessions = tuple(dict.fromkeys((*first.sessions, *second.sessions)))
    all_named = all(one.session_count == len(one.sessions) for one in (first, second))
    return msgspec.structs.replace(
        first,
        times=first.times + second.times,
        session_count=len(sessions) if all_named else first.session_count + second.session_count,
        sessions=sessions,
        models=tuple(sorted({*first.models, *second.models})),
        first_seen=min(_known(first.first_seen, second.first_seen), default=None),
        last_seen=max(_known(first.last_seen, second.last_seen), default=None),
        quarantined=first.quarantined or second.quarantined,
    )


def _known(*times: float | None) -> list[float]:
    return [at for at in times if at is not None]


def type_of(judged: Iterable[JudgedSession]) -> PatternType:
    """The type of the task that these sessions are for."""
    found = most_frequent_type(call for one in judged for call in one.calls)
    return "mixed" if found == "none" else found


def call_key(call: Call) -> CallKey:
    """What tells a call from others, and a copy of it from nothing else."""
    return call.id, call.tool, call.arguments, call.result


def _is_of_subagent(session: Session) -> bool:
    """Whether another agent asked for the work."""
    return session.lineage is not None and session.lineage.kind == "subagent"


def _served(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    kept_out: KeptOutList,
    *,
    trivial: frozenset[str],
    copied: frozenset[CallKey],
) -> list[Served]:
    """The requests after an opening, each with the agent's calls for it that may say something."""
    ordered = sorted(messages, key=lambda message: message.position)
    live = ordered[after_opening(messages) :]
    found = requests(live)
    under = {one.key: request for one, request in zip(live, found.under, strict=True)}
    verdicts = {call.index: call.verdict for call in judged.calls}
    calls: defaultdict[int, list[ServingCall]] = defaultdict(list)
    last: dict[int, Request] = {}
    for call in join_calls(ordered):
        verdict, request = verdicts.get(call.index), under.get(call.asked_key)
        if verdict is None or request is None:
            continue
        if call.tool in trivial or _OWN_SERVER.fullmatch(call.tool) or call_key(call) in copied:
            continue
        result = call.result or ""
        if is_stub(result) or are_cut(call.arguments):
            continue
        if shows_opening(call.arguments) or shows_opening(result[:_LOOKED_AT]):
            continue
        is_ok = verdict.status == "ok" and not hides_failure(call)
        teaches = kept_out.may_teach(call, request.number, is_ok=is_ok)
        last[request.number] = request
        calls[request.number].append(
            ServingCall(
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
                and find_object(call.arguments) is not None,
            )
        )
    if _is_of_subagent(session):  # its words are not a person's
        last = {at: msgspec.structs.replace(one, wanted="") for at, one in last.items()}
    return [
        Served(
            request=last[number],
            calls=some,
            ending=ending_of(
                session,
                [one.verdict for one in some],
                rejected=number in found.rejected or last[number].ends,
                interrupted=number in found.interrupted,
            ),
        )
        for number, some in calls.items()
    ]


def _patterns(served: Sequence[Served], make: Callable[..., Pattern]) -> Iterator[Pattern]:
    last = served[-1].calls if served else []
    for one in served:
        if one.ending == "well" and one.request.wanted and not one.request.ends:
            yield from _single_calls(one.calls, make, is_last=one.calls is last)
            together = decisive(one)
            if len(together) > 1:
                yield make("sequence", together[0].request, [call.call for call in together])


def _single_calls(
    calls: Sequence[ServingCall], make: Callable[..., Pattern], *, is_last: bool
) -> Iterator[Pattern]:
    good = [index for index, one in enumerate(calls) if one.is_example]
    final = good[-1] if is_last and good else -1
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for index in good:
        one, failed = calls[index], _corrected(calls, index)
        like, work = taken[one.skill], masked(one.call.arguments)
        is_more = work not in like and len(like) >= _MOST_OF_A_SKILL
        if is_more and failed is None and index != final:
            continue
        like.add(work)
        if failed is not None:
            yield make("recovery", one.request, (failed.call, one.call), failed=1)
        elif not (index and calls[index - 1].is_error and _same_call(calls[index - 1], one)):
            # The same call again: chance, or something outside changed.
            yield make("final" if index == final else "first_try", one.request, (one.call,))


def _corrected(calls: Sequence[ServingCall], index: int) -> ServingCall | None:
    """The failed call that one corrects: the last of the same tool, shortly before it."""
    one, before = calls[index], calls[max(0, index - _NEXT_CALLS) : index]
    failed = next((other for other in reversed(before) if other.call.tool == one.call.tool), None)
    if failed is None or not (failed.is_error and failed.is_safe):
        return None
    is_short = len(failed.call.arguments) <= _LONGEST_ARGUMENTS
    is_other = is_short and not _same_call(failed, one) and _alike(failed.call, one.call)
    return failed if is_other else None


def _same_call(one: ServingCall, other: ServingCall) -> bool:
    """Whether one call is the other again; what it is called in words does not matter."""
    return one.call.tool == other.call.tool and _work(one.call) == _work(other.call)


def _work(call: Call) -> str:
    return command_of(call.arguments).strip() or call.arguments


def _alike(one: Call, other: Call) -> bool:
    """Whether most of what a call says is said again. All paths of a project are alike."""
    before, after = _PATHS.sub("", _work(one))[:_COMPARED], _PATHS.sub("", _work(other))[:_COMPARED]
    return SequenceMatcher(None, before, after, autojunk=False).ratio() >= _LIKE


def _make(
    kind: PatternKind,
    request: Request,
    calls: Sequence[Call],
    *,
    failed: int = 0,
    session: Session,
    task_type: PatternType,
    kept_out: KeptOutList,
) -> Pattern:
    """The pattern of some calls for a request, of which the first few `failed`."""
    limit = SUMMARY_LIMIT
    if kind == "sequence":  # what was said in between belongs to its single calls
        request, limit = msgspec.structs.replace(request, answer=""), _RESULT_IN_SEQUENCE
    steps = [as_step(call, worked=number >= failed) for number, call in enumerate(calls)]
    times = _known(*(call.asked_at for call in calls)) or _known(session.started_at)
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
