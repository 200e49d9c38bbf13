"""`journeyman compare`, which compares warm sessions with cold ones, and `journeyman compression`,
which compares the calls after a compression with those before it.
"""

from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.profile import interval, percent, points, show_rates
from journeyman.facade.journeyman import Journeyman
from journeyman.reliability.comparison import Comparison
from journeyman.reliability.compression import CompressionReport, CompressionStep
from journeyman.text.display import readable

_STYLES = {
    **dict.fromkeys(("better", "preserved"), "bold green"),
    **dict.fromkeys(("worse", "lost"), "bold red"),
    "undecided": "bold yellow",
}
_MAX_TOOLS = 12
_MAX_WORSE_TOOLS = 8


def _show_comparison(console: Console, comparison: Comparison) -> None:
    options = click.get_current_context().params
    sides = (("warm", comparison.warm), ("cold", comparison.cold))
    for name, side in sides:
        tag, project = options[f"{name}_tag"], options["project"]
        if tag and not side.sessions:
            where = f" in {readable(project)}" if project else ""
            console.print(Text(f"No session{where} has the tag {readable(tag)}.", style="bold"))
        elif options["by_opening"] and not side.sessions:
            console.print(Text(f"No {name} session is stored.", style="bold"))
    rows = [(name, side.sessions, side.calls, side.rate) for name, side in sides]
    show_rates(console, "", ("sessions", "counted"), rows)
    difference = comparison.difference
    if difference.estimate is not None:
        line = f"\nWarm minus cold: {points(difference)} points"
        if difference.low is not None:
            line += f" (95 % interval {interval(difference)}, {difference.method})"
        console.print(line)
    if comparison.fisher_p is not None:
        p = f"= {comparison.fisher_p:.2g}" if comparison.fisher_p >= 0.0001 else "< 0.0001"
        console.print(f"Fisher's exact test: p {p}", style="dim")
    console.print(Text(f"\nVerdict: {comparison.verdict}", style=_STYLES[comparison.verdict]))
    console.print(Text(comparison.reading))
    if comparison.note:
        console.print(Text(comparison.note, style="dim"))
    if len(comparison.tools) < 2:
        return
    numbers = ("warm calls", "rate", "cold calls", "rate ", "points", "95 % interval")
    tools = (
        (
            *(row.tool, row.warm.total, percent(row.warm.estimate)),
            *(row.cold.total, percent(row.cold.estimate)),
            *(points(row.difference), interval(row.difference)),
        )
        for row in comparison.tools[:_MAX_TOOLS]
    )
    console.print()
    console.print(formatting.table("tool", *numbers, numbers=numbers, rows=tools))
    total = len(comparison.tools)
    formatting.print_remainder(console, total, _MAX_TOOLS, ": --json lists all", noun="tool")


@context.command(render=_show_comparison, is_paged=True)
@click.argument("pair", nargs=-1, metavar="[WARM COLD]")
@option("--warm SESSION", "A warm session; repeatable.", multiple=True)
@option("--cold SESSION", "A cold session; repeatable.", multiple=True)
@option("--warm-tag TAG", "Treat all sessions with this tag as warm.")
@option("--cold-tag TAG", "Treat all sessions with this tag as cold.")
@flag("--by-opening", "Compare sessions that started with an opening with all others.")
@context.project_option
def compare(
    journeyman: Journeyman,
    *,
    pair: Sequence[str],
    by_opening: bool,
    project: str | None,
    **sides: Any,
) -> Comparison:
    """Compare the error rates of warm and cold sessions, or of two sets of them.

    The difference is shown with a 95 % interval. The verdict is better or worse only if the
    interval excludes zero; otherwise it is undecided, and the output says how many calls would
    decide it.

    Examples:
      journeyman compare WARM COLD
      journeyman compare --by-opening
      journeyman compare --by-opening --project .
      journeyman compare --warm-tag warm --cold-tag cold
      journeyman compare --warm A --warm B --cold C --cold D --json
    """
    if by_opening and (pair or any(sides.values())):
        raise click.UsageError("--by-opening chooses both sides: pass no session and no tag.")
    if by_opening:
        return journeyman.compare(by_opening=True, project=project)
    if pair and (len(pair) != 2 or any(sides.values())):
        raise click.UsageError("Name two sessions, WARM and COLD, or both sets with options.")
    if pair:
        sides["warm"], sides["cold"] = pair
    elif any(bool(sides[side]) == bool(sides[f"{side}_tag"]) for side in ("warm", "cold")):
        raise click.UsageError(
            "Name the warm and the cold sessions: WARM COLD, or --warm or --warm-tag, and --cold "
            "or --cold-tag; or pass --by-opening."
        )
    if project is not None and not (sides["warm_tag"] or sides["cold_tag"]):
        raise click.UsageError(
            "--project only narrows --by-opening, --warm-tag and --cold-tag: pass one of them."
        )
    selection: dict[str, Any] = {name: value or None for name, value in sides.items()}
    return journeyman.compare(**selection, project=project)


def _show_compression(console: Console, report: CompressionReport) -> None:
    console.print(Text(readable(report.reading), style=_STYLES.get(report.state or "", "bold")))
    if report.note:
        console.print(Text(readable(report.note), style="dim"))
    for number, step in enumerate(report.steps, start=1):
        formatting.print_heading(console, f"Compression {number}")
        _show_step(console, step)


@context.command(
    render=_show_compression,
    is_failure=lambda report: report.state == "lost",
    is_paged=True,
)
@click.argument("session")
def compression(journeyman: Journeyman, *, session: str) -> CompressionReport:
    """Check whether context compression preserved proficiency.

    For each compression inside SESSION and in its lineage, compares the error rate after it with
    the rate before it. The exit code is 1 if proficiency was lost.

    Examples:
      journeyman compression SESSION
      journeyman compression SESSION --json
    """
    return journeyman.compression(session)


def _show_step(console: Console, step: CompressionStep) -> None:
    sides = (("before", step.before_label, step.before), ("after", step.after_label, step.after))
    rows = [(f"{name}: {_label(label)}", rate.total, rate) for name, label, rate in sides]
    show_rates(console, "", ("counted",), rows)
    if step.difference.low is not None:
        change = f"{points(step.difference)} points ({interval(step.difference)})"
        same_tools = step.same_tools_difference
        if same_tools.low is not None:
            change += f"; with the same tools {points(same_tools)} ({interval(same_tools)})"
        console.print(f"Change: {change}", style="dim")
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
    return context.short_ids([session])[session] + comma + part
