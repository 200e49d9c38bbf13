"""`journeyman profile`: shows how reliable the tool calls of sessions were."""

from pathlib import Path
from typing import get_args

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, files, formatting
from journeyman.cli.context import choice, flag, option
from journeyman.cli.rate_tables import (
    interval,
    percent,
    show_groups,
    show_rates,
    show_warm_up,
)
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.reliability import By
from journeyman.reliability.profile import FailureGroup, Profile, refusers
from journeyman.reliability.rates import shown_with_worst
from journeyman.text.display import readable

_MAX_LEFT_OUT, _MAX_TOOLS = 6, 12


@context.command(name="profile", is_paged=True)
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@choice("--by", "Break the error rates down by this.", get_args(By))
@context.session_options
@option("--plot FILE.svg", "Draw the error rates to an SVG file.", type=click.Path(path_type=Path))
@files.force_option
@context.include_trivial_option
@flag("--raw", "Keep secrets and personal data in names, --json and --plot: for your eyes only.")
def profile_command(
    journeyman: Journeyman,
    *,
    sessions: tuple[str, ...],
    by: By | None,
    filters: context.SessionFilters,
    plot: Path | None,
    force: bool,
    include_trivial: bool,
    raw: bool,
    as_json: bool,
) -> None:
    """Show how reliable the tool calls of sessions were.

    Without SESSION, covers all stored sessions that match the options. Errors are calls that
    failed or were invalid. Calls that a person refused or that were interrupted say nothing about
    a tool and are counted separately. Each call is judged once, and the verdict is stored. With
    --by, the chart shows the same groups.

    Examples:
      journeyman profile
      journeyman profile --by length --source claude_code
      journeyman profile --by type --include-trivial
      journeyman profile --plot reliability.svg
    """
    if plot:
        if plot.suffix.lower() != ".svg":
            raise WrongInput(f"A chart cannot be written to {plot}: its name must end in .svg.")
        files.refuse_overwriting(plot, force=force)
    if by == "platform" and not sessions:
        filters.setdefault("bots", True)
    with formatting.counting_bar("Judging") as progress:
        reliability = journeyman.reliability(
            sessions or None,
            include_trivial=include_trivial,
            raw=raw,
            progress=progress,
            **filters,
        )
    report = reliability.profile()
    groups = reliability.grouped(by) if by else ()
    if plot:
        from journeyman.reliability.charts import draw_profile  # noqa: PLC0415 - few draw a chart

        chart = draw_profile(report, by, groups)
        if not chart:
            raise WrongInput(f"There is nothing to draw: {report.note or 'too few calls.'}")
        files.write(chart.encode(), "chart", "Chart", output=plot, force=force)
    if as_json:
        document = msgspec.to_builtins(report)
        context.print_json(document | {"by": by, "groups": groups} if by else document)
        return
    console = formatting.console()
    _show_summary(console, report)
    if by:
        console.print()
        show_groups(console, by, groups)
    elif report.rate.total:
        _show_sections(console, report)


def _show_sections(console: Console, report: Profile) -> None:
    formatting.print_heading(console, "By tool")
    show_tools(console, report, limit=_MAX_TOOLS)
    if report.failures:
        formatting.print_heading(console, "Most frequent failures")
        for failure in report.failures:
            _show_failure(console, failure)
        if report.further_failures:
            others = formatting.pluralize(report.further_failures, "other kind")
            console.print(f"and {others} of failure", style="dim")
    if report.sessions > 1:
        formatting.print_heading(console, "By session length")
        show_groups(console, "length", report.lengths)
        console.print(Text(report.marathons.reading))
    formatting.print_heading(console, "Over the course of a session")
    console.print(Text(report.learning.reading))
    show_warm_up(console, {"median, or rate": report.warm_up})


def _show_summary(console: Console, report: Profile) -> None:
    counts = ((report.sessions, "session"), (report.messages, "message"), (report.calls, "call"))
    total = ", ".join(formatting.pluralize(number, noun) for number, noun in counts)
    console.print(Text(total, style="bold"))
    formatting.print_bots_left_out(console, report.bots)
    if report.note:
        console.print(report.note)
        if not report.sessions:
            console.print("`journeyman import` imports sessions.", style="dim")
        return
    rate = report.rate
    part = f"{percent(rate.estimate)} of {formatting.pluralize(rate.total, 'call')}"
    errors = f" ({formatting.pluralize(rate.errors, 'error')}; 95 % interval {interval(rate)})"
    console.print(Text.assemble("Errors: ", (part, "bold"), errors))
    apart = {
        f"refused{refusers(report)}": report.refused,
        "interrupted": report.interrupted,
        "of unknown outcome": report.unknown,
    }
    if separate := ", ".join(f"{count:,} {what}" for what, count in apart.items() if count):
        console.print(f"Counted separately: {separate}.", style="dim")
    if report.no_match:
        searches = formatting.pluralize(report.no_match, "search or test", "searches or tests")
        console.print(f"Not errors: {searches} with a negative result.", style="dim")
    if report.left_out:
        calls = formatting.pluralize(sum(report.left_out.values()), "call")
        tools = readable(formatting.join_names([*report.left_out], _MAX_LEFT_OUT))
        console.print(Text(f"Left out: {calls} of housekeeping tools: {tools}."))
    console.print(f"Kind of work: {report.task_type}.", style="dim")


def show_tools(console: Console, report: Profile, *, limit: int) -> None:
    """Print the error rates of the most used tools, the worst among them."""
    shown = shown_with_worst(report.tools, limit, lambda tool: tool.rate)
    shares = (f"{100 * tool.calls / report.calls:.0f} %" for tool in shown)
    rows = [
        (tool.name, share, tool.rate.total, tool.rate)
        for tool, share in zip(shown, shares, strict=True)
    ]
    show_rates(console, "tool", ("share", "counted"), rows)
    hint = ": journeyman profile --by tool"
    formatting.print_remainder(console, len(report.tools), limit, hint, noun="tool")


def _show_failure(console: Console, failure: FailureGroup) -> None:
    fingerprint = formatting.one_line(failure.fingerprint, max(console.width - 7, 30))
    console.print(Text.assemble((f"{failure.count:>4,}× ", "bold"), fingerprint))
    session = failure.example.session
    where = f"{context.short_ids([session])[session]}, call {failure.example.call_index + 1}"
    about = f" · {failure.kind or failure.status} · first in {where}"
    tools = formatting.one_line(", ".join(failure.tools), max(console.width - 6 - len(about), 12))
    console.print(Text(f"      {tools}{readable(about)}", style="dim"))
