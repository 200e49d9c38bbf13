"""`journeyman usage`: what sessions used, and what it cost."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import get_args

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import option
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.usage import UsageBy, UsageLine, UsageReport


@asked.command()
@option("--by", "A line for each of these.", type=click.Choice(get_args(UsageBy)), default="model")
@asked.session_options
def usage(journeyman: Journeyman, *, by: UsageBy, chosen: asked.Chosen, as_json: bool) -> None:
    """Show the tokens that sessions used, and what they cost.

    Input is what the model read anew; what a cache served or stored stands beside it. Reasoning is
    part of the output. A cost that was recorded is shown as it is; others are estimated from the
    prices of the models. What was not recorded is not counted as zero: a dot stands for it, and a
    sum that lacks something is marked.

    Examples:
      journeyman usage
      journeyman usage --by day --since 2026-11-01
      journeyman usage --by task --source hermes
      journeyman usage --by project
      journeyman usage --project .
      journeyman usage --by source --json
    """
    report = journeyman.accounting.report(by, **chosen)
    if as_json:
        asked.print_json(report)
        return
    if not report.sessions and (said := asked.nothing_fits(journeyman, chosen)):
        raise WrongInput(said)
    _show(shown.console(), report)


_COLUMNS = (
    ("sessions", "sessions", 100),
    ("calls", "api_calls", 0),
    ("input", "input_tokens", 0),
    ("cache read", "cache_read_tokens", 0),
    ("cache write", "cache_write_tokens", 60),
    ("output", "output_tokens", 0),
    ("reasoning", "reasoning_tokens", 72),
)
"""The numbers of a line, their fields, and how wide a window has to be to show each."""


def _show(console: Console, report: UsageReport) -> None:
    if not report.sessions:
        console.print("No session is stored. `journeyman import` brings some in.")
    elif not report.rows:
        sessions = shown.many(report.sessions, "session")
        said = f"No usage was recorded in {sessions}: not every program writes down what it uses."
        console.print(said)
    else:
        total = msgspec.structs.replace(report.total, key="all") if len(report.rows) > 1 else None
        columns = _columns(report, console.width)
        console.print(shown.fitting_table(report.rows, columns, console.width, total=total))
        if notes := _notes(report):
            console.print("", Text(notes, style="dim"), sep="\n")


def _columns(report: UsageReport, width: int) -> Iterator[Column]:
    unnamed = "main" if report.by == "task" else shown.UNKNOWN
    yield Column(report.by, lambda line: line.key or unnamed, overflow="fold", min_width=10)
    for head, field, needs in _COLUMNS:
        if field == "reasoning_tokens" and not report.total.reasoning_tokens:
            continue
        show = shown.short_count if field.endswith("_tokens") else shown.count
        # One word above the other, where every character counts.
        name = head if width >= 100 else head.replace(" ", "\n")
        yield Column(name, partial(_number, show, field), needs=needs, number=True)
    digits = 2 if (report.total.cost_usd or 0) >= 1 else 4
    yield Column("cost", lambda line: _cost(line, digits), number=True)


def _number(show: Callable[[int | None], str], field: str, line: UsageLine) -> str:
    return show(getattr(line, field))


def _cost(line: UsageLine, digits: int) -> str:
    """The cost, with a sign where it is not the whole truth."""
    if line.cost_usd is None:
        return shown.UNKNOWN
    sign = "≥ " if line.unknown_cost else "~ " if line.estimated_share else ""
    least = 10**-digits
    if 0 < line.cost_usd < least and not line.unknown_cost:
        return f"< ${least:.{digits}f}"  # rounded it would read as nothing
    return f"{sign}${line.cost_usd:,.{digits}f}"


def _notes(report: UsageReport) -> str:
    total, said = report.total, []
    calls = shown.many(total.api_calls, "call")
    if total.unknown_cost == total.api_calls:
        said.append("No cost is known.")
    elif total.unknown_cost:
        said.append(f"≥ at least: the cost of {total.unknown_cost:,} of {calls} is not known.")
    if total.estimated_share:
        # Never rounded to nothing or to all.
        part = f"{min(max(round(100 * total.estimated_share), 1), 99)} % of the cost"
        part = "The cost" if total.estimated_share == 1 else part
        said.append(f"{part} is estimated (~).")
    if total.unknown_tokens:
        said.append(f"The tokens of {total.unknown_tokens:,} of {calls} were not all recorded.")
    if silent := report.sessions - total.sessions:
        said.append(f"{silent:,} of {shown.many(report.sessions, 'session')} recorded no usage.")
    return " ".join(said)
