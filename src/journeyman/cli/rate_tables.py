"""Rates, differences between them and medians on a terminal: as tables and in words."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.formatting import Column
from journeyman.reliability import By
from journeyman.reliability.groups import Group
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
_WIDE: dict[str, Any] = {"numeric": True, "min_terminal_width": 72}
_MEDIUM: dict[str, Any] = {"numeric": True, "min_terminal_width": 50}


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
        Column("95 % interval", lambda row: interval(row[-1]), **_MEDIUM),
    )
    formatting.print_table(console, rows, columns, "")


def show_groups(console: Console, by: By, groups: Sequence[Group]) -> None:
    """Print the error rates of groups, and whether agents improve within their sessions, as far as
    that was measured. By type, it is an answer too that it could not be.
    """
    rows = [(group.name, group.sessions, group.rate.total, group.rate) for group in groups]
    show_rates(console, by, ("sessions", "counted"), rows)
    compared = [(group.name, group.learning) for group in groups if group.learning]
    measured = [(name, effect) for name, effect in compared if effect.stratified.low is not None]
    if measured:
        formatting.print_heading(console, "Early and late calls, by the same tools")
        columns = (
            Column(by, itemgetter(0), min_width=8, overflow="fold"),
            Column("early", lambda row: percent(row[1].early.estimate), **_WIDE),
            Column("late", lambda row: percent(row[1].late.estimate), **_WIDE),
            Column("same tools", lambda row: change(row[1].stratified), numeric=True),
            Column("95 % interval", lambda row: change_interval(row[1].stratified), **_MEDIUM),
        )
        formatting.print_table(console, measured, columns, "")
    for name, effect in compared if by == "type" else measured:
        if by == "type" or effect.stratified.decided:
            console.print(Text.assemble((f"{readable(name)}: ", "bold"), effect.reading))


def show_warm_up(console: Console, sides: Mapping[str, WarmUp]) -> None:
    """Print how sessions get going: one column of figures for each side."""
    turns = next(iter(sides.values())).turns
    figures: dict[str, Callable[[WarmUp], str]] = {
        f"errors in the first {turns} turns": lambda one: _rate(one.first_turns),
        "calls to the first success": lambda one: _median(one.calls, _decimal),
        "time to the first success": lambda one: _median(one.seconds, abbreviate_duration),
        "sessions without a success": lambda one: f"{one.without_success:,}",
    }
    rows = [(name, *map(figure, sides.values())) for name, figure in figures.items()]
    formatting.print_heading(console, "How sessions get going")
    console.print(formatting.table("", *sides, numbers=[*sides], rows=rows))


def _rate(rate: Rate) -> str:
    within = rate_interval_text(rate)
    return f"{percent(rate.estimate)} ({within})" if within else formatting.UNKNOWN


def _median(value: Median, text: Callable[[float], str]) -> str:
    """Return a median with its interval."""
    bounds = (value.estimate, value.low, value.high)
    shown = [text(bound) for bound in bounds if bound is not None]
    if len(shown) < 3:
        return shown[0] if shown else formatting.UNKNOWN
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _decimal(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")
