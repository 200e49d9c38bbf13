"""`journeyman profile`: shows how reliable the tool calls of sessions were."""

import time
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import PlaybookMistake
from journeyman.reliability import By
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.profile import FailureGroup, Group, Profile, grouped, profile
from journeyman.reliability.rates import Difference, Rate
from journeyman.reliability.reports import write_chart, write_html_report
from journeyman.text.display import readable

_MAX_REMEDIES = 3
_SPARK_LEVELS = "▁▂▃▄▅▆▇█"
_MIN_NAME_WIDTH = 16
_BAR_WIDTH = 12

_file = click.Path(path_type=Path, dir_okay=False)
_MAX_TOOLS, _MAX_FAILURES = 12, 10


@context.command(name="profile")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@option("--by", "Break the error rates down by this.", type=click.Choice(get_args(By)))
@context.session_options
@option("--plot FILE", "Draw the error rates to FILE (.png or .svg).", type=_file)
@option("--html FILE", "Write the report as a single HTML page.", type=_file)
def profile_command(
    journeyman: Journeyman,
    *,
    sessions: tuple[str, ...],
    by: By | None,
    filters: context.SessionFilters,
    plot: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show how reliable the tool calls of sessions were.

    Without SESSION, covers all stored sessions that match the options. Errors are calls that
    failed or were invalid. Calls that a person refused or that were interrupted say nothing about
    a tool and are counted separately. Each call is judged once, and the verdict is stored.

    Examples:
      journeyman profile
      journeyman profile --by model
      journeyman profile --by length --source claude_code
      journeyman profile --by tool --project .
      journeyman profile SESSION
      journeyman profile --plot reliability.png
      journeyman profile --html report.html
    """
    with formatting.counting_bar("Judging") as progress:
        judged = journeyman.judged(sessions or None, progress=progress, **filters)
    if not judged and (message := context.no_match_message(journeyman, filters)):
        raise WrongInput(message)
    report = profile(judged)
    if plot:
        write_chart(report, plot)
    if html:
        write_html_report(report, judged, html, made_at=time.time())
    groups = grouped(judged, by) if by else ()
    remedies = journeyman.remedies(session.id for session in judged)[:_MAX_REMEDIES]
    if as_json:
        document = msgspec.to_builtins(report) | {"remedies": remedies}
        context.print_json(document | {"by": by, "groups": groups} if by else document)
        return
    console = formatting.console()
    if by:
        show_summary(console, report)
        console.print()
        show_groups(console, by, groups)
    else:
        show_profile(console, report)
    show_remedies(console, remedies, failures=report.rate.errors)
    for path in (plot, html):
        if path:
            console.print(f"Written: {path}", style="dim", soft_wrap=True)


def show_profile(console: Console, report: Profile) -> None:
    show_summary(console, report)
    if not report.rate.total:
        return
    formatting.print_heading(console, "By tool")
    show_tools(console, report, limit=_MAX_TOOLS)
    if report.failures:
        formatting.print_heading(console, "Most frequent failures")
        for failure in report.failures[:_MAX_FAILURES]:
            show_failure(console, failure)
        if report.further_failures:
            others = formatting.pluralize(report.further_failures, "other kind")
            errors = formatting.pluralize(report.further_errors, "error")
            console.print(f"and {others} of failure with {errors}", style="dim")
    if report.sessions > 1:
        formatting.print_heading(console, "By session length")
        show_groups(console, "length", report.lengths)
        console.print(Text(report.marathons.reading))
    formatting.print_heading(console, "Over the course of a session")
    learning, curve = report.learning, report.curve
    if curve.sessions:
        highest = percent(max(rate.estimate or 0.0 for rate in curve.parts))
        end = f" end   up to {highest}, in sessions with ten calls or more"
        console.print(Text.assemble("beginning ", (sparkline(curve.parts), "red"), end))
    if learning.early.total:
        before, after = percent(learning.early.estimate), percent(learning.late.estimate)
        compared = (
            ("all calls together", before, after, learning.crude),
            ("tool by tool", "", "", learning.stratified),
            ("later use of a tool", "", "", learning.first_later),
        )
        headers = ("rate before", "rate after", "points", "95 % interval")
        rows = ((*row[:3], points(row[3]), interval(row[3])) for row in compared)
        console.print(formatting.table("late versus early", *headers, numbers=headers, rows=rows))
    console.print(Text(learning.reading))


def show_summary(console: Console, report: Profile) -> None:
    sessions, calls = (
        formatting.pluralize(report.sessions, "session"),
        formatting.pluralize(report.calls, "call"),
    )
    console.print(Text(f"{sessions}, {calls}", style="bold"))
    if report.note:
        console.print(report.note)
        if not report.sessions:
            console.print("`journeyman import` imports sessions.", style="dim")
        return
    rate = report.rate
    part = f"{percent(rate.estimate)} of {formatting.pluralize(rate.total, 'call')}"
    errors = f" ({formatting.pluralize(rate.errors, 'error')}; 95 % interval {interval(rate)})"
    console.print(Text.assemble("Errors: ", (part, "bold"), errors))
    counts = (report.refused, report.interrupted, report.unknown)
    words = ("refused", "interrupted", "of unknown outcome")
    separate = [f"{count:,} {word}" for count, word in zip(counts, words, strict=True) if count]
    if separate:
        console.print(f"Counted separately: {', '.join(separate)}.", style="dim")
    if report.no_match:
        searches = formatting.pluralize(report.no_match, "search or test", "searches or tests")
        console.print(f"Not errors: {searches} with a negative result.", style="dim")
    console.print(f"Kind of work: {report.task_type}.", style="dim")


def show_tools(console: Console, report: Profile, *, limit: int) -> None:
    rows = [(tool.tool, tool.rate.total, tool.rate) for tool in report.tools[:limit]]
    show_rates(console, "tool", ("counted",), rows)
    formatting.print_remainder(
        console, len(report.tools), limit, ": journeyman profile --by tool", noun="tool"
    )


def show_groups(console: Console, by: By, groups: Sequence[Group]) -> None:
    has_words = by == "length" and console.width >= 100
    words: dict[str, str] = {
        band.name: f" ({band.words})" for band in BANDS if band.words and has_words
    }
    rows = [
        (group.name + words.get(group.name, ""), group.sessions, group.rate.total, group.rate)
        for group in groups
    ]
    show_rates(console, by, ("sessions", "counted"), rows)


def show_failure(console: Console, failure: FailureGroup) -> None:
    tools = ", ".join(failure.tools[:3]) + (", …" if len(failure.tools) > 3 else "")
    head = Text(f"{failure.count:>4,}× ", style="bold")
    head.append(formatting.one_line(failure.fingerprint, max(console.width - 7, 30)), style="")
    console.print(head)
    where = f"{formatting.short_id(failure.example.session)}, call {failure.example.call_index + 1}"
    about = f"{tools} · {failure.kind or failure.status} · first in {where}"
    console.print(Text("      " + formatting.one_line(about, console.width - 7), style="dim"))


def show_remedies(console: Console, remedies: Sequence[PlaybookMistake], *, failures: int) -> None:
    """Show the fixes that would prevent most failures, as observed in the sessions."""
    if not remedies:
        return
    from journeyman.templates.briefing import remedy_text  # noqa: PLC0415 - loads slowly

    formatting.print_heading(console, "Fixes that would prevent most failures")
    for mistake in remedies:
        target = mistake.target or mistake.tool
        share = f"{mistake.times} of {failures:,} failures"
        line = f'{target}: "{mistake.error}", {share}, fixed by {remedy_text(mistake.remedy)}'
        console.print(Text(f"- {readable(line)}"))


def percent(value: float | None) -> str:
    return formatting.UNKNOWN if value is None else f"{100 * value:.1f} %"


def points(difference: Difference) -> str:
    """Return a difference of two rates in percentage points, with its sign."""
    return (
        formatting.UNKNOWN if difference.estimate is None else f"{100 * difference.estimate:+.1f}"
    )


def interval(estimate: Rate | Difference) -> str:
    """Return the interval of a rate in percent, or of a difference in points."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return formatting.UNKNOWN
    if isinstance(estimate, Rate):
        return f"{100 * low:.1f} to {100 * high:.1f} %"
    return f"{100 * low:+.1f} to {100 * high:+.1f}"


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
    truncated: in a narrow terminal the bars are dropped first, then the counts and the interval,
    and names are truncated.
    """
    top = scale([row[-1] for row in rows])
    shortest = min(_MIN_NAME_WIDTH, max((len(row[0]) for row in rows), default=1))

    def name(row: tuple[Any, ...]) -> Text:
        return Text(readable(row[0]), no_wrap=True, overflow="ellipsis")

    columns = (
        Column(header, name, min_width=shortest),
        *(
            Column(count, itemgetter(index), min_terminal_width=46 + 10 * len(counts), numeric=True)
            for index, count in enumerate(counts, 1)
        ),
        Column("errors", lambda row: row[-1].errors if row[-1].total else None, numeric=True),
        Column("rate", lambda row: percent(row[-1].estimate), numeric=True),
        Column("95 % interval", lambda row: interval(row[-1]), min_terminal_width=50, numeric=True),
        Column("", lambda row: bar(row[-1], top), min_terminal_width=72),
    )
    console.print(formatting.fit_table(rows, columns, console.width))
