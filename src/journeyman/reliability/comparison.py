"""Compares the error rates of warm sessions, which started with experience, and of cold sessions,
which did not: two single sessions or two sets. The caller decides which session is warm.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from journeyman.records.verdict import JudgedSession
from journeyman.reliability.clusters import (
    Contrast,
    Counts,
    contrast_sessions,
    contrast_sets,
    counts_of,
    distinct,
    session_shortage,
)
from journeyman.reliability.groups import without_tools
from journeyman.reliability.learning_curve import (
    bootstrap_difference,
    table_by_tool,
    tools_on_both_sides,
)
from journeyman.reliability.rates import (
    Difference,
    Rate,
    change_text,
    interval_text,
    percent,
    shortage_text,
)
from journeyman.reliability.warm_up import WarmUp, first_calls, warm_up

Conclusion = Literal["better", "worse", "undecided"]
"""Better: the error rate of warm is lower."""

_SIDES = ("warm", "cold")
_BY_TOOL = "Mantel-Haenszel by tool, bootstrap over sessions 95 %"


class Side(Struct, frozen=True, kw_only=True):
    """One side: its sessions, their counted calls and the rate of these, and how its sessions get
    going.
    """

    sessions: int
    calls: int
    rate: Rate
    warm_up: WarmUp


class Comparison(Struct, frozen=True, kw_only=True):
    """Warm against cold. Differences are warm minus cold: negative is improvement. `difference`
    pools all tools; `same_tools` compares each tool with itself; `first_turns` covers the first
    turns of the sessions. `note` states what to keep in mind.
    """

    warm: Side
    cold: Side
    difference: Difference
    same_tools: Difference
    first_turns: Difference
    verdict: Conclusion
    note: str
    reading: str


class _SideCounts:
    """The errors and calls of a side's sessions."""

    def __init__(self, sessions: Sequence[JudgedSession]) -> None:
        self.sessions = distinct(sessions)
        self.ids = {session.id for session in self.sessions}
        self.counts = counts_of(session.calls for session in self.sessions)

    def side(self, rate: Rate) -> Side:
        return Side(
            sessions=len(self.sessions),
            calls=rate.total,
            rate=rate,
            warm_up=warm_up(self.sessions),
        )


def compare(
    warm: Sequence[JudgedSession],
    cold: Sequence[JudgedSession],
    *,
    trivial: Iterable[str] = (),
) -> Comparison:
    """Compare warm with cold sessions, without the calls of `trivial` tools. The interval decides,
    but a difference that turns around when each tool is compared with itself decides nothing.
    """
    left_out = frozenset(trivial)
    sides = (
        _SideCounts(without_tools(warm, left_out)),
        _SideCounts(without_tools(cold, left_out)),
    )
    single = all(len(side.sessions) == 1 for side in sides)
    contrast = _contrast(sides[0].counts, sides[1].counts, single=single)
    first_turns = [counts_of(map(first_calls, side.sessions)) for side in sides]
    same_tools = _same_tools(*sides)
    turned = (contrast.difference.estimate or 0) * (same_tools.estimate or 0) < 0
    verdict: Conclusion = "undecided"
    if contrast.difference.decided and not turned:
        verdict = "better" if (contrast.difference.estimate or 0) < 0 else "worse"
    return Comparison(
        warm=sides[0].side(contrast.first),
        cold=sides[1].side(contrast.second),
        difference=contrast.difference,
        same_tools=same_tools,
        first_turns=_contrast(*first_turns, single=single).difference,
        verdict=verdict,
        note=_note(*sides, single=single),
        reading=_reading(contrast, same_tools, verdict, single=single),
    )


def _contrast(warm: Counts, cold: Counts, *, single: bool) -> Contrast:
    return contrast_sessions(warm, cold) if single else contrast_sets(warm, cold, _SIDES)


def _same_tools(warm: _SideCounts, cold: _SideCounts) -> Difference:
    """Return the difference with each tool compared with itself; only tools used on both sides have
    a weight.
    """
    tables = [
        table_by_tool((call, is_warm) for call in session.calls if call.verdict.counts)
        for side, is_warm in ((warm, True), (cold, False))
        for session in side.sessions
    ]
    having = "tools used on both sides"
    difference = bootstrap_difference(tools_on_both_sides(tables), method=_BY_TOOL, having=having)
    note = session_shortage(len(warm.counts), which="warm") or session_shortage(
        len(cold.counts), which="cold"
    )
    if not note or difference.low is None:
        return difference
    return replace(difference, low=None, high=None, note=note)


def _note(warm: _SideCounts, cold: _SideCounts, *, single: bool) -> str:
    notes = []
    shared = len(warm.ids & cold.ids)
    if shared:
        sessions = "1 session is" if shared == 1 else f"{shared} sessions are"
        notes.append(f"{sessions} on both sides, which hides a difference.")
    if single:
        notes.append("The result applies to these two sessions, not to warm and cold in general.")
    return " ".join(notes)


def _reading(
    contrast: Contrast, same_tools: Difference, verdict: Conclusion, *, single: bool
) -> str:
    difference = contrast.difference
    rates = f"{percent(contrast.first)} against {percent(contrast.second)}"
    if difference.estimate is None or difference.low is None:
        shortage = f"Not enough data to compare warm with cold: {shortage_text(difference.note)}."
        if difference.estimate is None:
            return shortage
        return f"{shortage} So far the error rates are {rates}."
    warm = "The warm session has" if single else "Warm sessions have"
    cold = "the cold one" if single else "cold ones"
    reading = (
        f"{warm} {change_text(difference.estimate, than=cold)}"
        f" ({rates}; 95 % interval: {interval_text(difference)})."
    )
    by_tool = ""
    if same_tools.estimate is not None:
        change = change_text(same_tools.estimate)
        if difference.estimate * same_tools.estimate < 0:
            return (
                f"{reading} Tool by tool it is the other way round ({change}): the two sides use"
                " different tools, so this decides nothing."
            )
        if change != change_text(difference.estimate):
            by_tool = f" Tool by tool: {change}."
    if verdict != "undecided":
        return f"{reading} Chance is unlikely to explain this.{by_tool}"
    return f"{reading} This may be due to chance.{by_tool}"
