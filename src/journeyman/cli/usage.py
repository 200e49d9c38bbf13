"""`journeyman usage`: shows the tokens and cost of sessions."""

from functools import partial
from typing import Any, get_args

import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import choice
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.usage import UsageBy, UsageReport


@context.command(is_paged=True)
@choice("--by", "Group the rows by this.", get_args(UsageBy), default="model")
@context.session_options
def usage(
    journeyman: Journeyman, *, by: UsageBy, filters: context.SessionFilters, as_json: bool
) -> None:
    """Show the tokens that sessions used, and their cost.

    Input excludes tokens served from or written to a cache, which have their own columns.
    Reasoning is part of the output. Recorded costs are shown unchanged; others are estimated from
    the prices of the models. Unrecorded values are not counted as zero: they are shown as a dot,
    and incomplete sums are marked.

    Examples:
      journeyman usage --by day --since 2026-11-01
      journeyman usage --by task --source hermes
    """
    report = journeyman.accounting.report(by, **filters)
    if as_json:
        context.print_json(report)
        return
    if not report.sessions and (message := context.no_match_message(journeyman, filters)):
        raise WrongInput(message)
    _show(formatting.console(), report)


def _count(header: str, field: str, width: int = 0, **layout: Any) -> Column:
    show = formatting.short_count if field.endswith("_tokens") else formatting.count
    return Column(
        header,
        lambda line: show(getattr(line, field)),
        min_terminal_width=width,
        numeric=True,
        **layout,
    )


_COLUMNS = (
    _count("sessions", "sessions", 100),
    _count("calls", "api_calls"),
    _count("input", "input_tokens"),
    _count("cache\nread", "cache_read_tokens"),
    _count("cache\nwrite", "cache_write_tokens", 60),
    _count("output", "output_tokens"),
    _count("reasoning", "reasoning_tokens", 72, optional=True),
)


def _show(console: Console, report: UsageReport) -> None:
    if not report.sessions:
        console.print("No sessions are stored. `journeyman import` imports sessions.")
    elif not report.rows:
        sessions = formatting.pluralize(report.sessions, "session")
        console.print(f"{sessions} without usage: not every program records the tokens it uses.")
    else:
        total = msgspec.structs.replace(report.total, key="all") if len(report.rows) > 1 else None
        unnamed = "main" if report.by == "task" else f"unknown {report.by}"
        names = {line.key: line.key or unnamed for line in report.rows}
        if report.by == "session":
            names |= context.short_ids(names)
        digits = 2 if (report.total.cost_usd or 0) >= 1 else 4
        columns = (
            Column(
                report.by, lambda line: names.get(line.key, "all"), overflow="fold", min_width=10
            ),
            *_COLUMNS,
            Column("cost", partial(formatting.short_cost, digits=digits), numeric=True),
        )
        console.print(formatting.fit_table(report.rows, columns, console.width, total=total))
        if notes := _notes(report):
            console.print("", Text(notes, style="dim"), sep="\n")


def _notes(report: UsageReport) -> str:
    total, notes = report.total, []
    calls = formatting.pluralize(total.api_calls, "call")
    if total.unknown_cost:
        notes.append(f"≥ at least: the cost of {total.unknown_cost:,} of {calls} is not known.")
    if total.estimated_share:
        notes.append("~ estimated from the prices of the models.")
    if total.unknown_tokens:
        notes.append(f"The tokens of {total.unknown_tokens:,} of {calls} were not all recorded.")
    if silent := report.sessions - total.sessions:
        sessions = formatting.pluralize(report.sessions, "session")
        notes.append(f"{silent:,} of {sessions} recorded no usage.")
    return " ".join(notes)
