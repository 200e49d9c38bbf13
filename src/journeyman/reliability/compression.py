"""Compares the error rate after each context compression with the rate before it, to see whether
the agent kept its proficiency. The caller splits the calls at the compressions, using parent
sessions and the generations inside one session.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt
from typing import Literal

from msgspec import Struct

from journeyman.records import JudgedCall, Verdict
from journeyman.reliability.groups import calls_without_tools
from journeyman.reliability.rates import (
    Difference,
    Rate,
    change_text,
    newcombe,
    percent,
    rate_of,
    wilson,
)

TOLERATED_RATIO = 1.2
"""Proficiency counts as preserved if the rate after is at most this many times the rate before."""

MIN_CALLS_PER_SIDE = 20
"""Calls needed on each side. With fewer, a single call moves the rate by more than five points,
which is about the size of a typical error rate."""

CompressionState = Literal["preserved", "lost", "undecided"]


class CallSegment(Struct, frozen=True, kw_only=True):
    """The calls between two compressions, in order; the label states where they are from."""

    label: str
    calls: tuple[JudgedCall, ...]


class ToolChange(Struct, frozen=True, kw_only=True):
    """A tool with counted calls before and after."""

    tool: str
    before: Rate
    after: Rate


class CompressionStep(Struct, frozen=True, kw_only=True):
    """One compression. Differences are the rate after minus the rate before: negative is
    improvement.

    Work changes along a session, and some tools fail more often than others, so the second
    difference covers only tools used on both sides, with the rate before weighted by how often each
    was used after. `worse_tools` are the tools whose rate rose, those with the most excess errors
    first.
    """

    before_label: str
    after_label: str
    before: Rate
    after: Rate
    difference: Difference
    same_tools_difference: Difference
    worse_tools: tuple[ToolChange, ...]
    state: CompressionState
    reading: str


class CompressionReport(Struct, frozen=True, kw_only=True):
    """The compressions of one lineage, in order. The state is `lost` if any step is, `preserved` if
    all are, and None without a compression. The note states what is unknown about the lineage.
    """

    steps: tuple[CompressionStep, ...]
    state: CompressionState | None
    reading: str
    note: str = ""

    @property
    def is_within_tolerance(self) -> bool | None:
        """Whether no rate exceeded the tolerated ratio, regardless of chance; None if unknown."""
        sides = [(step.before, step.after) for step in self.steps]
        if not sides or not all(was.total and now.total for was, now in sides):
            return None
        return not any(_exceeds(was, now) for was, now in sides)


def compression(
    segments: Sequence[CallSegment], note: str = "", *, trivial: Iterable[str] = ()
) -> CompressionReport:
    """Report how each compression affected the error rate, without the calls of `trivial` tools.

    Lost: the rate is more than 1.2 times the rate before, and the intervals of both the difference
    and the difference for the same tools lie above zero. Preserved: the rate is at most 1.2 times
    the rate before, and neither interval lies above zero. Everything else is undecided, including
    a step with too few calls on a side, whose interval would rule out nothing, and one without a
    tool that was used on both sides. The intervals treat calls as independent, although the same
    mistake made five times in a row is weaker evidence than five mistakes.
    """
    left_out = frozenset(trivial)
    segments = [
        CallSegment(label=segment.label, calls=calls_without_tools(segment.calls, left_out))
        for segment in segments
    ]
    steps = tuple(_step(before, after) for before, after in pairwise(segments))
    if not steps:
        reading = "There is no session to examine."
        if segments:
            reading = f"{segments[0].label or 'The session'} was never compressed."
        return CompressionReport(steps=(), state=None, reading=reading, note=note)
    states = Counter(step.state for step in steps)
    state: CompressionState = "undecided"
    if states["lost"]:
        state = "lost"
    elif states["preserved"] == len(steps):
        state = "preserved"
    where = f"{states[state]} of {len(steps)} compressions"
    reading = f"Proficiency was {state} at {where}."
    if state == "undecided":
        reading = f"The data do not decide whether proficiency was preserved at {where}."
    return CompressionReport(steps=steps, state=state, reading=reading, note=note)


def _step(before: CallSegment, after: CallSegment) -> CompressionStep:
    was = rate_of(call.verdict for call in before.calls)
    now = rate_of(call.verdict for call in after.calls)
    tools = _tool_changes(before.calls, after.calls)
    same_before, same_after = _same_tools(tools)
    difference = newcombe(now, was)
    same_difference = newcombe(same_after, same_before, method="Newcombe 95 %, like with like")
    state, why = _judge(was, now, difference, same_difference)
    worse = tuple(change for change in tools if _excess_errors(change) > 0)
    if worse and state == "lost":
        why += f" Worse than before: {', '.join(change.tool for change in worse[:3])}."
    return CompressionStep(
        before_label=before.label,
        after_label=after.label,
        before=was,
        after=now,
        difference=difference,
        same_tools_difference=same_difference,
        worse_tools=worse,
        state=state,
        reading=f"{state.capitalize()}: {why}",
    )


def _judge(
    was: Rate, now: Rate, difference: Difference, same_tools: Difference
) -> tuple[CompressionState, str]:
    if min(was.total, now.total) < MIN_CALLS_PER_SIDE:
        return "undecided", (
            f"not enough data. There are {was.total} counted calls before and {now.total} after; "
            f"at least {MIN_CALLS_PER_SIDE} are needed on each side."
        )
    assert difference.low is not None
    assert difference.high is not None
    rates = (
        f"{percent(was)} of {was.total} calls failed before, "
        f"{percent(now)} of {now.total} calls failed after "
        f"({change_text(now.bounds[1] - was.bounds[1])})"
    )
    if same_tools.low is None:
        return "undecided", (
            f"{rates}, but no tool was used on both sides, so the same work cannot be compared."
        )
    exceeds = _exceeds(was, now)
    is_certain, is_certain_by_tool = difference.low > 0, same_tools.low > 0
    more = f"more than {TOLERATED_RATIO} times as often"
    if exceeds and is_certain and is_certain_by_tool:
        return "lost", f"{rates}, {more}, which chance is unlikely to explain."
    if exceeds:
        what = "for the same tools this" if is_certain else "this"
        return "undecided", f"{rates}, {more}, but {what} may be due to chance."
    if is_certain:
        return "undecided", f"{rates}, significantly more often, but not {more}."
    if is_certain_by_tool:
        return "undecided", (
            f"{rates}, but for the same tools the rate is higher; the change of tools hides it."
        )
    if difference.high < 0:
        return "preserved", f"{rates}, significantly less often."
    return "preserved", (
        f"{rates}, not {more}. A rise of more than {difference.high * 100:.1f} points is unlikely."
    )


def _exceeds(was: Rate, now: Rate) -> bool:
    # Products of counts, because a quotient of two rates is not exact.
    return now.errors * was.total > TOLERATED_RATIO * was.errors * now.total


def _tool_changes(*sides: Iterable[JudgedCall]) -> list[ToolChange]:
    """Return the tools that have counted calls before and after."""
    verdicts: list[defaultdict[str, list[Verdict]]] = []
    for calls in sides:
        verdicts.append(defaultdict(list))
        for call in calls:
            if call.verdict.counts:
                verdicts[-1][call.tool or "unknown tool"].append(call.verdict)
    was, now = verdicts
    changes = [
        ToolChange(tool=tool, before=rate_of(was[tool]), after=rate_of(now[tool]))
        for tool in was.keys() & now
    ]
    return sorted(changes, key=lambda change: (-_excess_errors(change), change.tool))


def _excess_errors(change: ToolChange) -> float:
    before, after = change.before, change.after
    return (after.errors * before.total - before.errors * after.total) / before.total


def _same_tools(changes: Sequence[ToolChange]) -> tuple[Rate, Rate]:
    """Return the rates before and after over the same tools, weighted by their use after. The
    interval before combines those of the tools in the way that Newcombe combines two.
    """
    after = wilson(sum(c.after.errors for c in changes), sum(c.after.total for c in changes))
    errors = sum(change.before.errors for change in changes)
    total = sum(change.before.total for change in changes)
    if total == 0:
        return wilson(0, 0), after
    middle = down = up = 0.0
    for change in changes:
        share = change.after.total / after.total
        low, estimate, high = change.before.bounds
        middle += share * estimate
        down += (share * (estimate - low)) ** 2
        up += (share * (high - estimate)) ** 2
    before = Rate(
        errors=errors,
        total=total,
        estimate=middle,
        low=max(0.0, middle - sqrt(down)),
        high=min(1.0, middle + sqrt(up)),
        method="Wilson 95 %, tools weighted as after",
    )
    return before, after
