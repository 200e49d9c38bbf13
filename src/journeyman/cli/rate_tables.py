"""Rates, differences between them and medians on a terminal: as tables and in words."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.formatting import Column
from journeyman.reliability import By
from journeyman.reliability.groups import Group
from journeyman.reliability.learning_curve import LearningEffect
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

_MIN_NAME_WIDTH = 16


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


def show_rates(
    console: Console, header: str, counts: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Print a table of rates; a row is a name, its counts and the rate. Numbers are never
    truncated: a narrow terminal drops the counts and the interval, and folds long names.
    """
    shortest = min(_MIN_NAME_WIDTH, max((len(row[0]) for row in rows), default=1))
    wide: dict[str, Any] = {"numeric": True, "min_terminal_width": 46 + 10 * len(counts)}
    columns = (
        Column(header, itemgetter(0), min_width=shortest, overflow="fold"),
        *(Column(count, itemgetter(at), **wide) for at, count in enumerate(counts, 1)),
        Column("errors", lambda row: row[-1].errors if row[-1].total else None, numeric=True),
        Column("rate", lambda row: percent(row[-1].estimate), numeric=True),
        Column("95 % interval", lambda row: interval(row[-1]), min_terminal_width=50, numeric=True),
    )
    console.print(formatting.fit_table(rows, columns, console.width))


def show_groups(console: Console, by: By, groups: Sequence[Group]) -> None:
    """Print the error rates of groups."""
    rows = [(group.name, group.sessions, group.rate.total, group.rate) for group in groups]
    show_rates(console, by, ("sessions", "counted"), rows)


def show_early_and_late(
    console: Console, by: By, groups: Sequence[tuple[str, LearningEffect | None]]
) -> None:
    """Print whether agents improve within the sessions of each named group that has enough of
    them. The figure that pools all tools is shown only beside the one that compares each tool with
    itself.
    """
    compared = [(name, effect) for name, effect in groups if effect and effect.sessions]
    measured = [row for row in compared if row[1].stratified.low is not None]
    if not (measured or (compared and by == "type")):
        return
    formatting.print_heading(console, "Early and late calls, by the same tools")
    wide: dict[str, Any] = {"numeric": True, "min_terminal_width": 72}
    columns = (
        Column(by, itemgetter(0), min_width=8, overflow="fold"),
        Column("early", lambda row: percent(row[1].early.estimate), **wide),
        Column("late", lambda row: percent(row[1].late.estimate), **wide),
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
    for name, effect in compared:
        # By type, what is not known is an answer too; of many groups only what is known.
        if by == "type" or effect.stratified.decided:
            console.print(Text.assemble((f"{readable(name)}: ", "bold"), effect.reading))


def show_warm_up(console: Console, sides: Sequence[tuple[str, WarmUp]]) -> None:
    """Print how sessions get going: one column of figures for each side."""
    names = [name for name, _ in sides]
    warm_ups = [warm_up for _, warm_up in sides]
    rates = [(percent(one.first_turns.estimate), interval(one.first_turns)) for one in warm_ups]
    rows: list[tuple[str, ...]] = [
        (
            f"errors in the first {warm_ups[0].turns} turns",
            *(
                rate if rate == formatting.UNKNOWN else f"{rate} ({within})"
                for rate, within in rates
            ),
        ),
        ("calls to the first success", *(_median(one.calls) for one in warm_ups)),
        ("time to the first success", *(_median(one.seconds, seconds=True) for one in warm_ups)),
        ("sessions without a success", *(f"{one.without_success:,}" for one in warm_ups)),
    ]
    console.print(formatting.table("", *names, numbers=names, rows=rows))


def _median(value: Median, *, seconds: bool = False) -> str:
    """Return a median with its interval."""
    bounds = (value.estimate, value.low, value.high)
    shown = [
        abbreviate_duration(bound) if seconds else f"{bound:,.1f}".removesuffix(".0")
        for bound in bounds
        if bound is not None
    ]
    if len(shown) < 3:
        return shown[0] if shown else formatting.UNKNOWN
    return f"{shown[0]} ({shown[1]} to {shown[2]})"
