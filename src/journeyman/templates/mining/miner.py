"""Mining a session: which of its calls are worth repeating, and what each was for.

Only calls that are verified to have worked are taken, only what the agent itself did (not what an
opening had put before it), and nothing trivial. All text is redacted before a record is made of
it, and text that instructs its reader is marked. Whether the session may teach at all is the
gate's business.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import msgspec
from msgspec import Struct

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
from journeyman.templates.cleaning import clean_pattern
from journeyman.templates.likeness import masked
from journeyman.templates.mining.artefacts import are_cut, is_stub, without_reminders
from journeyman.templates.mining.gate import why_not
from journeyman.templates.mining.own_openings import after_opening, shows_opening
from journeyman.templates.mining.requests import Request, requests
from journeyman.templates.mining.trivial_tools import is_trivial
from journeyman.templates.skills import skill_of
from journeyman.templates.summaries import SUMMARY_LIMIT

_RESULT_IN_SEQUENCE = 200
_MOST_STEPS = 6
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


class _Seen(Struct, frozen=True, kw_only=True):
    """A call of the session with all that mining asks about it."""

    call: Call
    skill: str
    request: Request
    words: str
    is_ok: bool
    is_error: bool


def mine(
    session: Session,
    messages: Sequence[Message],
    judged: JudgedSession,
    *,
    trivial: frozenset[str],
    digest: str = "",
    copied: frozenset[CallKey] = frozenset(),
) -> MinedSession:
    """The patterns of a session, each once, with how often it was seen. Calls that are `copied`
    from another session teach there.
    """
    own = after_opening(messages)
    reason = why_not(session, messages[own:], judged)
    found: dict[str, Pattern] = {}
    if not reason:
        kind = task_type(judged.calls)
        calls = _calls(messages, own, judged, trivial, copied)
        for pattern in _patterns(session, calls, "mixed" if kind == "none" else kind):
            known = found.get(pattern.id)
            found[pattern.id] = pattern if known is None else merged(known, pattern)
    return MinedSession(
        session=session.id,
        digest=digest,
        outcome=session.outcome,
        end_reason=session.end_reason,
        reason=reason,
        patterns=tuple(found.values()),
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


def _calls(
    messages: Sequence[Message],
    own: int,
    judged: JudgedSession,
    trivial: frozenset[str],
    copied: frozenset[CallKey],
) -> list[_Seen]:
    """The agent's calls after an opening, with their requests; what is trivial, or no longer what
    it was, is not among them.
    """
    verdicts = {call.index: call.verdict for call in judged.calls}
    ordered = sorted(messages, key=lambda message: message.position)
    live = ordered[own:]
    under = {one.key: request for one, request in zip(live, requests(live), strict=True)}
    words = {one.key: one.text for one in live if one.role == "assistant"}
    seen = []
    for call in join_calls(ordered):
        verdict = verdicts.get(call.index)
        if verdict is None or call.asked_key not in under or is_trivial(call.tool, trivial):
            continue
        if is_stub(call.result or "") or are_cut(call.arguments) or call_key(call) in copied:
            continue
        if shows_opening(call.arguments) or shows_opening((call.result or "")[:_LOOKED_AT]):
            continue
        seen.append(
            _Seen(
                call=call,
                skill=skill_of(call.tool, call.arguments),
                request=under[call.asked_key],
                words=words.get(call.asked_key, ""),
                is_ok=verdict.status == "ok" and _is_object(call.arguments),
                is_error=verdict.is_error,
            )
        )
    return seen


def _is_object(arguments: str) -> bool:
    if len(arguments) > _LONGEST_ARGUMENTS:
        return False
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


def _patterns(
    session: Session, calls: Sequence[_Seen], kind_of_task: PatternType
) -> Iterator[Pattern]:
    make = _Maker(session, kind_of_task)
    recoveries = dict(_recoveries(calls))
    retried = {
        later
        for later in range(1, len(calls))
        if calls[later - 1].is_error and _same_call(calls[later - 1], calls[later])
    }
    good = [index for index, one in enumerate(calls) if one.is_ok]
    # What went wrong afterwards was not the end of the work.
    last = next(
        (index for index in good[-1:] if not any(one.is_error for one in calls[index:])), -1
    )
    taken: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for index in good:
        one = calls[index]
        like, work = taken[one.request.number, one.skill], masked(one.call.arguments)
        is_more = work not in like and len(like) >= _MOST_OF_A_SKILL
        if is_more and index not in recoveries and index != last:
            continue
        like.add(work)
        if index in recoveries:
            yield from make(
                "recovery", one, (calls[recoveries[index]].call, one.call), failed_first=True
            )
        elif index not in retried:  # the same call, again: chance, or something outside changed
            yield from make("final" if index == last else "first_try", one, (one.call,))
    for served in _sequences(calls):
        yield from make("sequence", served[0], tuple(one.call for one in served))


def _same_call(one: _Seen, other: _Seen) -> bool:
    """Whether one call is the other again; what it is called in words does not matter."""
    return one.call.tool == other.call.tool and _work(one.call) == _work(other.call)


def _work(call: Call) -> str:
    return command_of(call.arguments).strip() or call.arguments


def _recoveries(calls: Sequence[_Seen]) -> Iterator[tuple[int, int]]:
    """Calls that worked, each with the failed call of the same tool that it corrects."""
    for failed, one in enumerate(calls):
        if not one.is_error or len(one.call.arguments) > _LONGEST_ARGUMENTS:
            continue
        for later in range(failed + 1, min(failed + 1 + _NEXT_CALLS, len(calls))):
            other = calls[later]
            if other.call.tool != one.call.tool or other.request.number != one.request.number:
                continue
            if other.is_ok and not _same_call(one, other) and _alike(one.call, other.call):
                yield later, failed
            break  # the next call of the tool is the one that tells


def _alike(one: Call, other: Call) -> bool:
    """Whether a call aims at the same thing as another: most of what it says is said again. Of
    paths only the file's name counts, because all paths of a project are alike.
    """
    before, after = _PATHS.sub("", _work(one))[:_COMPARED], _PATHS.sub("", _work(other))[:_COMPARED]
    return SequenceMatcher(None, before, after, autojunk=False).ratio() >= _LIKE


def _sequences(calls: Sequence[_Seen]) -> Iterator[list[_Seen]]:
    """For each request the few calls that served it: of each skill the first that worked, and of
    many the last ones, which brought it to its end.
    """
    by_request: defaultdict[int, list[_Seen]] = defaultdict(list)
    for one in calls:
        if one.is_ok and one.request.wanted:
            by_request[one.request.number].append(one)
    for served in by_request.values():
        first: dict[str, _Seen] = {}
        for one in served:
            first.setdefault(one.skill, one)
        if len(first) > 1:
            yield list(first.values())[-_MOST_STEPS:]


class _Maker:
    """Makes patterns of one session's calls."""

    def __init__(self, session: Session, kind_of_task: PatternType) -> None:
        self._session = session
        self._type: PatternType = kind_of_task

    def __call__(
        self, kind: PatternKind, seen: _Seen, calls: Sequence[Call], *, failed_first: bool = False
    ) -> Iterator[Pattern]:
        request = seen.request
        if kind == "sequence":  # what was said in between belongs to its single calls
            request = msgspec.structs.replace(request, answer="")
        intent = request.intent(seen.words)
        if not intent.strip():
            return
        steps = [
            Step(
                tool=call.tool,
                arguments=call.arguments,
                result=without_reminders(call.result or ""),
                worked=not (failed_first and number == 0),
            )
            for number, call in enumerate(calls)
        ]
        limit = SUMMARY_LIMIT if kind != "sequence" else _RESULT_IN_SEQUENCE
        times = _known(*(call.asked_at for call in calls)) or _known(self._session.started_at)
        yield msgspec.structs.replace(
            clean_pattern(kind, intent, steps, result_limit=limit),
            task_type=self._type,
            source=self._session.source,
            sessions=(self._session.id,),
            models=tuple(sorted({call.model or self._session.model for call in calls} - {""})),
            first_seen=min(times, default=None),
            last_seen=max(times, default=None),
        )
