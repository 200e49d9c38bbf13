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
from journeyman.cli.formatting import Column, Name
from journeyman.cli.rate_tables import (
    change,
    change_interval,
    percent,
    show_rates,
    show_warm_up,
)
from journeyman.facade.journeyman import Journeyman
from journeyman.reliability.comparison import Comparison
from journeyman.reliability.compression import CompressionReport, CompressionStep
from journeyman.reliability.rates import shown_with_worst
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
        elif not side.sessions and not options["pair"]:
            console.print(Text(f"No {name} session is stored.", style="bold"))
    rows = [(name, side.sessions, side.calls, side.rate) for name, side in sides]
    show_rates(console, "", ("sessions", "counted"), rows)
    difference = comparison.difference
    if difference.estimate is not None:
        differences = (
            ("all tools pooled", difference),
            ("tool by tool", comparison.same_tools),
            (f"first {comparison.warm.warm_up.turns} turns", comparison.first_turns),
        )
        headers = ("points", "95 % interval")
        changes = ((name, change(one), change_interval(one)) for name, one in differences)
        console.print()
        console.print(formatting.table("errors in warm", *headers, numbers=headers, rows=changes))
    if comparison.fisher_p is not None:
        p = f"= {comparison.fisher_p:.2g}" if comparison.fisher_p >= 0.0001 else "< 0.0001"
        console.print(f"Fisher's exact test: p {p}", style="dim")
    console.print(Text(f"\nVerdict: {comparison.verdict}", style=_STYLES[comparison.verdict]))
    console.print(Text(comparison.reading))
    if comparison.note:
        console.print(Text(comparison.note, style="dim"))
    formatting.print_heading(console, "How sessions get going")
    show_warm_up(console, [(name, side.warm_up) for name, side in sides])
    _show_types(console, comparison)
    if len(comparison.tools) < 2:
        return
    formatting.print_heading(console, "By tool")
    shown = shown_with_worst(comparison.tools, _MAX_TOOLS, lambda row: row.warm)
    columns = (
        Column("tool", lambda row: Name(row.tool), min_width=12),
        Column("warm calls", lambda row: row.warm.total, min_terminal_width=100, numeric=True),
        Column("warm", lambda row: percent(row.warm.estimate), numeric=True),
        Column("cold calls", lambda row: row.cold.total, min_terminal_width=100, numeric=True),
        Column("cold", lambda row: percent(row.cold.estimate), numeric=True),
        Column("points", lambda row: change(row.difference), numeric=True),
        Column("95 % interval", lambda row: change_interval(row.difference), numeric=True),
    )
    console.print(formatting.fit_table(shown, columns, console.width))
    total = len(comparison.tools)
    formatting.print_remainder(console, total, _MAX_TOOLS, ": --json lists all", noun="tool")


def _show_types(console: Console, comparison: Comparison) -> None:
    """Show early and late error rates by type of work, on both sides."""
    rows = [
        (f"{group.name}, {name}", group.learning)
        for name, side in (("warm", comparison.warm), ("cold", comparison.cold))
        for group in side.types
        if group.learning is not None and group.learning.stratified.low is not None
    ]
    if not rows:
        return
    formatting.print_heading(console, "Early and late calls, by the same tools")
    numbers = ("early", "late", "points", "95 % interval")
    cells = (
        (
            *(name, percent(effect.early.estimate), percent(effect.late.estimate)),
            *(change(effect.stratified), change_interval(effect.stratified)),
        )
        for name, effect in sorted(rows, key=lambda row: row[0])
    )
    console.print(formatting.table("type of work", *numbers, numbers=numbers, rows=cells))


@context.command(render=_show_comparison, is_paged=True)
@click.argument("pair", nargs=-1, metavar="[WARM COLD]")
@option("--warm SESSION", "A warm session; repeatable.", multiple=True)
@option("--cold SESSION", "A cold session; repeatable.", multiple=True)
@option("--warm-tag TAG", "Treat all sessions with this tag as warm.")
@option("--cold-tag TAG", "Treat all sessions with this tag as cold.")
@flag("--by-opening", "Compare sessions with an opening with all others (the default).")
@context.project_option
@context.platform_option
@context.include_trivial_option
def compare(
    journeyman: Journeyman,
    *,
    pair: Sequence[str],
    by_opening: bool,
    project: str | None,
    platform: str | None,
    include_trivial: bool,
    **sides: Any,
) -> Comparison:
    """Compare the error rates of warm and cold sessions, or of two sets of them.

    Without arguments, sessions that started with an opening are compared with all others. The
    difference is shown with a 95 % interval: fewer errors in warm sessions is better. The
    verdict is better or worse only if the interval excludes no difference; otherwise it is
    undecided, and the output says how many calls would decide it.

    Examples:
      journeyman compare
      journeyman compare --project .
      journeyman compare WARM COLD
      journeyman compare --warm-tag warm --cold-tag cold
      journeyman compare --warm A --warm B --cold C --cold D --json
    """
    is_named = bool(pair or any(sides.values()))
    if by_opening and is_named:
        raise click.UsageError("--by-opening chooses both sides: pass no session and no tag.")
    narrowed: dict[str, Any] = {
        "project": project,
        "platform": platform,
        "include_trivial": include_trivial,
    }
    if not is_named:
        return journeyman.compare(by_opening=True, **narrowed)
    if pair and (len(pair) != 2 or any(sides.values())):
        raise click.UsageError("Name two sessions, WARM and COLD, or both sets with options.")
    if pair:
        sides["warm"], sides["cold"] = pair
    elif any(bool(sides[side]) == bool(sides[f"{side}_tag"]) for side in ("warm", "cold")):
        raise click.UsageError(
            "Name the warm and the cold sessions: WARM COLD, or --warm or --warm-tag, and --cold "
            "or --cold-tag; or name none, to compare by opening."
        )
    is_narrowed = project is not None or platform is not None
    if is_narrowed and not (sides["warm_tag"] or sides["cold_tag"]):
        raise click.UsageError(
            "--project and --platform do not narrow sessions that are named: leave them out."
        )
    selection: dict[str, Any] = {name: value or None for name, value in sides.items()}
    return journeyman.compare(**selection, **narrowed)


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
@context.include_trivial_option
def compression(
    journeyman: Journeyman, *, session: str, include_trivial: bool
) -> CompressionReport:
    """Check whether context compression preserved proficiency.

    For each compression inside SESSION and in its lineage, compares the error rate after it with
    the rate before it. The exit code is 1 if proficiency was lost.

    Examples:
      journeyman compression SESSION
      journeyman compression SESSION --json
    """
    return journeyman.compression(session, include_trivial=include_trivial)


def _show_step(console: Console, step: CompressionStep) -> None:
    sides = (("before", step.before_label, step.before), ("after", step.after_label, step.after))
    rows = [(f"{name}: {_label(label)}", rate.total, rate) for name, label, rate in sides]
    show_rates(console, "", ("counted",), rows)
    if step.difference.low is not None:
        text = f"{change(step.difference)} ({change_interval(step.difference)})"
        same_tools = step.same_tools_difference
        if same_tools.low is not None:
            text += f"; with the same tools {change(same_tools)} ({change_interval(same_tools)})"
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
