"""`journeyman compare`: warm sessions against cold ones."""

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.rates_shown import RateTable, percent, points, points_interval
from journeyman.reliability.comparison import Comparison

_STYLES = {"better": "bold green", "worse": "bold red", "undecided": "bold yellow"}
_MOST_TOOLS = 12


@click.command(
    epilog="""\b
Examples:
  journeyman compare WARM COLD
  journeyman compare --warm-tag warm --cold-tag cold
  journeyman compare --warm-tag warm --cold-tag cold --project .
  journeyman compare --warm A --warm B --cold C --cold D --json"""
)
@click.argument("pair", nargs=-1, metavar="[WARM COLD]")
@click.option("--warm", multiple=True, metavar="SESSION", help="A warm session; may be repeated.")
@click.option("--cold", multiple=True, metavar="SESSION", help="A cold session; may be repeated.")
@click.option("--warm-tag", metavar="TAG", help="All sessions with this tag are warm.")
@click.option("--cold-tag", metavar="TAG", help="All sessions with this tag are cold.")
@asked.project_option
@asked.json_option
@click.pass_context
def compare(
    ctx: click.Context,
    *,
    pair: tuple[str, ...],
    warm: tuple[str, ...],
    cold: tuple[str, ...],
    warm_tag: str | None,
    cold_tag: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Compare two sessions, or two sets of them: do warm ones make fewer errors?

    The difference has a 95 % interval. Only when that leaves out zero is the verdict better or
    worse; otherwise it is undecided, and you are told how many calls would decide it.
    """
    if pair:
        if len(pair) != 2 or warm or cold or warm_tag or cold_tag:
            raise click.UsageError("Give two sessions, WARM and COLD, or both sets by options.")
        warm, cold = (pair[0],), (pair[1],)
    elif bool(warm) == bool(warm_tag) or bool(cold) == bool(cold_tag):
        raise click.UsageError(
            "Say which sessions are warm and which are cold: WARM COLD, or --warm or --warm-tag, "
            "and --cold or --cold-tag."
        )
    if project is not None and not (warm_tag or cold_tag):
        raise click.UsageError("--project narrows --warm-tag and --cold-tag: give one of them.")
    found = asked.opened(ctx).compare(
        warm or None, cold or None, warm_tag=warm_tag, cold_tag=cold_tag, project=project
    )
    if as_json:
        asked.print_json(found)
        return
    console = shown.console()
    for tag, side in ((warm_tag, found.warm), (cold_tag, found.cold)):
        if tag and not side.sessions:
            where = f" of {shown.plain(project)}" if project else ""
            console.print(Text(f"No session{where} has the tag {shown.plain(tag)}.", style="bold"))
    show_comparison(console, found)


def show_comparison(console: Console, found: Comparison) -> None:
    """A comparison in the terminal."""
    rows = RateTable(console, "", "sessions", "counted")
    for name, side in (("warm", found.warm), ("cold", found.cold)):
        rows.add(name, shown.count(side.sessions), shown.count(side.calls), rate=side.rate)
    console.print(rows.table())
    difference = found.difference
    if difference.estimate is not None:
        line = f"\nWarm minus cold: {points(difference)} points"
        if difference.low is not None:
            line += f" (95 % interval {points_interval(difference)}, {difference.method})"
        console.print(line, highlight=False)
    if found.fisher_p is not None:
        p = f"= {found.fisher_p:.2g}" if found.fisher_p >= 0.0001 else "< 0.0001"
        console.print(f"Fisher's exact test: p {p}", style="dim")
    console.print(Text(f"\nVerdict: {found.verdict}", style=_STYLES[found.verdict]))
    console.print(Text(found.reading))
    if found.note:
        console.print(Text(found.note, style="dim"))
    _show_tools(console, found)


def _show_tools(console: Console, found: Comparison) -> None:
    if len(found.tools) < 2:
        return
    numbers = ("warm calls", "rate", "cold calls", "rate ", "points", "95 % interval")
    table = shown.table("tool", *numbers, numbers=numbers)
    for row in found.tools[:_MOST_TOOLS]:
        table.add_row(
            shown.cell(row.tool),
            shown.count(row.warm.total),
            percent(row.warm.estimate),
            shown.count(row.cold.total),
            percent(row.cold.estimate),
            points(row.difference),
            points_interval(row.difference),
        )
    console.print()
    console.print(table)
    if len(found.tools) > _MOST_TOOLS:
        more = shown.many(len(found.tools) - _MOST_TOOLS, "more tool")
        console.print(f"and {more}: --json has all", style="dim")
