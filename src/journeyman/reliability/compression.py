"""Whether an agent kept its proficiency when its context was compressed: the error rate right
after each compression against the rate right before it. Which calls lie between which compressions
the caller knows, from parent sessions and from generations inside one session.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt
from typing import Literal

from msgspec import Struct

from journeyman.records import JudgedCall, Verdict
from journeyman.reliability.rates import Difference, Rate, newcombe, percent, rate_of, wilson

TOLERATED_RATIO = 1.2
"""Up to so many times the rate before, the rate after counts as preserved."""

FEWEST_CALLS = 20
"""Needed on each side. With fewer, a single call moves the rate by more than five points, which is
about as much as a whole error rate usually is."""

State = Literal["preserved", "lost", "undecided"]


class Stretch(Struct, frozen=True, kw_only=True):
    """The calls between two compressions, in order; the label says where they are from."""

    label: str
    calls: tuple[JudgedCall, ...]


class ToolChange(Struct, frozen=True, kw_only=True):
    """A tool with calls that count before and after."""

    tool: str
    before: Rate
    after: Rate


class Step(Struct, frozen=True, kw_only=True):
    """One compression. `difference` is the rate after minus the rate before; `ratio` is None when
    there was no error before.

    Work changes along a session, and some tools fail more often than others; so the rates stand
    beside a comparison of like with like, over the tools used on both sides. There the rate before
    is what the tools' own rates before would give if they had been used as often as after.
    `worse_tools` are those whose rate went up, the one with the most errors too many first.
    """

    before_label: str
    after_label: str
    before: Rate
    after: Rate
    ratio: float | None
    difference: Difference
    same_tools_before: Rate
    same_tools_after: Rate
    same_tools_difference: Difference
    worse_tools: tuple[ToolChange, ...]
    state: State
    reading: str


class CompressionReport(Struct, frozen=True, kw_only=True):
    """The compressions of one lineage, in order. It is `lost` if any step is and `preserved` if all
    are; None when there was no compression. The note says what of the lineage is not known.
    """

    steps: tuple[Step, ...]
    state: State | None
    reading: str
    note: str = ""


def compression(stretches: Sequence[Stretch], note: str = "") -> CompressionReport:
    """What each compression did to the error rate.

    Lost: the rate is more than 1.2 times what it was, and both the difference and the one between
    the same tools are above zero with their whole interval. Preserved: the rate is at most 1.2
    times what it was, and neither interval lies above zero. Everything else is undecided, and so is
    a step with too few calls on a side, where an interval contradicts nothing, or without a tool
    that was used on both sides. The intervals take each call for itself, though the same mistake
    made five times in a row is less than five mistakes.
    """
    steps = tuple(_step(before, after) for before, after in pairwise(stretches))
    if not steps:
        reading = "There is no session to look at."
        if stretches:
            reading = f"{stretches[0].label or 'The session'} was never compressed."
        return CompressionReport(steps=(), state=None, reading=reading, note=note)
    states = Counter(step.state for step in steps)
    state: State = "undecided"
    if states["lost"]:
        state = "lost"
    elif states["preserved"] == len(steps):
        state = "preserved"
    where = "the one compression"
    if len(steps) > 1:
        where = f"{states[state]} of {len(steps)} compressions"
    words = {"lost": "Proficiency was lost at", "preserved": "Proficiency was preserved at"}
    reading = f"{words.get(state, 'It is undecided at')} {where}."
    return CompressionReport(steps=steps, state=state, reading=reading, note=note)


def _step(before: Stretch, after: Stretch) -> Step:
    was = rate_of(call.verdict for call in before.calls)
    now = rate_of(call.verdict for call in after.calls)
    tools = _changes(before.calls, after.calls)
    tools_were, tools_are = _same_tools(tools)
    difference = newcombe(now, was)
    alike = newcombe(tools_are, tools_were, method="Newcombe 95 %, like with like")
    state, why = _judged(was, now, difference, alike)
    worse = tuple(one for one in tools if _errors_too_many(one) > 0)
    if worse and state == "lost":
        why += f" Worse than before: {', '.join(one.tool for one in worse[:3])}."
    return Step(
        before_label=before.label,
        after_label=after.label,
        before=was,
        after=now,
        ratio=now.estimate / was.estimate if was.estimate and now.estimate is not None else None,
        difference=difference,
        same_tools_before=tools_were,
        same_tools_after=tools_are,
        same_tools_difference=alike,
        worse_tools=worse,
        state=state,
        reading=f"{state.capitalize()}: {why}",
    )


def _judged(was: Rate, now: Rate, difference: Difference, alike: Difference) -> tuple[State, str]:
    if min(was.total, now.total) < FEWEST_CALLS:
        return "undecided", (
            f"{was.total} calls before and {now.total} after can be counted, and at least "
            f"{FEWEST_CALLS} are needed on each side."
        )
    assert difference.low is not None
    assert difference.high is not None
    rates = f"{_shown(was)} before, {_shown(now)} after"
    if alike.low is None:
        return "undecided", (
            f"{rates}, but no tool was used on both sides, so like cannot be compared with like."
        )
    # Products of counts, since a quotient of two rates is not exact.
    much = now.errors * was.total > TOLERATED_RATIO * was.errors * now.total
    certain, certain_alike = difference.low > 0, alike.low > 0
    more = f"more than {TOLERATED_RATIO} times as often"
    if much and certain and certain_alike:
        return "lost", f"{rates}, {more}, and that is hardly chance."
    if much and certain:
        return "undecided", f"{rates}, {more}, but with the same tools it may be chance."
    if much:
        return "undecided", f"{rates}, {more}, but it may be chance."
    if certain:
        return "undecided", f"{rates}, surely more often, but not {more}."
    if certain_alike:
        return "undecided", f"{rates}, but tool by tool, more fail now; easier work hides it."
    if difference.high < 0:
        return "preserved", f"{rates}, surely less often."
    return "preserved", (
        f"{rates}, not {more}. A rise of more than {difference.high * 100:.1f} points is unlikely."
    )


def _shown(rate: Rate) -> str:
    return f"{percent(rate)} of {rate.total} calls failed"


def _changes(*sides: Iterable[JudgedCall]) -> list[ToolChange]:
    """The tools that have calls that count before and after."""
    found: list[defaultdict[str, list[Verdict]]] = []
    for calls in sides:
        found.append(defaultdict(list))
        for call in calls:
            if call.verdict.counts:
                found[-1][call.tool or "unknown tool"].append(call.verdict)
    was, now = found
    changes = [
        ToolChange(tool=tool, before=rate_of(was[tool]), after=rate_of(now[tool]))
        for tool in was.keys() & now
    ]
    return sorted(changes, key=lambda one: (-_errors_too_many(one), one.tool))


def _errors_too_many(change: ToolChange) -> float:
    before, after = change.before, change.after
    return (after.errors * before.total - before.errors * after.total) / before.total


def _same_tools(changes: Sequence[ToolChange]) -> tuple[Rate, Rate]:
    """The rates before and after over the same tools, used as often as they were after. The
    interval before joins those of the tools in the way that Newcombe joins two.
    """
    after = wilson(
        sum(one.after.errors for one in changes), sum(one.after.total for one in changes)
    )
    errors = sum(one.before.errors for one in changes)
    total = sum(one.before.total for one in changes)
    if total == 0:
        return wilson(0, 0), after
    middle = down = up = 0.0
    for one in changes:
        share = one.after.total / after.total
        low, estimate, high = one.before.bounds
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
