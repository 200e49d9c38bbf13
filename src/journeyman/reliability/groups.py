"""Error rates of calls in groups: by tool, model, source, platform, project, day, length of the
session or type of work, and whether agents improve within the sessions of each group.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from journeyman.records import JudgedCall, JudgedSession
from journeyman.reliability import By
from journeyman.reliability.clusters import counts_of, distinct, rate_over_sessions
from journeyman.reliability.learning_curve import LearningEffect, learning
from journeyman.reliability.lengths import BANDS, length_band
from journeyman.reliability.rates import Rate
from journeyman.reliability.task_types import task_type


class Group(Struct, frozen=True, kw_only=True):
    """Calls that share a property. `apart` counts refused and interrupted calls, which say nothing
    about reliability; `unknown` counts calls with an unknown result.

    Calls within one session are correlated. From eight sessions on, the interval of the rate
    accounts for that; with fewer it treats calls as independent and is too narrow. The rate's
    method states which applies. `learning` compares late with early calls in the group, if that
    was requested; not by tool, where nothing but the tool's own calls would be early and late.
    """

    name: str
    sessions: int
    calls: int
    rate: Rate
    apart: int
    unknown: int
    learning: LearningEffect | None = None


def grouped(
    sessions: Sequence[JudgedSession],
    by: By,
    *,
    with_learning: bool = False,
    zone: tzinfo | None = None,
) -> tuple[Group, ...]:
    """Return the sessions' calls in groups, the largest first; lengths and days in their order, and
    all lengths. By tool, by model and by day, each call belongs to its own group, and a session
    counts in every group that it has calls in; otherwise a session is in one group with all its
    calls. Days are those of this machine, or of the time zone `zone`.
    """
    groups: defaultdict[str, list[JudgedSession]] = defaultdict(list)
    if by == "length":
        groups |= {name: [] for name in BANDS}
    for session in distinct(sessions):
        for name, calls in _calls_by_group(session, by, zone).items():
            groups[name].append(replace(session, calls=tuple(calls)))
    with_learning = with_learning and by != "tool"
    result = [
        _group(name, parts, learning(parts) if with_learning else None)
        for name, parts in groups.items()
    ]
    if by != "length":
        result.sort(key=lambda group: (0 if by == "day" else -group.calls, group.name))
    return tuple(result)


def _calls_by_group(
    session: JudgedSession, by: By, zone: tzinfo | None
) -> Mapping[str, Sequence[JudgedCall]]:
    if by in ("tool", "model", "day"):
        parts: defaultdict[str, list[JudgedCall]] = defaultdict(list)
        for call in session.calls:
            if by == "day":
                name = _day(session.started_at if call.at is None else call.at, zone)
            else:
                name = tool_name(call) if by == "tool" else call.model or session.model
            parts[name or f"unknown {by}"].append(call)
        return parts
    if by == "length":
        name = length_band(session.messages)
    elif by == "type":
        name = task_type(session.calls)
    else:
        name = getattr(session, by) or f"unknown {by}"
    return {name: session.calls}


def _group(name: str, sessions: Sequence[JudgedSession], effect: LearningEffect | None) -> Group:
    calls = [call for session in sessions for call in session.calls]
    rate = rate_over_sessions(counts_of(session.calls for session in sessions))
    unknown = sum(call.verdict.status == "unknown" for call in calls)
    return Group(
        name=name,
        sessions=len(sessions),
        calls=len(calls),
        rate=rate,
        apart=len(calls) - rate.total - unknown,
        unknown=unknown,
        learning=effect,
    )


def _day(at: float | None, zone: tzinfo | None) -> str:
    try:
        return "" if at is None else datetime.fromtimestamp(at, zone).date().isoformat()
    except (OverflowError, ValueError, OSError):  # a clock that was far off
        return ""


def tool_name(call: JudgedCall) -> str:
    """Return the name of a call's tool for reports."""
    return call.tool or "unknown tool"


def calls_without_tools(
    calls: Iterable[JudgedCall], names: Collection[str]
) -> tuple[JudgedCall, ...]:
    """Return the calls of other tools. A tool of an MCP server also goes by the name that it has on
    the server: `think` covers `mcp__server__think`.
    """
    return tuple(
        call
        for call in calls
        if call.tool not in names and call.tool.rpartition("__")[2] not in names
    )


def without_tools(
    sessions: Sequence[JudgedSession], names: Iterable[str]
) -> Sequence[JudgedSession]:
    """Return the sessions without the calls of these tools. Housekeeping tools hardly ever fail, so
    they lower an agent's error rate without saying anything about its work.
    """
    left_out = frozenset(names)
    return [
        replace(session, calls=calls_without_tools(session.calls, left_out)) for session in sessions
    ]
