"""Compares the error rates of warm sessions, which started with experience, and of cold sessions,
which did not: two single sessions or two sets. The caller decides which session is warm.
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
    compared_text,
    fisher_exact,
    interval_text,
    percent,
    shortage_text,
)

Conclusion = Literal["better", "worse", "undecided"]
"""Better: the error rate of warm is lower."""

SIGNIFICANCE_LEVEL = 0.05

_SIDES = ("warm", "cold")


class Side(Struct, frozen=True, kw_only=True):
    """One side: its sessions, those of them with counted calls, these calls and their rate."""

    sessions: int
    with_calls: int
    calls: int
    rate: Rate


class ToolRow(Struct, frozen=True, kw_only=True):
    """One tool on both sides. For display only: among many tools, some will differ by chance."""

    tool: str
    warm: Rate
    cold: Rate
    difference: Difference


class Comparison(Struct, frozen=True, kw_only=True):
    """Warm against cold. The difference is warm minus cold: negative means a lower error rate in
    warm. `fisher_p` is None if a side has no calls; `note` states what to keep in mind.
    """

    warm: Side
    cold: Side
    difference: Difference
    fisher_p: float | None
    verdict: Conclusion
    calls_to_decide: CallsNeeded
    tools: tuple[ToolRow, ...]
    note: str
    reading: str


class _SideCounts:
    """The errors and calls of a side's sessions, in total and by tool."""

    def __init__(self, sessions: Sequence[JudgedSession]) -> None:
        self.sessions = distinct(sessions)
        self.ids = {session.id for session in self.sessions}
        self.counts = counts_of(session.calls for session in self.sessions)
        by_tool: defaultdict[str, list[list[JudgedCall]]] = defaultdict(list)
        for session in self.sessions:
            for tool in dict.fromkeys(call.tool for call in session.calls if call.verdict.counts):
                by_tool[tool].append([call for call in session.calls if call.tool == tool])
        self.tools = {tool: counts_of(calls) for tool, calls in by_tool.items()}

    def side(self, rate: Rate) -> Side:
        sessions, with_calls = len(self.sessions), len(self.counts)
        return Side(sessions=sessions, with_calls=with_calls, calls=rate.total, rate=rate)


def compare(warm: Sequence[JudgedSession], cold: Sequence[JudgedSession]) -> Comparison:
    """Compare warm with cold sessions. The interval decides; for two single sessions Fisher's test
    must agree with it.
    """
    sides = _SideCounts(warm), _SideCounts(cold)
    single = all(len(side.sessions) == 1 for side in sides)
    contrast = _contrast(sides[0].counts, sides[1].counts, single=single)
    fisher_p = fisher_exact(contrast.first, contrast.second)
    verdict: Conclusion = "undecided"
    if contrast.difference.decided and not (single and (fisher_p or 0) >= SIGNIFICANCE_LEVEL):
        verdict = "better" if (contrast.difference.estimate or 0) < 0 else "worse"
    needed = CallsNeeded(calls=None, note="too little is known about how much sessions differ")
    if contrast.design_effect is not None:
        effect = contrast.design_effect
        needed = calls_to_decide(contrast.first, contrast.second, design_effect=effect)
    return Comparison(
        warm=sides[0].side(contrast.first),
        cold=sides[1].side(contrast.second),
        difference=contrast.difference,
        fisher_p=fisher_p,
        verdict=verdict,
        calls_to_decide=needed,
        tools=_tools(*sides, single=single),
        note=_note(*sides, single=single, has_interval=contrast.difference.low is not None),
        reading=_reading(contrast, verdict, needed, single=single),
    )


def _contrast(warm: Counts, cold: Counts, *, single: bool) -> Contrast:
    return contrast_sessions(warm, cold) if single else contrast_sets(warm, cold, _SIDES)


def _tools(warm: _SideCounts, cold: _SideCounts, *, single: bool) -> tuple[ToolRow, ...]:
    rows = []
    for tool in {**warm.tools, **cold.tools}:
        counts = [side.tools.get(tool, counts_of([])) for side in (warm, cold)]
        contrast = _contrast(*counts, single=single)
        first, second = contrast.first, contrast.second
        rows.append(ToolRow(tool=tool, warm=first, cold=second, difference=contrast.difference))
    return tuple(sorted(rows, key=lambda row: (-row.warm.total - row.cold.total, row.tool)))


def _note(warm: _SideCounts, cold: _SideCounts, *, single: bool, has_interval: bool) -> str:
    notes = []
    shared = len(warm.ids & cold.ids)
    if shared:
        sessions = "1 session is" if shared == 1 else f"{shared} sessions are"
        notes.append(f"{sessions} on both sides, which hides a difference.")
    if single:
        notes.append("The result applies to these two sessions, not to warm and cold in general.")
    elif has_interval:
        notes.append(
            "Fisher's test treats all calls as independent, but calls within one session are"
            " correlated; rely on the interval."
        )
    return " ".join(notes)


def _reading(contrast: Contrast, verdict: Conclusion, needed: CallsNeeded, *, single: bool) -> str:
    difference = contrast.difference
    rates = f"{percent(contrast.first)} against {percent(contrast.second)}"
    if difference.estimate is None or difference.low is None:
        shortage = f"Not enough data to compare warm with cold: {shortage_text(difference.note)}."
        if difference.estimate is None:
            return shortage
        return f"{shortage} So far the error rates are {rates}."
    warm, cold = ("the warm session", "the cold one") if single else ("warm sessions", "cold ones")
    reading = (
        f"The error rate of {warm} is {compared_text(difference.estimate, f'that of {cold}')}"
        f" ({rates}; 95 % interval: {interval_text(difference)})."
    )
    if verdict != "undecided":
        return f"{reading} Chance is unlikely to explain this."
    reading += " This may be due to chance"
    if needed.calls is None:
        return f"{reading}."
    return (
        f"{reading}; about {needed.calls:,} calls per side would likely decide a difference of"
        " this size."
    )
