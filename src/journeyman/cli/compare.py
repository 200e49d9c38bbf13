"""`journeyman compare`: warm sessions against cold ones, and `journeyman compression`: the calls
after a compression against those before it.
"""

from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import option
from journeyman.cli.profile import interval, percent, points, show_rates
from journeyman.journeyman import Journeyman
from journeyman.reliability.comparison import Comparison
from journeyman.reliability.compression import CompressionReport, Step

_STYLES = {
    **dict.fromkeys(("better", "preserved"), "bold green"),
    **dict.fromkeys(("worse", "lost"), "bold red"),
    "undecided": "bold yellow",
}
_MOST_TOOLS = 12
_MOST_WORSE_TOOLS = 8


def _show_comparison(console: Console, found: Comparison) -> None:
    given = click.get_current_context().params
    sides = (("warm", found.warm), ("cold", found.cold))
    for name, side in sides:
        tag, project = given[f"{name}_tag"], given["project"]
        if tag and not side.sessions:
            where = f" of {shown.plain(project)}" if project else ""
            console.print(Text(f"No session{where} has the tag {shown.plain(tag)}.", style="bold"))
    rows = [(name, side.sessions, side.calls, side.rate) for name, side in sides]
    show_rates(console, "", ("sessions", "counted"), rows)
    difference = found.difference
    if difference.estimate is not None:
        line = f"\nWarm minus cold: {points(difference)} points"
        if difference.low is not None:
            line += f" (95 % interval {interval(difference)}, {difference.method})"
        console.print(line)
    if found.fisher_p is not None:
        p = f"= {found.fisher_p:.2g}" if found.fisher_p >= 0.0001 else "< 0.0001"
        console.print(f"Fisher's exact test: p {p}", style="dim")
    console.print(Text(f"\nVerdict: {found.verdict}", style=_STYLES[found.verdict]))
    console.print(Text(found.reading))
    if found.note:
        console.print(Text(found.note, style="dim"))
    if len(found.tools) < 2:
        return
    numbers = ("warm calls", "rate", "cold calls", "rate ", "points", "95 % interval")
    tools = (
        (
            *(row.tool, row.warm.total, percent(row.warm.estimate)),
            *(row.cold.total, percent(row.cold.estimate)),
            *(points(row.difference), interval(row.difference)),
        )
        for row in found.tools[:_MOST_TOOLS]
    )
    console.print()
    console.print(shown.table("tool", *numbers, numbers=numbers, rows=tools))
    shown.more(console, len(found.tools), _MOST_TOOLS, ": --json has all", thing="tool")


@asked.command(shows=_show_comparison)
@click.argument("pair", nargs=-1, metavar="[WARM COLD]")
@option("--warm SESSION", "A warm session; may be repeated.", multiple=True)
@option("--cold SESSION", "A cold session; may be repeated.", multiple=True)
@option("--warm-tag TAG", "All sessions with this tag are warm.")
@option("--cold-tag TAG", "All sessions with this tag are cold.")
@asked.project_option
def compare(
    journeyman: Journeyman, *, pair: Sequence[str], project: str | None, **sides: Any
) -> Comparison:
    """Compare two sessions, or two sets of them: do warm ones make fewer errors?

    The difference has a 95 % interval. Only when that leaves out zero is the verdict better or
    worse; otherwise it is undecided, and you are told how many calls would decide it.

    Examples:
      journeyman compare WARM COLD
      journeyman compare --warm-tag warm --cold-tag cold
      journeyman compare --warm-tag warm --cold-tag cold --project .
      journeyman compare --warm A --warm B --cold C --cold D --json
    """
    if pair and (len(pair) != 2 or any(sides.values())):
        raise click.UsageError("Give two sessions, WARM and COLD, or both sets by options.")
    if pair:
        sides["warm"], sides["cold"] = pair
    elif any(bool(sides[side]) == bool(sides[f"{side}_tag"]) for side in ("warm", "cold")):
        raise click.UsageError(
            "Say which sessions are warm and which are cold: WARM COLD, or --warm or --warm-tag, "
            "and --cold or --cold-tag."
        )
    if project is not None and not (sides["warm_tag"] or sides["cold_tag"]):
        raise click.UsageError("--project narrows --warm-tag and --cold-tag: give one of them.")
    given = {name: value or None for name, value in sides.items()}
    return journeyman.compare(**given, project=project)


def _show_compression(console: Console, report: CompressionReport) -> None:
    console.print(Text(shown.plain(report.reading), style=_STYLES.get(report.state or "", "bold")))
    if report.note:
        console.print(Text(shown.plain(report.note), style="dim"))
    for number, step in enumerate(report.steps, start=1):
        shown.head(console, f"Compression {number}")
        _show_step(console, step)


@asked.command(shows=_show_compression, fails=lambda report: report.state == "lost")
@click.argument("session")
def compression(journeyman: Journeyman, *, session: str) -> CompressionReport:
    """Check whether context compression preserved proficiency.

    Looks at the compressions inside SESSION and in its lineage: the error rate after each against
    the rate before it. The exit code is 1 when proficiency was lost.

    Examples:
      journeyman compression SESSION
      journeyman compression SESSION --json
    """
    return journeyman.compression(session)


def _show_step(console: Console, step: Step) -> None:
    sides = (("before", step.before_label, step.before), ("after", step.after_label, step.after))
    rows = [(f"{name}: {_label(label)}", rate.total, rate) for name, label, rate in sides]
    show_rates(console, "", ("counted",), rows)
    if step.difference.low is not None:
        change = f"{points(step.difference)} points ({interval(step.difference)})"
        alike = step.same_tools_difference
        if alike.low is not None:
            change += f"; with the same tools {points(alike)} ({interval(alike)})"
        console.print(f"Change: {change}", style="dim")
    console.print(Text(shown.plain(step.reading), style=_STYLES[step.state]))
    if step.state != "preserved" and step.worse_tools:
        title = "tools that got worse" if step.state == "lost" else "worse, maybe by chance"
        rows = [
            (f"{one.tool} {when}", rate.total, rate)
            for one in step.worse_tools[:_MOST_WORSE_TOOLS]
            for when, rate in (("before", one.before), ("after", one.after))
        ]
        show_rates(console, title, ("counted",), rows)


def _label(label: str) -> str:
    session, comma, part = label.partition(", ")
    return shown.short_id(session) + comma + part
