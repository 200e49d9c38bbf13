"""`journeyman profile`: shows how reliable the tool calls of sessions were."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from journeyman.cli import context, files, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.rate_tables import (
    change,
    change_interval,
    interval,
    percent,
    show_early_and_late,
    show_groups,
    show_rates,
    show_warm_up,
    sparkline,
)
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import PlaybookMistake
from journeyman.reliability import By
from journeyman.reliability.profile import FailureGroup, Profile, refusers
from journeyman.reliability.rates import shown_with_worst
from journeyman.reliability.reports import write_chart, write_html_report
from journeyman.text.display import readable
from journeyman.text.strict_json import InvalidJson, read_json

_MAX_REMEDIES = 3
_MAX_MESSAGES_BYTES = 64 * 1024 * 1024
_MAX_LEFT_OUT = 6

_file = click.Path(path_type=Path, dir_okay=False)
_MAX_TOOLS, _MAX_FAILURES = 12, 10
_FAILURE_INDENT, _MIN_TOOLS_WIDTH = 6, 12


@context.command(name="profile", is_paged=True)
@click.argument("sessions", nargs=-1, metavar="[SESSION|FILE.json]...")
@option("--by", "Break the error rates down by this.", type=click.Choice(get_args(By)))
@context.session_options
@option("--plot FILE", "Draw the error rates to FILE (.png or .svg).", type=_file)
@option("--html FILE", "Write the report as a single HTML page.", type=_file)
@files.force_option
@context.include_trivial_option
@flag("--raw", "Keep secrets and personal data in names, --json and --html: for your eyes only.")
def profile_command(
    journeyman: Journeyman,
    *,
    sessions: tuple[str, ...],
    by: By | None,
    filters: context.SessionFilters,
    plot: Path | None,
    html: Path | None,
    force: bool,
    include_trivial: bool,
    raw: bool,
    as_json: bool,
) -> None:
    """Show how reliable the tool calls of sessions were.

    Without SESSION, covers all stored sessions that match the options. Errors are calls that
    failed or were invalid. Calls that a person refused or that were interrupted say nothing about
    a tool and are counted separately. Each call is judged once, and the verdict is stored. With
    --by, charts and pages show the same groups. A FILE.json with the messages of one conversation
    is profiled without storing it.

    Examples:
      journeyman profile
      journeyman profile --by model
      journeyman profile --by length --source claude_code
      journeyman profile --by tool --project .
      journeyman profile --by type --include-trivial
      journeyman profile --by platform --source hermes
      journeyman profile SESSION
      journeyman profile conversation.json
      journeyman profile --plot reliability.png
      journeyman profile --html report.html
    """
    outputs = [path for path in (plot, html) if path]
    for path in outputs:
        files.refuse_overwriting(path, force=force)
    is_file = len(sessions) == 1 and sessions[0].endswith(".json")
    if by == "platform" and not sessions:
        filters.setdefault("bots", True)
    with formatting.counting_bar("Judging") as progress:
        reliability = journeyman.reliability(
            sessions or None,
            messages=_read_messages(sessions[0]) if is_file else None,
            include_trivial=include_trivial,
            raw=raw,
            progress=progress,
            **filters,
        )
    report, judged = reliability.profile(), reliability.sessions
    groups = reliability.grouped(by) if by else ()
    if plot:
        write_chart(report, plot, by=by, groups=groups)
    if html:
        write_html_report(report, judged, html, by=by, groups=groups, made_at=time.time())
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
        show_early_and_late(console, by, groups)
    else:
        show_profile(console, report)
    show_remedies(console, remedies, failures=report.rate.errors)
    for path in outputs:
        console.print(f"Written: {path}", style="dim", soft_wrap=True)


def _read_messages(name: str) -> Any:
    """Return the conversation in a file: a list of messages, or an object with `messages`."""
    try:
        value = read_json(files.read(name, "messages", max_bytes=_MAX_MESSAGES_BYTES))
    except InvalidJson as error:
        raise WrongInput(
            f"The messages cannot be read from {name}: {error}. Supply a JSON list of messages."
        ) from error
    return value.get("messages", ()) if isinstance(value, dict) else value


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
    if learning.stratified.low is not None:
        before, after = percent(learning.early.estimate), percent(learning.late.estimate)
        compared = (
            ("tool by tool", "", "", learning.stratified),
            ("all calls together", before, after, learning.crude),
            ("later use of a tool", "", "", learning.first_later),
        )
        headers = ("early", "late", "points", "95 % interval")
        rows = ((*row[:3], change(row[3]), change_interval(row[3])) for row in compared)
        console.print(formatting.table("errors late", *headers, numbers=headers, rows=rows))
    console.print(Text(learning.reading))
    show_early_and_late(console, "type", report.types if len(report.types) > 1 else ())
    formatting.print_heading(console, "How sessions get going")
    show_warm_up(console, [("median, or rate", report.warm_up)])


def show_summary(console: Console, report: Profile) -> None:
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
    apart = (
        (report.refused, f"refused{refusers(report)}"),
        (report.interrupted, "interrupted"),
        (report.unknown, "of unknown outcome"),
    )
    separate = [f"{count:,} {word}" for count, word in apart if count]
    if separate:
        console.print(f"Counted separately: {', '.join(separate)}.", style="dim")
    if report.no_match:
        searches = formatting.pluralize(report.no_match, "search or test", "searches or tests")
        console.print(f"Not errors: {searches} with a negative result.", style="dim")
    if report.left_out:
        calls = formatting.pluralize(sum(report.left_out.values()), "call")
        tools = readable(formatting.join_names([*report.left_out], _MAX_LEFT_OUT))
        console.print(Text(f"Left out: {calls} of housekeeping tools: {tools}."))
    console.print(f"Kind of work: {report.task_type}.", style="dim")


def show_tools(console: Console, report: Profile, *, limit: int) -> None:
    shown = shown_with_worst(report.tools, limit, lambda tool: tool.rate)
    rows = [(tool.tool, f"{100 * tool.share:.0f} %", tool.rate.total, tool.rate) for tool in shown]
    show_rates(console, "tool", ("share", "counted"), rows)
    formatting.print_remainder(
        console, len(report.tools), limit, ": journeyman profile --by tool", noun="tool"
    )


def show_failure(console: Console, failure: FailureGroup) -> None:
    tools = ", ".join(failure.tools[:3]) + (", …" if len(failure.tools) > 3 else "")
    head = Text(f"{failure.count:>4,}× ", style="bold")
    head.append(formatting.one_line(failure.fingerprint, max(console.width - 7, 30)), style="")
    console.print(head)
    session = failure.example.session
    where = f"{context.short_ids([session])[session]}, call {failure.example.call_index + 1}"
    about = f" · {failure.kind or failure.status} · first in {where}"
    room = console.width - _FAILURE_INDENT - len(about)  # only the names of tools are truncated
    line = formatting.one_line(tools, max(room, _MIN_TOOLS_WIDTH)) + readable(about)
    console.print(Padding(Text(line, style="dim"), (0, 0, 0, _FAILURE_INDENT), expand=False))


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
