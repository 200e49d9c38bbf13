"""`journeyman profile`: how reliable the calls of sessions were."""

import time
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import option
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import PlaybookMistake
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.profile import By, FailureGroup, Group, Profile, grouped, profile
from journeyman.reliability.rates import Difference, Rate
from journeyman.reports import draw, write_page

_REMEDIES = 3
_STEPS = "▁▂▃▄▅▆▇█"
_SHORTEST_NAME = 16
_BAR_WIDTH = 12

_file = click.Path(path_type=Path, dir_okay=False)
_SHOWN_TOOLS, _SHOWN_FAILURES = 12, 10


@asked.command(name="profile")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@option("--by", "Error rates by this, all of them.", type=click.Choice(get_args(By)))
@asked.session_options
@option("--plot FILE", "Draw the rates (.png or .svg).", type=_file)
@option("--html FILE", "Write the report as one page to send.", type=_file)
def profile_command(
    journeyman: Journeyman,
    *,
    sessions: tuple[str, ...],
    by: By | None,
    chosen: asked.Chosen,
    plot: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show how reliable the tool calls of sessions were.

    Without SESSION, of all stored sessions that fit the options. Errors are calls that failed or
    could not be made as asked. Calls that a person refused or that were interrupted say nothing
    about a tool and are counted apart. Each call is judged once and remembered.

    Examples:
      journeyman profile
      journeyman profile --by model
      journeyman profile --by length --source claude_code
      journeyman profile --by tool --project .
      journeyman profile SESSION
      journeyman profile --plot reliability.png
      journeyman profile --html report.html
    """
    with shown.counting_bar("Judging") as progress:
        judged = journeyman.judged(sessions or None, progress=progress, **chosen)
    if not judged and (said := asked.nothing_fits(journeyman, chosen)):
        raise WrongInput(said)
    found = profile(judged)
    if plot:
        draw(found, plot)
    if html:
        write_page(found, judged, html, made_at=time.time())
    groups = grouped(judged, by) if by else ()
    remedies = journeyman.remedies(one.id for one in judged)[:_REMEDIES]
    if as_json:
        told = msgspec.to_builtins(found) | {"remedies": remedies}
        asked.print_json(told | {"by": by, "groups": groups} if by else told)
        return
    console = shown.console()
    if by:
        show_summary(console, found)
        console.print()
        show_groups(console, by, groups)
    else:
        show_profile(console, found)
    show_remedies(console, remedies, failures=found.rate.errors)
    for path in (plot, html):
        if path:
            console.print(f"Written: {path}", style="dim", soft_wrap=True)


def show_profile(console: Console, found: Profile) -> None:
    show_summary(console, found)
    if not found.rate.total:
        return
    shown.head(console, "By tool")
    show_tools(console, found, most=_SHOWN_TOOLS)
    if found.failures:
        shown.head(console, "What fails most")
        for failure in found.failures[:_SHOWN_FAILURES]:
            show_failure(console, failure)
        if found.further_failures:
            others = shown.many(found.further_failures, "other kind")
            errors = shown.many(found.further_errors, "error")
            console.print(f"and {others} of failure with {errors}", style="dim")
    if found.sessions > 1:
        shown.head(console, "By length of session")
        show_groups(console, "length", found.lengths)
        console.print(Text(found.marathons.reading))
    shown.head(console, "Along a session")
    learned, curve = found.learning, found.curve
    if curve.sessions:
        highest = percent(max(rate.estimate or 0.0 for rate in curve.parts))
        end = f" end   at most {highest}, in sessions with ten calls or more"
        console.print(Text.assemble("beginning ", (spark(curve.parts), "red"), end))
    if learned.early.total:
        before, after = percent(learned.early.estimate), percent(learned.late.estimate)
        compared = (
            ("all calls thrown together", before, after, learned.crude),
            ("tool by tool", "", "", learned.stratified),
            ("later use of a tool", "", "", learned.first_later),
        )
        heads = ("rate before", "rate after", "points", "95 % interval")
        rows = ((*row[:3], points(row[3]), interval(row[3])) for row in compared)
        console.print(shown.table("late against early", *heads, numbers=heads, rows=rows))
    console.print(Text(learned.reading))


def show_summary(console: Console, found: Profile) -> None:
    sessions, calls = shown.many(found.sessions, "session"), shown.many(found.calls, "call")
    console.print(Text(f"{sessions}, {calls}", style="bold"))
    if found.note:
        console.print(found.note)
        if not found.sessions:
            console.print("`journeyman import` brings sessions in.", style="dim")
        return
    rate = found.rate
    part = f"{percent(rate.estimate)} of {shown.many(rate.total, 'call')}"
    errors = f" ({shown.many(rate.errors, 'error')}; 95 % interval {interval(rate)})"
    console.print(Text.assemble("Errors: ", (part, "bold"), errors))
    counts = (found.refused, found.interrupted, found.unknown)
    words = ("refused", "interrupted", "of unknown outcome")
    apart = [f"{one:,} {word}" for one, word in zip(counts, words, strict=True) if one]
    if apart:
        console.print(f"Counted apart: {', '.join(apart)}.", style="dim")
    if found.no_match:
        said = shown.counted(found.no_match, "search or test", "searches or tests")
        console.print(f"No error: {said} with no for an answer.", style="dim")
    console.print(f"Kind of work: {found.task_type}.", style="dim")


def show_tools(console: Console, found: Profile, *, most: int) -> None:
    rows = [(tool.tool, tool.rate.total, tool.rate) for tool in found.tools[:most]]
    show_rates(console, "tool", ("counted",), rows)
    shown.more(console, len(found.tools), most, ": journeyman profile --by tool", thing="tool")


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
    head.append(shown.one_line(failure.fingerprint, max(console.width - 7, 30)), style="")
    console.print(head)
    where = f"{shown.short_id(failure.example.session)}, call {failure.example.call_index + 1}"
    about = f"{tools} · {failure.kind or failure.status} · first in {where}"
    console.print(Text("      " + shown.one_line(about, console.width - 7), style="dim"))


def show_remedies(console: Console, remedies: Sequence[PlaybookMistake], *, failures: int) -> None:
    """What would prevent most of the failures, as sessions themselves have shown."""
    if not remedies:
        return
    from journeyman.templates.shown.briefing import remedy_text  # noqa: PLC0415 - loads slowly

    shown.head(console, "What would prevent most failures")
    for one in remedies:
        what = one.target or one.tool
        share = f"{one.times} of {failures:,} failures"
        said = f'{what} says "{one.error}": {share}, fixed by {remedy_text(one.remedy)}'
        console.print(Text(f"- {shown.plain(said)}"))


def percent(value: float | None) -> str:
    return shown.UNKNOWN if value is None else f"{100 * value:.1f} %"


def points(difference: Difference) -> str:
    """A difference of two rates in percentage points, with its sign."""
    return shown.UNKNOWN if difference.estimate is None else f"{100 * difference.estimate:+.1f}"


def interval(of: Rate | Difference) -> str:
    """Of a rate in percent, of a difference in points."""
    if of.low is None or of.high is None:
        return shown.UNKNOWN
    if isinstance(of, Rate):
        return f"{100 * of.low:.1f} to {100 * of.high:.1f} %"
    return f"{100 * of.low:+.1f} to {100 * of.high:+.1f}"


def spark(rates: Sequence[Rate]) -> str:
    """Rates side by side as a row of little columns."""
    most = max((rate.estimate or 0.0 for rate in rates), default=0.0) or 1.0
    steps = len(_STEPS) - 1
    return "".join(
        shown.UNKNOWN if rate.estimate is None else _STEPS[round(rate.estimate / most * steps)]
        for rate in rates
    )


def scale(rates: Sequence[Rate]) -> float:
    """The top of a common scale for bars. An interval that reaches far beyond every rate is cut,
    or one call that failed would flatten all the others.
    """
    most = max((rate.estimate or 0.0 for rate in rates), default=0.0)
    highest = max((rate.high or 0.0 for rate in rates), default=0.0)
    return min(highest, max(2 * most, 0.05)) or 1.0


def bar(rate: Rate, top: float) -> Text:
    """The rate as a dot on its interval: ──●─────."""
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
    console: Console, head: str, counts: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """A table of rates; a row is a name, its counts and the rate. Numbers are never cut: where the
    window is too narrow, the bars go first, then the counts and the interval, and names are cut.
    """
    top = scale([row[-1] for row in rows])
    shortest = min(_SHORTEST_NAME, max((len(row[0]) for row in rows), default=1))

    def name(row: tuple[Any, ...]) -> Text:
        return Text(shown.plain(row[0]), no_wrap=True, overflow="ellipsis")

    columns = (
        Column(head, name, min_width=shortest),
        *(
            Column(one, itemgetter(at), needs=46 + 10 * len(counts), number=True)
            for at, one in enumerate(counts, 1)
        ),
        Column("errors", lambda row: row[-1].errors if row[-1].total else None, number=True),
        Column("rate", lambda row: percent(row[-1].estimate), number=True),
        Column("95 % interval", lambda row: interval(row[-1]), needs=50, number=True),
        Column("", lambda row: bar(row[-1], top), needs=72),
    )
    console.print(shown.fitting_table(rows, columns, console.width))
