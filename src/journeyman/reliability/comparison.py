"""Warm against cold: did sessions that started with experience make fewer errors than sessions
that did not? Two single sessions or two sets; which session is which the caller knows.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from journeyman.records.verdict import JudgedSession
from journeyman.reliability.clusters import (
    Contrast,
    Counts,
    contrast_sessions,
    contrast_sets,
    counts_of,
    distinct,
)
from journeyman.reliability.differences import (
    CallsNeeded,
    Difference,
    calls_to_decide,
    fisher_exact,
)
from journeyman.reliability.rates import Rate
from journeyman.reliability.wording import errors_than, missing, percent, span

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
        rows: list[tuple[int, int]] = []
        by_tool: dict[str, list[tuple[int, int]]] = {}
        for session in self.sessions:
            counted = [call for call in session.calls if call.verdict.counts]
            calls = Counter(call.tool for call in counted)
            errors = Counter(call.tool for call in counted if call.verdict.is_error)
            if calls:
                rows.append((errors.total(), calls.total()))
            for tool in calls:
                by_tool.setdefault(tool, []).append((errors[tool], calls[tool]))
        self.counts = counts_of(rows)
        self.tools = {tool: counts_of(found) for tool, found in by_tool.items()}

    def side(self, rate: Rate) -> Side:
        return Side(
            sessions=len(self.sessions),
            with_calls=len(self.counts),
            calls=rate.total,
            rate=rate,
        )


def compare(warm: Sequence[JudgedSession], cold: Sequence[JudgedSession]) -> Comparison:
    """Warm against cold. The interval decides; between two single sessions Fisher's test must
    agree with it.
    """
    sides = _Counted(warm), _Counted(cold)
    single = all(len(side.sessions) == 1 for side in sides)
    found = _contrast(sides[0].counts, sides[1].counts, single=single)
    fisher_p = fisher_exact(found.first, found.second)
    verdict = _verdict(found.difference, fisher_p if single else None)
    needed = _needed(found)
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


def _verdict(difference: Difference, fisher_p: float | None) -> Finding:
    if not difference.decided or (fisher_p is not None and fisher_p >= SIGNIFICANT):
        return "undecided"
    assert difference.estimate is not None
    return "better" if difference.estimate < 0 else "worse"


def _needed(found: Contrast) -> CallsNeeded:
    if found.design_effect is None:
        return CallsNeeded(calls=None, note="too little is known of how much sessions differ")
    return calls_to_decide(found.first, found.second, design_effect=found.design_effect)


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
    if difference.estimate is None:
        return f"Not enough data to compare warm with cold: {missing(difference.note)}."
    if difference.low is None:
        short = f"Not enough data to compare warm with cold: {missing(difference.note)}."
        return f"{short} So far the error rates are {rates}."
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
