"""The reliability profile of one or many sessions: error rates by tool, by type and by length,
early and late, and the most common failures.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import inf
from typing import get_args

from msgspec import Struct

from journeyman.records import (
    REFUSER_PHRASES,
    JudgedCall,
    JudgedSession,
    Refuser,
    SessionId,
    VerdictKind,
    VerdictStatus,
)
from journeyman.reliability.clusters import counts_of, distinct, rate_over_sessions
from journeyman.reliability.fingerprints import fingerprint
from journeyman.reliability.groups import Group, grouped, tool_name, without_tools
from journeyman.reliability.learning_curve import LearningEffect, learning
from journeyman.reliability.lengths import Marathons, marathons
from journeyman.reliability.rates import Rate
from journeyman.reliability.task_types import TaskType, dominant_type, tool_type
from journeyman.reliability.warm_up import WarmUp, warm_up

COMMONEST_FAILURES = 10


class FailureExample(Struct, frozen=True, kw_only=True):
    """A failed call: where to find it, and the text and the rule that it was judged by."""

    session: SessionId
    call_index: int
    tool: str
    rule: str
    evidence: str


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Failures with the same text except for names, numbers and paths. Kind and status are the most
    frequent ones; tools are sorted by how often they failed this way; the example is the earliest.
    """

    fingerprint: str
    kind: VerdictKind
    status: VerdictStatus
    tools: tuple[str, ...]
    count: int
    sessions: int
    example: FailureExample


class Profile(Struct, frozen=True, kw_only=True):
    """The reliability of a set of sessions.

    The six counts after `calls` add up to it. `no_match` counts the calls among them that are
    searches without a match and tests that are false, which are not errors. `refused_by` counts the
    refused calls by who refused them, the most frequent first. `lengths` always holds the three
    bands, the shortest first. `types` are the sessions by type of work, with early and late calls.
    `left_out` counts, by tool, the calls of trivial tools that are not in any other
    number. `further_failures` counts the groups of failures that are not listed, and
    `further_errors` the errors in them. `bots` counts the sessions of bots that were left out.
    """

    sessions: int
    messages: int
    calls: int
    ok: int
    failed: int
    invalid: int
    refused: int
    interrupted: int
    unknown: int
    no_match: int
    refused_by: dict[Refuser, int]
    rate: Rate
    task_type: TaskType
    tools: tuple[Group, ...]
    left_out: dict[str, int]
    failures: tuple[FailureGroup, ...]
    further_failures: int
    further_errors: int
    lengths: tuple[Group, ...]
    types: tuple[Group, ...]
    warm_up: WarmUp
    marathons: Marathons
    learning: LearningEffect
    note: str
    bots: int = 0


def profile(sessions: Sequence[JudgedSession], *, trivial: Iterable[str] = ()) -> Profile:
    """Return the profile of these sessions, each counted once, without the calls of `trivial`
    tools. The note states if there are no sessions or calls.
    """
    every_call = Counter(
        tool_name(call) for session in distinct(sessions) for call in session.calls
    )
    sessions = distinct(without_tools(sessions, trivial))
    tools = grouped(sessions, "tool")
    calls = sum(len(session.calls) for session in sessions)
    verdicts = [call.verdict for session in sessions for call in session.calls]
    status = Counter(verdict.status for verdict in verdicts)
    rate = rate_over_sessions(counts_of([session.calls for session in sessions]))
    types = Counter(tool_type(call.tool) for session in sessions for call in session.calls)
    failures = _failures(sessions)
    return Profile(
        sessions=len(sessions),
        messages=sum(session.messages for session in sessions),
        calls=calls,
        **{name: status[name] for name in get_args(VerdictStatus)},
        no_match=sum(verdict.kind == "no_match" for verdict in verdicts),
        refused_by=dict(
            Counter(one.by for one in verdicts if one.status == "refused").most_common()
        ),
        rate=rate,
        task_type=dominant_type(types),
        tools=tools,
        left_out=dict(
            (every_call - Counter({tool.name: tool.calls for tool in tools})).most_common()
        ),
        failures=tuple(_failure_group(*failure) for failure in failures[:COMMONEST_FAILURES]),
        further_failures=max(0, len(failures) - COMMONEST_FAILURES),
        further_errors=sum(len(failed) for _, failed in failures[COMMONEST_FAILURES:]),
        lengths=grouped(sessions, "length"),
        types=grouped(sessions, "type", with_learning=True),
        warm_up=warm_up(sessions),
        marathons=marathons(sessions),
        learning=learning(sessions),
        note=_note(len(sessions), calls, rate),
    )


def refusers(profile: Profile) -> str:
    """Return who refused how many calls, in brackets; empty if that is not known of any."""
    counts = profile.refused_by.items()
    parts = [f"{count:,} {REFUSER_PHRASES[by]}" for by, count in counts if by]
    return f" ({', '.join(parts)})" if parts else ""


_FailedCall = tuple[JudgedSession, JudgedCall]
_Failure = tuple[str, list[_FailedCall]]


def _failures(sessions: Sequence[JudgedSession]) -> list[_Failure]:
    """Return the errors by fingerprint, the most common first."""
    spellings: dict[str, str] = {}
    by_text: defaultdict[str, list[_FailedCall]] = defaultdict(list)
    for session in sessions:
        for call in session.calls:
            if call.verdict.is_error:
                text = fingerprint(call.verdict.evidence)
                text = text or f"no message recorded ({call.verdict.rule})"
                # Programs differ in how they capitalise the same message.
                by_text[spellings.setdefault(text.lower(), text)].append((session, call))
    return sorted(by_text.items(), key=lambda failure: (-len(failure[1]), failure[0]))


def _failure_group(text: str, failed: Sequence[_FailedCall]) -> FailureGroup:
    times = [session.started_at if call.at is None else call.at for session, call in failed]
    earliest = min((inf if time is None else time, at) for at, time in enumerate(times))[1]
    session, first = failed[earliest]
    tools = Counter(tool_name(call) for _, call in failed)
    return FailureGroup(
        fingerprint=text,
        kind=Counter(call.verdict.kind for _, call in failed).most_common(1)[0][0],
        status=Counter(call.verdict.status for _, call in failed).most_common(1)[0][0],
        tools=tuple(sorted(tools, key=lambda tool: (-tools[tool], tool))),
        count=len(failed),
        sessions=len({session.id for session, _ in failed}),
        example=FailureExample(
            session=session.id,
            call_index=first.index,
            tool=tool_name(first),
            rule=first.verdict.rule,
            evidence=first.verdict.evidence,
        ),
    )


def _note(sessions: int, calls: int, rate: Rate) -> str:
    if sessions == 0:
        return "There are no sessions to profile."
    if calls == 0:
        return "There are no tool calls in these sessions, so there is nothing to measure."
    if rate.total == 0:
        return "No call can be counted: all were refused, interrupted or have an unknown result."
    return ""
