"""The profile: how reliable the calls of a session, or of many, were, by tool, by length, along the
session, and in which ways they failed. It counts verdicts; whether an agent learned, `learning`
says, and whether one set is better than another, `comparison` does.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from journeyman.records import JudgedCall, JudgedSession, Kind, SessionId, Status, Verdict
from journeyman.reliability.clusters import counts_of, distinct, rate_over_sessions
from journeyman.reliability.fingerprints import fingerprint
from journeyman.reliability.learning import Learning, learning
from journeyman.reliability.lengths import BANDS, band
from journeyman.reliability.marathons import Marathons, marathons
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
    calls = sum(tool.calls for tool in tools)
    verdicts = [call.verdict for session in sessions for call in session.calls]
    status = Counter(verdict.status for verdict in verdicts)
    everything = _Tally()
    for session in sessions:
        everything.add([call.verdict for call in session.calls])
    rate = everything.as_group("all").rate
    types: Counter[ToolType] = Counter()
    for tool in tools:
        types[tool_type(tool.name)] += tool.calls
    failing = _failing(sessions)
    return Profile(
        sessions=len(sessions),
        sessions_without_calls=sum(not session.calls for session in sessions),
        calls=calls,
        ok=status["ok"],
        failed=status["failed"],
        invalid=status["invalid"],
        refused=status["refused"],
        interrupted=status["interrupted"],
        unknown=status["unknown"],
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
    tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
    if by == "length":
        for one in BANDS:
            tallies[one.name] = _Tally()
    for session in distinct(sessions):
        for name, verdicts in _parts(session, by).items():
            tallies[name].add(verdicts)
    groups = [tally.as_group(name) for name, tally in tallies.items()]
    if by != "length":
        groups.sort(key=lambda group: (-group.calls, group.name))
    return tuple(groups)


def _parts(session: JudgedSession, by: By) -> Mapping[str, list[Verdict]]:
    if by in ("tool", "model"):
        parts: defaultdict[str, list[Verdict]] = defaultdict(list)
        for call in session.calls:
            name = _tool(call) if by == "tool" else call.model or session.model or "unknown model"
            parts[name].append(call.verdict)
        return parts
    if by == "source":
        name = session.source or "unknown source"
    elif by == "project":
        name = session.project or "unknown project"
    else:
        name = band(session.messages) if by == "length" else task_type(session.calls)
    return {name: [call.verdict for call in session.calls]}


def _tool(call: JudgedCall) -> str:
    return call.tool or "unknown tool"


class _Tally:
    """What a group has so far."""

    def __init__(self) -> None:
        self.sessions = self.calls = self.counted = self.unknown = 0
        self.rows: list[tuple[int, int]] = []

    def add(self, verdicts: Sequence[Verdict]) -> None:
        self.sessions += 1
        self.calls += len(verdicts)
        errors = [verdict.is_error for verdict in verdicts if verdict.counts]
        self.unknown += sum(verdict.status == "unknown" for verdict in verdicts)
        if errors:
            self.counted += len(errors)
            self.rows.append((sum(errors), len(errors)))

    def as_group(self, name: str) -> Group:
        return Group(
            name=name,
            sessions=self.sessions,
            calls=self.calls,
            rate=rate_over_sessions(counts_of(self.rows)),
            apart=self.calls - self.counted - self.unknown,
            unknown=self.unknown,
        )


_Failing = tuple[str, list[tuple[SessionId, JudgedCall]]]


def _failing(sessions: Sequence[JudgedSession]) -> list[_Failing]:
    """The errors by their fingerprint, the commonest first."""
    prints: dict[str, str] = {}
    spelled: dict[str, str] = {}
    found: defaultdict[str, list[tuple[SessionId, JudgedCall]]] = defaultdict(list)
    for session in sessions:
        for call in session.calls:
            if call.verdict.is_error:
                evidence = call.verdict.evidence
                if evidence not in prints:
                    prints[evidence] = fingerprint(evidence)
                words = prints[evidence] or f"no words recorded ({call.verdict.rule})"
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
    return tuple(
        ToolProfile(
            tool=tool.name,
            type=tool_type(tool.name),
            sessions=tool.sessions,
            calls=tool.calls,
            share=tool.calls / calls,
            rate=tool.rate,
            apart=tool.apart,
            unknown=tool.unknown,
            commonest_failure=commonest.get(tool.name, (0, ""))[1],
        )
        for tool in tools
    )


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
