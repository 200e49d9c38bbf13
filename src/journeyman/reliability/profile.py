"""The profile: how reliable the calls of a session, or of many, were, by tool, by length, along the
session, and in which ways they failed. It counts verdicts; whether an agent learned, `learning`
says, and whether one set is better than another, `comparison` does.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict

from journeyman.records import JudgedCall, JudgedSession, Kind, SessionId, Status
from journeyman.reliability.clusters import counts_of, distinct, rate_over_sessions
from journeyman.reliability.fingerprints import fingerprint
from journeyman.reliability.learning import Learning, learning
from journeyman.reliability.lengths import BANDS, Marathons, band, marathons
from journeyman.reliability.rates import Rate, wilson
from journeyman.reliability.task_types import TaskType, ToolType, ruling, task_type, tool_type

COMMONEST_FAILURES = 10
CURVE_PARTS = 10
"""A session needs as many calls that count, so that each part of the curve has one of its."""

By = Literal["tool", "model", "source", "project", "length", "type"]


class Group(Struct, frozen=True, kw_only=True):
    """The calls that have something in common. `apart` are the calls that were refused or
    interrupted, which say nothing about reliability; `unknown` are those nothing is known of.

    Calls of one session hang together, which the interval of the rate knows from eight sessions
    on. With fewer it takes each call for itself, and is too narrow; its method says which.
    """

    name: str
    sessions: int
    calls: int
    rate: Rate
    apart: int
    unknown: int


class ToolProfile(Struct, frozen=True, kw_only=True):
    """One tool: its share of all calls and how it fails most often (empty if it never did)."""

    tool: str
    type: ToolType
    sessions: int
    calls: int
    share: float
    rate: Rate
    apart: int
    unknown: int
    commonest_failure: str


class FailureExample(Struct, frozen=True, kw_only=True):
    """A failed call, where to find it, and the words and the rule that it was judged by."""

    session: SessionId
    call_index: int
    tool: str
    rule: str
    evidence: str


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Failures in the same words but for names, numbers and places. Kind and status are those that
    most of them have; tools come by how often they failed so; the example is the first.
    """

    fingerprint: str
    kind: Kind
    status: Status
    tools: tuple[str, ...]
    count: int
    sessions: int
    example: FailureExample


class Curve(Struct, frozen=True, kw_only=True):
    """The error rate along a session, in ten equal parts from its beginning to its end."""

    parts: tuple[Rate, ...]
    sessions: int
    note: str


class Profile(Struct, frozen=True, kw_only=True):
    """The reliability of a set of sessions.

    The six counts after `calls` add up to it. `no_match` is how many of them are searches and tests
    that answered no: these are no errors. `task_types` counts sessions. `lengths` are always the
    three bands, the shortest first. `further_failures` counts the groups of failures that are not
    listed, and `further_errors` the errors in them.
    """

    sessions: int
    sessions_without_calls: int
    calls: int
    ok: int
    failed: int
    invalid: int
    refused: int
    interrupted: int
    unknown: int
    no_match: int
    rate: Rate
    task_type: TaskType
    task_types: dict[TaskType, int]
    tools: tuple[ToolProfile, ...]
    failures: tuple[FailureGroup, ...]
    further_failures: int
    further_errors: int
    lengths: tuple[Group, ...]
    marathons: Marathons
    curve: Curve
    learning: Learning
    note: str


def profile(sessions: Sequence[JudgedSession]) -> Profile:
    """The profile of these sessions, each taken once; without sessions or calls it says so in its
    note.
    """
    sessions = distinct(sessions)
    tools = grouped(sessions, "tool")
    calls = sum(len(session.calls) for session in sessions)
    verdicts = [call.verdict for session in sessions for call in session.calls]
    status = Counter(verdict.status for verdict in verdicts)
    rate = rate_over_sessions(counts_of([session.calls for session in sessions]))
    types = Counter(tool_type(call.tool) for session in sessions for call in session.calls)
    failing = _failing(sessions)
    return Profile(
        sessions=len(sessions),
        sessions_without_calls=sum(not session.calls for session in sessions),
        calls=calls,
        **{name: status[name] for name in get_args(Status)},
        no_match=sum(verdict.kind == "no_match" for verdict in verdicts),
        rate=rate,
        task_type=ruling(types),
        task_types=dict(Counter(task_type(session.calls) for session in sessions).most_common()),
        tools=_tool_profiles(tools, calls, failing),
        failures=tuple(_failure_group(*one) for one in failing[:COMMONEST_FAILURES]),
        further_failures=max(0, len(failing) - COMMONEST_FAILURES),
        further_errors=sum(len(one[1]) for one in failing[COMMONEST_FAILURES:]),
        lengths=grouped(sessions, "length"),
        marathons=marathons(sessions),
        curve=_curve(sessions),
        learning=learning(sessions),
        note=_note(len(sessions), calls, rate),
    )


def grouped(sessions: Sequence[JudgedSession], by: By) -> tuple[Group, ...]:
    """The sessions' calls in groups, the largest first; the bands of length in their order, all of
    them. By tool and by model each call goes to its own group, and a session counts in each group
    that it has calls in; otherwise a session is in one group with all its calls.
    """
    groups: defaultdict[str, list[list[JudgedCall]]] = defaultdict(list)
    if by == "length":
        groups |= {one.name: [] for one in BANDS}
    for session in distinct(sessions):
        for name, calls in _parts(session, by).items():
            groups[name].append(calls)
    made = [_group(name, parts) for name, parts in groups.items()]
    if by != "length":
        made.sort(key=lambda group: (-group.calls, group.name))
    return tuple(made)


def _parts(session: JudgedSession, by: By) -> Mapping[str, list[JudgedCall]]:
    if by in ("tool", "model"):
        parts: defaultdict[str, list[JudgedCall]] = defaultdict(list)
        for call in session.calls:
            name = _tool(call) if by == "tool" else call.model or session.model or "unknown model"
            parts[name].append(call)
        return parts
    if by == "length":
        name = band(session.messages)
    elif by == "type":
        name = task_type(session.calls)
    else:
        name = getattr(session, by) or f"unknown {by}"
    return {name: [*session.calls]}


def _group(name: str, parts: Sequence[Sequence[JudgedCall]]) -> Group:
    rate = rate_over_sessions(counts_of(parts))
    calls = sum(map(len, parts))
    unknown = sum(call.verdict.status == "unknown" for part in parts for call in part)
    apart = calls - rate.total - unknown
    sessions = len(parts)
    return Group(name=name, sessions=sessions, calls=calls, rate=rate, apart=apart, unknown=unknown)


def _tool(call: JudgedCall) -> str:
    return call.tool or "unknown tool"


_Failing = tuple[str, list[tuple[SessionId, JudgedCall]]]


def _failing(sessions: Sequence[JudgedSession]) -> list[_Failing]:
    """The errors by their fingerprint, the commonest first."""
    spelled: dict[str, str] = {}
    found: defaultdict[str, list[tuple[SessionId, JudgedCall]]] = defaultdict(list)
    for session in sessions:
        for call in session.calls:
            if call.verdict.is_error:
                words = fingerprint(call.verdict.evidence)
                words = words or f"no words recorded ({call.verdict.rule})"
                # Two programs spell one message with a capital letter and without.
                found[spelled.setdefault(words.lower(), words)].append((session.id, call))
    return sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))


def _failure_group(words: str, failed: Sequence[tuple[SessionId, JudgedCall]]) -> FailureGroup:
    session, first = failed[0]
    tools = Counter(_tool(call) for _, call in failed)
    return FailureGroup(
        fingerprint=words,
        kind=Counter(call.verdict.kind for _, call in failed).most_common(1)[0][0],
        status=Counter(call.verdict.status for _, call in failed).most_common(1)[0][0],
        tools=tuple(sorted(tools, key=lambda tool: (-tools[tool], tool))),
        count=len(failed),
        sessions=len({session for session, _ in failed}),
        example=FailureExample(
            session=session,
            call_index=first.index,
            tool=_tool(first),
            rule=first.verdict.rule,
            evidence=first.verdict.evidence,
        ),
    )


def _tool_profiles(
    tools: Sequence[Group], calls: int, failing: Sequence[_Failing]
) -> tuple[ToolProfile, ...]:
    commonest: dict[str, tuple[int, str]] = {}
    for words, failed in failing:
        for tool, times in Counter(_tool(call) for _, call in failed).items():
            if times > commonest.get(tool, (0, ""))[0]:
                commonest[tool] = times, words
    profiles = []
    for group in tools:
        facts = asdict(group)
        name = facts.pop("name")
        profile_of_tool = ToolProfile(
            tool=name,
            type=tool_type(name),
            share=group.calls / calls,
            commonest_failure=commonest.get(name, (0, ""))[1],
            **facts,
        )
        profiles.append(profile_of_tool)
    return tuple(profiles)


def _curve(sessions: Sequence[JudgedSession]) -> Curve:
    errors, totals = [0] * CURVE_PARTS, [0] * CURVE_PARTS
    used = 0
    for session in sessions:
        counted = [call.verdict.is_error for call in session.calls if call.verdict.counts]
        if len(counted) < CURVE_PARTS:
            continue
        used += 1
        for place, is_error in enumerate(counted):
            part = place * CURVE_PARTS // len(counted)
            totals[part] += 1
            errors[part] += is_error
    note = f"No session has {CURVE_PARTS} calls that count, so there is no curve."
    if used:
        note = (
            f"From the {used} of {len(sessions)} sessions with at least {CURVE_PARTS} calls that "
            "count. An agent uses other tools early than late, so a rise or fall here need not be "
            "learning."
        )
    return Curve(parts=tuple(map(wilson, errors, totals)), sessions=used, note=note)


def _note(sessions: int, calls: int, rate: Rate) -> str:
    if sessions == 0:
        return "There are no sessions to profile."
    if calls == 0:
        return "There is not one tool call in these sessions, so there is nothing to measure."
    if rate.total == 0:
        return "No call can be counted: all were refused, interrupted or left no known result."
    return ""
