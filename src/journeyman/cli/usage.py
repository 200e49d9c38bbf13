"""`journeyman usage`: shows the tokens and cost of sessions."""

from collections.abc import Iterator
from functools import partial
from typing import get_args

import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import choice
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.usage import UsageBy, UsageLine, UsageReport


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
      journeyman usage
      journeyman usage --by day --since 2026-11-01
      journeyman usage --by task --source hermes
      journeyman usage --by project
    """
    report = journeyman.accounting.report(by, **filters)
    if as_json:
        context.print_json(report)
        return
    if not report.sessions and (message := context.no_match_message(journeyman, filters)):
        raise WrongInput(message)
    _show(formatting.console(), report)


_COLUMNS = (
    ("sessions", "sessions", 100),
    ("calls", "api_calls", 0),
    ("input", "input_tokens", 0),
    ("cache read", "cache_read_tokens", 0),
    ("cache write", "cache_write_tokens", 60),
    ("output", "output_tokens", 0),
    ("reasoning", "reasoning_tokens", 72),
)
"""The numeric columns: header, field, and the terminal width from which the column is shown."""


def _show(console: Console, report: UsageReport) -> None:
    if not report.sessions:
        console.print("No sessions are stored. `journeyman import` imports sessions.")
    elif not report.rows:
        sessions = formatting.pluralize(report.sessions, "session")
        console.print(f"{sessions} without usage: not every program records the tokens it uses.")
    else:
        total = msgspec.structs.replace(report.total, key="all") if len(report.rows) > 1 else None
        columns = _columns(report)
        console.print(formatting.fit_table(report.rows, columns, console.width, total=total))
        if notes := _notes(report):
            console.print("", Text(notes, style="dim"), sep="\n")


def _columns(report: UsageReport) -> Iterator[Column]:
    unnamed = "main" if report.by == "task" else f"unknown {report.by}"
    names = {line.key: line.key or unnamed for line in report.rows}
    if report.by == "session":
        names |= context.short_ids(line.key for line in report.rows)
    yield Column(
        report.by, lambda line: names.get(line.key, line.key), overflow="fold", min_width=10
    )
    for header, field, least in _COLUMNS:
        if field == "reasoning_tokens" and not report.total.reasoning_tokens:
            continue
        # The words of a header are stacked.
        name, cell = header.replace(" ", "\n"), partial(_number, field)
        yield Column(name, cell, min_terminal_width=least, numeric=True)
    digits = 2 if (report.total.cost_usd or 0) >= 1 else 4
    yield Column("cost", partial(formatting.short_cost, digits=digits), numeric=True)


def _number(field: str, line: UsageLine) -> str:
    show = formatting.short_count if field.endswith("_tokens") else formatting.count
    return show(getattr(line, field))


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
