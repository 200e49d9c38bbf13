"""`journeyman compression`: did context compression preserve proficiency?"""

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.rates_shown import RateTable, points, points_interval
from journeyman.reliability.compression import CompressionReport, Step

_STYLES = {"preserved": "bold green", "lost": "bold red", "undecided": "bold yellow"}
_MOST_TOOLS = 8


@click.command(
    epilog="""\b
Examples:
  journeyman compression SESSION
  journeyman compression SESSION --json"""
)
@click.argument("session")
@asked.json_option
@click.pass_context
def compression(ctx: click.Context, session: str, *, as_json: bool) -> None:
    """Check whether context compression preserved proficiency.

    Looks at the compressions inside SESSION and in its lineage: the error rate after each against
    the rate before it. The exit code is 1 when proficiency was lost.
    """
    report = asked.opened(ctx).compression(session)
    if as_json:
        asked.print_json(report)
    else:
        show_compression(shown.console(), report)
    if report.state == "lost":
        ctx.exit(1)


def show_compression(console: Console, report: CompressionReport) -> None:
    """A report in the terminal."""
    console.print(Text(shown.plain(report.reading), style=_STYLES.get(report.state or "", "bold")))
    if report.note:
        console.print(Text(shown.plain(report.note), style="dim"))
    for number, step in enumerate(report.steps, start=1):
        console.print(f"\n[bold cyan]Compression {number}[/]")
        _show_step(console, step)


def _show_step(console: Console, step: Step) -> None:
    rows = RateTable(console, "", "counted")
    before, after = _label(step.before_label), _label(step.after_label)
    rows.add(f"before: {before}", shown.count(step.before.total), rate=step.before)
    rows.add(f"after: {after}", shown.count(step.after.total), rate=step.after)
    console.print(rows.table())
    if step.difference.low is not None:
        change = f"{points(step.difference)} points ({points_interval(step.difference)})"
        alike = step.same_tools_difference
        if alike.low is not None:
            change += f"; with the same tools {points(alike)} ({points_interval(alike)})"
        console.print(f"Change: {change}", style="dim")
    console.print(Text(shown.plain(step.reading), style=_STYLES[step.state]))
    if step.state != "preserved" and step.worse_tools:
        title = "tools that got worse" if step.state == "lost" else "worse, maybe by chance"
        tools = RateTable(console, title, "counted")
        for change_ in step.worse_tools[:_MOST_TOOLS]:
            tools.add(
                f"{change_.tool} before", shown.count(change_.before.total), rate=change_.before
            )
            tools.add(f"{change_.tool} after", shown.count(change_.after.total), rate=change_.after)
        console.print(tools.table())


def _label(label: str) -> str:
    session, comma, part = label.partition(", ")
    return shown.short_id(session) + comma + part
