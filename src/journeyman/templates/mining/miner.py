"""Mining a session: its episodes, and which of its calls are worth repeating as patterns.

Only calls that are verified to have worked are taken, only what the agent itself did (not what an
opening had put before it), nothing trivial, and only from episodes that ended well. All text is
redacted before a record is made of it, and text that instructs its reader is marked.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

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
    Step,
    join_calls,
)
from journeyman.reliability.task_types import task_type
from journeyman.templates.cleaning import clean_pattern, redacted_line
from journeyman.templates.likeness import masked, pattern_id
from journeyman.templates.mining.artefacts import are_cut, is_stub
from journeyman.templates.mining.episodes import (
    Served,
    ServingCall,
    as_step,
    decisive,
    episode_of,
    hides_failure,
)
from journeyman.templates.mining.gate import ending_of, why_not
from journeyman.templates.mining.kept_out import KeptOutList
from journeyman.templates.mining.own_openings import after_opening, shows_opening
from journeyman.templates.mining.requests import Request, requests
from journeyman.templates.mining.trivial_tools import is_trivial
from journeyman.templates.skills import skill_of
from journeyman.templates.summaries import SUMMARY_LIMIT

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
    found: dict[str, Pattern] = {}
    if not reason and not _is_of_subagent(session):
        kind = task_type(judged.calls)
        make = _Maker(session, "mixed" if kind == "none" else kind, kept_out)
        for pattern in _patterns(served, make):
            known = found.get(pattern.id)
            found[pattern.id] = pattern if known is None else merged(known, pattern)
    return MinedSession(
        session=session.id,
        digest=digest,
        outcome=session.outcome,
        end_reason=session.end_reason,
        reason=reason,
        episodes=tuple(episode_of(session, one, kept_out) for one in served),
        patterns=tuple(found.values()),
        kept_out=kept_out.entries,
        released=released.intersection(one.key for one in kept_out.entries),
    )


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


def call_key(call: Call) -> CallKey:
    """What tells a call from others, and a copy of it from nothing else."""
    return call.id, call.tool, call.arguments, call.result


def _is_of_subagent(session: Session) -> bool:
    """Whether another agent asked for the work: its words are not a person's."""
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
    """The requests after an opening with the agent's calls for them; what is trivial, or no longer
    what it was, is not among the calls.
    """
    ordered = sorted(messages, key=lambda message: message.position)
    live = ordered[after_opening(messages) :]
    found = requests(live)
    under = {one.key: request for one, request in zip(live, found.under, strict=True)}
    verdicts = {call.index: call.verdict for call in judged.calls}
    calls: defaultdict[int, list[ServingCall]] = defaultdict(list)
    last: dict[int, Request] = {}
    for call in join_calls(ordered):
        verdict, request = verdicts.get(call.index), under.get(call.asked_key)
        if verdict is None or request is None or is_trivial(call.tool, trivial):
            continue
        if is_stub(call.result or "") or are_cut(call.arguments) or call_key(call) in copied:
            continue
        if shows_opening(call.arguments) or shows_opening((call.result or "")[:_LOOKED_AT]):
            continue
        is_ok = verdict.status == "ok" and not hides_failure(call)
        is_safe = kept_out.may_teach(call, request.number, is_ok=is_ok)
        last[request.number] = request
        calls[request.number].append(
            ServingCall(
                call=call,
                skill=skill_of(call.tool, call.arguments),
                request=request,
                verdict=verdict,
                is_ok=is_ok,
                is_error=verdict.is_error,
                is_safe=is_safe,
                is_released=is_safe and kept_out.was_released(call),
                is_example=is_ok and is_safe and _is_object(call.arguments),
            )
        )
    return [
        Served(
            request=msgspec.structs.replace(last[number], wanted="")
            if _is_of_subagent(session)
            else last[number],
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


def _is_object(arguments: str) -> bool:
    if len(arguments) > _LONGEST_ARGUMENTS:
        return False
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _patterns(served: Sequence[Served], make: "_Maker") -> Iterator[Pattern]:
    last = served[-1].calls if served else []
    for one in served:
        if one.ending == "well" and one.request.wanted and not one.request.ends:
            yield from _single_calls(one.calls, make, is_last=one.calls is last)
            together = decisive(one)
            if len(together) > 1:
                yield from make("sequence", together[0], tuple(call.call for call in together))


def _single_calls(
    calls: Sequence[ServingCall], make: "_Maker", *, is_last: bool
) -> Iterator[Pattern]:
    recoveries = dict(_recoveries(calls))
    retried = {
        later
        for later in range(1, len(calls))
        if calls[later - 1].is_error and _same_call(calls[later - 1], calls[later])
    }
    good = [index for index, one in enumerate(calls) if one.is_example]
    final = good[-1] if is_last and good else -1
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for index in good:
        one = calls[index]
        like, work = taken[one.skill], masked(one.call.arguments)
        is_more = work not in like and len(like) >= _MOST_OF_A_SKILL
        if is_more and index not in recoveries and index != final:
            continue
        like.add(work)
        if index in recoveries:
            yield from make(
                "recovery", one, (calls[recoveries[index]].call, one.call), failed_first=True
            )
        elif index not in retried:  # the same call, again: chance, or something outside changed
            yield from make("final" if index == final else "first_try", one, (one.call,))


def _same_call(one: ServingCall, other: ServingCall) -> bool:
    """Whether one call is the other again; what it is called in words does not matter."""
    return one.call.tool == other.call.tool and _work(one.call) == _work(other.call)


def _work(call: Call) -> str:
    return command_of(call.arguments).strip() or call.arguments


def _recoveries(calls: Sequence[ServingCall]) -> Iterator[tuple[int, int]]:
    """Calls that worked, each with the failed call of the same tool that it corrects."""
    for failed, one in enumerate(calls):
        if not (one.is_error and one.is_safe) or len(one.call.arguments) > _LONGEST_ARGUMENTS:
            continue
        for later in range(failed + 1, min(failed + 1 + _NEXT_CALLS, len(calls))):
            other = calls[later]
            if other.call.tool != one.call.tool or other.request.number != one.request.number:
                continue
            if other.is_example and not _same_call(one, other) and _alike(one.call, other.call):
                yield later, failed
            break  # the next call of the tool is the one that tells


def _alike(one: Call, other: Call) -> bool:
    """Whether a call aims at the same thing as another: most of what it says is said again. Of
    paths only the file's name counts, because all paths of a project are alike.
    """
    before, after = _PATHS.sub("", _work(one))[:_COMPARED], _PATHS.sub("", _work(other))[:_COMPARED]
    return SequenceMatcher(None, before, after, autojunk=False).ratio() >= _LIKE


class _Maker:
    """Makes patterns of one session's calls."""

    def __init__(self, session: Session, kind_of_task: PatternType, kept_out: KeptOutList) -> None:
        self._session = session
        self._type: PatternType = kind_of_task
        self._kept_out = kept_out
        self._made: dict[str, Pattern] = {}

    def __call__(
        self,
        kind: PatternKind,
        seen: ServingCall,
        calls: Sequence[Call],
        *,
        failed_first: bool = False,
    ) -> Iterator[Pattern]:
        request = seen.request
        if kind == "sequence":  # what was said in between belongs to its single calls
            request = msgspec.structs.replace(request, answer="")
        steps = [
            as_step(call, worked=not (failed_first and number == 0))
            for number, call in enumerate(calls)
        ]
        times = _known(*(call.asked_at for call in calls)) or _known(self._session.started_at)
        yield msgspec.structs.replace(
            self._cleaned(kind, request, steps),
            task_type=self._type,
            source=self._session.source,
            sessions=(self._session.id,),
            models=tuple(
                sorted({redacted_line(call.model or self._session.model) for call in calls} - {""})
            ),
            first_seen=min(times, default=None),
            last_seen=max(times, default=None),
        )

    def _cleaned(self, kind: PatternKind, request: Request, steps: Sequence[Step]) -> Pattern:
        """The pattern as it may be kept. The first of several that are the same work is shown, so
        the others need not be cleaned.
        """
        intent = request.intent()
        work = pattern_id(kind, intent, steps)
        known = self._made.get(work)
        if known is not None:
            return msgspec.structs.replace(known, kind=kind)
        limit = SUMMARY_LIMIT if kind != "sequence" else _RESULT_IN_SEQUENCE
        cleaned = clean_pattern(kind, intent, steps, result_limit=limit)
        cleaned = self._kept_out.reviewed("pattern", cleaned, request.number)
        if not cleaned.quarantined:
            self._made[work] = cleaned
        return cleaned
