"""Rates, differences between them and medians on a terminal: as tables, bars and words."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.formatting import Column, Name
from journeyman.reliability import By
from journeyman.reliability.groups import Group
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.rates import (
    Difference,
    Rate,
    change_text,
    interval_text,
    percent_text,
    rate_interval_text,
)
from journeyman.reliability.warm_up import Median, WarmUp
from journeyman.text.display import readable
from journeyman.text.durations import abbreviate_duration

_SPARK_LEVELS = "▁▂▃▄▅▆▇█"
_MIN_NAME_WIDTH = 16
_BAR_WIDTH = 12
_MIN_WIDE = 100


def percent(value: float | None) -> str:
    return formatting.UNKNOWN if value is None else percent_text(value)


def interval(rate: Rate) -> str:
    """Return the interval of a rate in percent."""
    return rate_interval_text(rate) or formatting.UNKNOWN


def change(difference: Difference) -> str:
    """Return a difference in percentage points, in words: 2.3 fewer, 1.0 more. Without enough data
    for an interval, it is unknown: from two sessions it could be anything.
    """
    if difference.estimate is None or difference.low is None:
        return formatting.UNKNOWN
    text = change_text(difference.estimate)
    return text if text == "no difference" else f"{text.split()[0]} {text.split()[2]}"


def change_interval(difference: Difference) -> str:
    """Return the interval of a difference, in words."""
    return interval_text(difference) or formatting.UNKNOWN


def sparkline(rates: Sequence[Rate]) -> str:
    """Return the rates as a row of small columns."""
    most = max((rate.estimate or 0.0 for rate in rates), default=0.0) or 1.0
    steps = len(_SPARK_LEVELS) - 1
    return "".join(
        formatting.UNKNOWN
        if rate.estimate is None
        else _SPARK_LEVELS[round(rate.estimate / most * steps)]
        for rate in rates
    )


def scale(rates: Sequence[Rate]) -> float:
    """Return the top of the scale that the bars share. An interval that reaches far beyond every
    rate is cut off; otherwise a tool with a single failed call would flatten all other bars.
    """
    most = max((rate.estimate or 0.0 for rate in rates), default=0.0)
    highest = max((rate.high or 0.0 for rate in rates), default=0.0)
    return min(highest, max(2 * most, 0.05)) or 1.0


def bar(rate: Rate, top: float) -> Text:
    """Return the rate as a dot on its interval: ──●─────."""
    if rate.estimate is None or rate.low is None or rate.high is None:
        return Text("")
    start, dot, end = (
        min(_BAR_WIDTH - 1, int(value / top * _BAR_WIDTH))
        for value in (rate.low, rate.estimate, rate.high)
    )
    colour = "red" if rate.errors else "green"
    before, after = ("─" * (dot - start), "dim"), ("─" * (end - dot), "dim")
    return Text.assemble(" " * start, before, ("●", colour), after, no_wrap=True)


def show_rates(
    console: Console, header: str, counts: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Print a table of rates; a row is a name, its counts and the rate. Numbers are never
    truncated: the bars are shown only where every name fits beside them, a narrow terminal drops
    the counts and the interval, and names are truncated.
    """
    top = scale([row[-1] for row in rows])
    shortest = min(_MIN_NAME_WIDTH, max((len(row[0]) for row in rows), default=1))
    columns = (
        Column(header, lambda row: Name(row[0]), min_width=shortest),
        *(
            Column(count, itemgetter(index), min_terminal_width=46 + 10 * len(counts), numeric=True)
            for index, count in enumerate(counts, 1)
        ),
        Column("errors", lambda row: row[-1].errors if row[-1].total else None, numeric=True),
        Column("rate", lambda row: percent(row[-1].estimate), numeric=True),
        Column("95 % interval", lambda row: interval(row[-1]), min_terminal_width=50, numeric=True),
    )
    bars = Column("", lambda row: bar(row[-1], top), min_terminal_width=72)
    table = formatting.fit_table(rows, (*columns, bars), console.width)
    if not formatting.fits(console, table):
        table = formatting.fit_table(rows, columns, console.width)
    console.print(table)


def show_groups(console: Console, by: By, groups: Sequence[Group]) -> None:
    """Print the error rates of groups."""
    has_words = by == "length" and console.width >= _MIN_WIDE
    words: dict[str, str] = {
        band.name: f" ({band.words})" for band in BANDS if band.words and has_words
    }
    rows = [
        (group.name + words.get(group.name, ""), group.sessions, group.rate.total, group.rate)
        for group in groups
    ]
    show_rates(console, by, ("sessions", "counted"), rows)


def show_early_and_late(console: Console, by: By, groups: Sequence[Group]) -> None:
    """Print whether agents improve within the sessions of each group that has enough of them. The
    figure that pools all tools is shown only beside the one that compares each tool with itself.
    """
    compared = [(group, group.learning) for group in groups if group.learning is not None]
    compared = [(group, effect) for group, effect in compared if effect.sessions]
    measured = [(group, effect) for group, effect in compared if effect.stratified.low is not None]
    if not (measured or (compared and by == "type")):
        return
    formatting.print_heading(console, "Early and late calls, by the same tools")
    columns = (
        Column(by, lambda row: Name(row[0].name), min_width=8),
        Column(
            "early",
            lambda row: percent(row[1].early.estimate),
            min_terminal_width=72,
            numeric=True,
        ),
        Column(
            "late", lambda row: percent(row[1].late.estimate), min_terminal_width=72, numeric=True
        ),
        Column(
            "all tools pooled",
            lambda row: change(row[1].crude),
            min_terminal_width=_MIN_WIDE,
            numeric=True,
        ),
        Column("same tools", lambda row: change(row[1].stratified), numeric=True),
        Column(
            "95 % interval",
            lambda row: change_interval(row[1].stratified),
            min_terminal_width=50,
            numeric=True,
        ),
    )
    if measured:
        console.print(formatting.fit_table(measured, columns, console.width))
    for group, effect in compared:
        # By type, what is not known is an answer too; of many groups only what is known.
        if by == "type" or effect.stratified.decided:
            console.print(Text.assemble((f"{readable(group.name)}: ", "bold"), effect.reading))


def show_warm_up(console: Console, sides: Sequence[tuple[str, WarmUp]]) -> None:
    """Print how sessions get going: one column of figures for each side."""
    names = [name for name, _ in sides]
    warm_ups = [warm_up for _, warm_up in sides]
    rows: list[tuple[str, ...]] = [
        (
            f"errors in the first {warm_ups[0].turns} turns",
            *(_rate_with_interval(one.first_turns) for one in warm_ups),
        ),
        ("calls to the first success", *(_median(one.calls) for one in warm_ups)),
        ("time to the first success", *(_median(one.seconds, seconds=True) for one in warm_ups)),
        ("sessions without a success", *(f"{one.without_success:,}" for one in warm_ups)),
        ("different tools in a session", *(_median(one.tools) for one in warm_ups)),
        ("effective number of tools", *(_median(one.diversity) for one in warm_ups)),
    ]
    console.print(formatting.table("", *names, numbers=names, rows=rows))


def _rate_with_interval(rate: Rate) -> str:
    if rate.estimate is None:
        return formatting.UNKNOWN
    return f"{percent(rate.estimate)} ({interval(rate)})"


def _median(value: Median, *, seconds: bool = False) -> str:
    """Return a median with its interval."""
    if value.estimate is None:
        return formatting.UNKNOWN
    show = abbreviate_duration if seconds else _short
    text = show(value.estimate)
    if value.low is None or value.high is None:
        return text
    return f"{text} ({show(value.low)} to {show(value.high)})"


def _short(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")
