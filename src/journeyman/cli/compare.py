"""`journeyman compare`, which compares warm sessions with cold ones, and `journeyman compression`,
which compares the calls after a compression with those before it.
"""

from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import option
from journeyman.cli.rate_tables import change, change_interval, show_rates, show_warm_up
from journeyman.facade.journeyman import Journeyman
from journeyman.reliability.comparison import Comparison
from journeyman.reliability.compression import CompressionReport, CompressionStep
from journeyman.text.display import readable

_STYLES = {
    **dict.fromkeys(("better", "preserved"), "bold green"),
    **dict.fromkeys(("worse", "lost"), "bold red"),
    "undecided": "bold yellow",
}
_MAX_WORSE_TOOLS = 8


def _show_comparison(console: Console, comparison: Comparison) -> None:
    sides = {"warm": comparison.warm, "cold": comparison.cold}
    for name, side in sides.items():
        if not side.sessions:
            console.print(f"There is no {name} session.", style="bold")
    rows = [(name, side.sessions, side.calls, side.rate) for name, side in sides.items()]
    show_rates(console, "", ("sessions", "counted"), rows)
    if comparison.difference.estimate is not None:
        differences = {
            "all tools pooled": comparison.difference,
            "tool by tool": comparison.same_tools,
            f"first {comparison.warm.warm_up.turns} turns": comparison.first_turns,
        }
        headers = ("points", "95 % interval")
        changes = ((name, change(one), change_interval(one)) for name, one in differences.items())
        console.print()
        console.print(formatting.table("errors in warm", *headers, numbers=headers, rows=changes))
    console.print(Text(f"\nVerdict: {comparison.verdict}", style=_STYLES[comparison.verdict]))
    console.print(Text(comparison.reading))
    if comparison.note:
        console.print(Text(comparison.note, style="dim"))
    show_warm_up(console, {name: side.warm_up for name, side in sides.items()})


@context.command(render=_show_comparison, is_paged=True)
@click.argument("pair", nargs=-1, metavar="[WARM COLD]")
@option("--warm-tag TAG", "Treat all sessions with this tag as warm.")
@option("--cold-tag TAG", "Treat all sessions with this tag as cold.")
@context.project_option
@context.platform_option
@context.include_trivial_option
def compare(
    journeyman: Journeyman,
    *,
    pair: Sequence[str],
    warm_tag: str | None,
    cold_tag: str | None,
    **narrowed: Any,
) -> Comparison:
    """Compare the error rates of warm and cold sessions, or of two sets of them.

    Without arguments, sessions that started with an opening are compared with all others. The
    difference is shown with a 95 % interval: fewer errors in warm sessions is better. The
    verdict is better or worse only if the interval excludes no difference; otherwise it is
    undecided, and the output says how many calls would decide it.

    Examples:
      journeyman compare
      journeyman compare WARM COLD
      journeyman compare --warm-tag warm --cold-tag cold
    """
    is_narrowed = warm_tag or narrowed["project"] or narrowed["platform"]
    if len(pair) not in (0, 2) or bool(warm_tag) != bool(cold_tag) or (pair and is_narrowed):
        raise click.UsageError(
            "Name two sessions, WARM and COLD, without --project, --platform or tags; or pass both "
            "--warm-tag and --cold-tag, or none."
        )
    return journeyman.compare(*pair, warm_tag=warm_tag, cold_tag=cold_tag, **narrowed)


def _show_compression(console: Console, report: CompressionReport) -> None:
    console.print(Text(readable(report.reading), style=_STYLES.get(report.state or "", "bold")))
    if report.note:
        console.print(Text(readable(report.note), style="dim"))
    for number, step in enumerate(report.steps, start=1):
        formatting.print_heading(console, f"Compression {number}")
        _show_step(console, step)


def _show_step(console: Console, step: CompressionStep) -> None:
    sides = (("before", step.before_label, step.before), ("after", step.after_label, step.after))
    rows = [(f"{name}: {_label(label)}", rate.total, rate) for name, label, rate in sides]
    show_rates(console, "", ("counted",), rows)
    if step.difference.low is not None:
        text = f"{change(step.difference)} ({change_interval(step.difference)})"
        console.print(f"Errors after, in points: {text}", style="dim")
    console.print(Text(readable(step.reading), style=_STYLES[step.state]))
    if step.state != "preserved" and step.worse_tools:
        title = "tools that got worse" if step.state == "lost" else "worse, possibly by chance"
        rows = [
            (f"{worse.tool} {when}", rate.total, rate)
            for worse in step.worse_tools[:_MAX_WORSE_TOOLS]
            for when, rate in (("before", worse.before), ("after", worse.after))
        ]
        show_rates(console, title, ("counted",), rows)


def _label(label: str) -> str:
    session, comma, part = label.partition(", ")
    return context.short_ids([session])[session] + comma + part.replace(" of ", "/")


@context.command(render=_show_compression, is_failure=lambda report: report.state == "lost")
@click.argument("session")
@context.include_trivial_option
def compression(journeyman: Journeyman, session: str, **options: bool) -> CompressionReport:
    """Check whether context compression preserved proficiency.

    For each compression inside SESSION and in its lineage, compares the error rate after it with
    the rate before it. The exit code is 1 if proficiency was lost.

    Examples:
      journeyman compression SESSION
    """
    return journeyman.compression(session, **options)
