"""Warm against cold: did sessions that started with experience make fewer errors than sessions
that did not? Two single sessions or two sets; which session is which the caller knows.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from journeyman.records.verdict import JudgedCall, JudgedSession
from journeyman.reliability.clusters import (
    Contrast,
    Counts,
    contrast_sessions,
    contrast_sets,
    counts_of,
    distinct,
)
from journeyman.reliability.rates import (
    CallsNeeded,
    Difference,
    Rate,
    calls_to_decide,
    errors_than,
    fisher_exact,
    missing,
    percent,
    span,
)

Finding = Literal["better", "worse", "undecided"]
"""Better: warm makes fewer errors."""

SIGNIFICANT = 0.05

_SIDES = ("warm", "cold")


class Side(Struct, frozen=True, kw_only=True):
    """One side: its sessions, those of them with calls that count, these calls and their rate."""

    sessions: int
    with_calls: int
    calls: int
    rate: Rate


class ToolRow(Struct, frozen=True, kw_only=True):
    """One tool on both sides. For display: with many tools, one will differ by chance."""

    tool: str
    warm: Rate
    cold: Rate
    difference: Difference


class Comparison(Struct, frozen=True, kw_only=True):
    """Warm against cold. The difference is warm minus cold, so negative is fewer errors in warm.
    `fisher_p` is None when a side has no calls; `note` says what to keep in mind.
    """

    warm: Side
    cold: Side
    difference: Difference
    fisher_p: float | None
    verdict: Finding
    calls_to_decide: CallsNeeded
    tools: tuple[ToolRow, ...]
    note: str
    reading: str


class _Counted:
    """The errors and calls of a side's sessions, in all and by tool."""

    def __init__(self, sessions: Sequence[JudgedSession]) -> None:
        self.sessions = distinct(sessions)
        self.ids = {session.id for session in self.sessions}
        self.counts = counts_of(session.calls for session in self.sessions)
        by_tool: defaultdict[str, list[list[JudgedCall]]] = defaultdict(list)
        for session in self.sessions:
            for tool in dict.fromkeys(call.tool for call in session.calls if call.verdict.counts):
                by_tool[tool].append([call for call in session.calls if call.tool == tool])
        self.tools = {tool: counts_of(found) for tool, found in by_tool.items()}

    def side(self, rate: Rate) -> Side:
        sessions, with_calls = len(self.sessions), len(self.counts)
        return Side(sessions=sessions, with_calls=with_calls, calls=rate.total, rate=rate)


def compare(warm: Sequence[JudgedSession], cold: Sequence[JudgedSession]) -> Comparison:
    """Warm against cold. The interval decides; between two single sessions Fisher's test must
    agree with it.
    """
    sides = _Counted(warm), _Counted(cold)
    single = all(len(side.sessions) == 1 for side in sides)
    found = _contrast(sides[0].counts, sides[1].counts, single=single)
    fisher_p = fisher_exact(found.first, found.second)
    verdict: Finding = "undecided"
    if found.difference.decided and not (single and (fisher_p or 0) >= SIGNIFICANT):
        verdict = "better" if (found.difference.estimate or 0) < 0 else "worse"
    needed = CallsNeeded(calls=None, note="too little is known of how much sessions differ")
    if found.design_effect is not None:
        effect = found.design_effect
        needed = calls_to_decide(found.first, found.second, design_effect=effect)
    return Comparison(
        warm=sides[0].side(found.first),
        cold=sides[1].side(found.second),
        difference=found.difference,
        fisher_p=fisher_p,
        verdict=verdict,
        calls_to_decide=needed,
        tools=_tools(*sides, single=single),
        note=_note(*sides, single=single, has_interval=found.difference.low is not None),
        reading=_reading(found, verdict, needed, single=single),
    )


def _contrast(warm: Counts, cold: Counts, *, single: bool) -> Contrast:
    return contrast_sessions(warm, cold) if single else contrast_sets(warm, cold, _SIDES)


def _tools(warm: _Counted, cold: _Counted, *, single: bool) -> tuple[ToolRow, ...]:
    rows = []
    for tool in {**warm.tools, **cold.tools}:
        counts = [side.tools.get(tool, counts_of([])) for side in (warm, cold)]
        found = _contrast(*counts, single=single)
        rows.append(
            ToolRow(tool=tool, warm=found.first, cold=found.second, difference=found.difference)
        )
    return tuple(sorted(rows, key=lambda row: (-row.warm.total - row.cold.total, row.tool)))


def _note(warm: _Counted, cold: _Counted, *, single: bool, has_interval: bool) -> str:
    notes = []
    shared = len(warm.ids & cold.ids)
    if shared:
        said = "1 session is" if shared == 1 else f"{shared} sessions are"
        notes.append(f"{said} on both sides, which hides a difference.")
    if single:
        notes.append("Two single sessions speak for themselves, not for warm and cold in general.")
    elif has_interval:
        notes.append(
            "Fisher's test takes all calls for independent, which calls of one session are not;"
            " go by the interval."
        )
    return " ".join(notes)


def _reading(found: Contrast, verdict: Finding, needed: CallsNeeded, *, single: bool) -> str:
    difference = found.difference
    rates = f"{percent(found.first)} against {percent(found.second)}"
    if difference.estimate is None or difference.low is None:
        short = f"Not enough data to compare warm with cold: {missing(difference.note)}."
        known = difference.estimate is not None
        return f"{short} So far the error rates are {rates}." if known else short
    warm, cold = ("The warm session", "the cold one") if single else ("Warm sessions", "cold ones")
    said = (
        f"{warm} made {errors_than(difference.estimate)} {cold}"
        f" ({rates}; 95 % interval: {span(difference)})."
    )
    if verdict != "undecided":
        return f"{said} That is more than chance explains."
    said += " That may be chance"
    if needed.calls is None:
        return f"{said}."
    return f"{said}; about {needed.calls:,} calls a side would decide a difference of this size."
