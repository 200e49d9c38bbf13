"""How a profile looks in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.cli.rates_shown import (
    RateTable,
    interval,
    percent,
    points,
    points_interval,
    spark,
)
from journeyman.records.playbook import PlaybookMistake
from journeyman.reliability.learning import Learning
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.profile import By, FailureGroup, Group, Profile

_SHOWN_TOOLS = 12
_SHOWN_FAILURES = 10
_ABOUT_BAND: dict[str, str] = {band.name: band.words for band in BANDS}


def show_profile(console: Console, found: Profile) -> None:
    """The whole profile."""
    show_summary(console, found)
    if not found.rate.total:
        return
    _head(console, "By tool")
    show_tools(console, found, most=_SHOWN_TOOLS)
    if found.failures:
        _head(console, "What fails most")
        for failure in found.failures[:_SHOWN_FAILURES]:
            show_failure(console, failure)
        if found.further_failures:
            others = shown.many(found.further_failures, "other kind")
            errors = shown.many(found.further_errors, "error")
            console.print(f"and {others} of failure with {errors}", style="dim")
    if found.sessions > 1:
        _head(console, "By length of session")
        show_groups(console, "length", found.lengths)
        console.print(Text(found.marathons.reading))
    _head(console, "Along a session")
    _show_learning(console, found)


def show_summary(console: Console, found: Profile) -> None:
    """What the profile is of, and its error rate."""
    sessions, calls = shown.many(found.sessions, "session"), shown.many(found.calls, "call")
    console.print(Text(f"{sessions}, {calls}", style="bold"))
    if found.note:
        console.print(found.note)
        if not found.sessions:
            console.print("`journeyman import` brings sessions in.", style="dim")
        return
    rate = found.rate
    line = Text("Errors: ")
    line.append(f"{percent(rate.estimate)} of {shown.many(rate.total, 'call')}", style="bold")
    line.append(f" ({shown.many(rate.errors, 'error')}; 95 % interval {interval(rate)})")
    console.print(line)
    apart = [
        f"{count:,} {word}"
        for count, word in (
            (found.refused, "refused"),
            (found.interrupted, "interrupted"),
            (found.unknown, "of unknown outcome"),
        )
        if count
    ]
    if apart:
        console.print(f"Counted apart: {', '.join(apart)}.", style="dim")
    if found.no_match:
        said = (
            "1 search or test" if found.no_match == 1 else f"{found.no_match:,} searches or tests"
        )
        console.print(f"No error: {said} with no for an answer.", style="dim")
    console.print(f"Kind of work: {found.task_type}.", style="dim")


def show_tools(console: Console, found: Profile, *, most: int) -> None:
    """The rates of the tools that are used most."""
    table = RateTable(console, "tool", "counted")
    for tool in found.tools[:most]:
        table.add(tool.tool, shown.count(tool.rate.total), rate=tool.rate)
    console.print(table.table())
    if len(found.tools) > most:
        more = shown.many(len(found.tools) - most, "more tool")
        console.print(f"and {more}: journeyman profile --by tool", style="dim")


def show_groups(console: Console, by: By, groups: Sequence[Group]) -> None:
    """Rates of groups, one under the other."""
    table = RateTable(console, by, "sessions", "counted")
    for group in groups:
        about = _ABOUT_BAND.get(group.name, "") if by == "length" else ""
        name = f"{group.name} ({about})" if about and console.width >= 100 else group.name
        table.add(name, shown.count(group.sessions), shown.count(group.rate.total), rate=group.rate)
    console.print(table.table())


def _head(console: Console, title: str) -> None:
    console.print(f"\n[bold cyan]{title}[/]")


def show_failure(console: Console, failure: FailureGroup) -> None:
    """A kind of failure, and where it was seen first."""
    tools = ", ".join(failure.tools[:3]) + (", …" if len(failure.tools) > 3 else "")
    head = Text(f"{failure.count:>4,}× ", style="bold")
    head.append(shown.one_line(failure.fingerprint, max(console.width - 7, 30)), style="")
    console.print(head)
    where = f"{shown.short_id(failure.example.session)}, call {failure.example.call_index + 1}"
    about = f"{tools} · {failure.kind or failure.status} · first in {where}"
    console.print(Text("      " + shown.one_line(about, console.width - 7), style="dim"))


def _show_learning(console: Console, found: Profile) -> None:
    learned, curve = found.learning, found.curve
    if curve.sessions:
        line = Text("beginning ")
        line.append(spark(curve.parts), style="red")
        highest = max(rate.estimate or 0.0 for rate in curve.parts)
        line.append(f" end   at most {percent(highest)}, in sessions with ten calls or more")
        console.print(line)
    _show_early_and_late(console, learned)
    console.print(Text(learned.reading))


def _show_early_and_late(console: Console, learned: Learning) -> None:
    if not learned.early.total:
        return
    heads = ("rate before", "rate after", "points", "95 % interval")
    table = shown.table("late against early", *heads, numbers=heads)
    rows = (
        ("all calls thrown together", learned.early, learned.late, learned.crude),
        ("tool by tool", None, None, learned.stratified),
        ("later use of a tool", None, None, learned.first_later),
    )
    for name, before, after, difference in rows:
        table.add_row(
            name,
            "" if before is None else percent(before.estimate),
            "" if after is None else percent(after.estimate),
            points(difference),
            points_interval(difference),
        )
    console.print(table)


def show_remedies(console: Console, remedies: Sequence[PlaybookMistake], *, failures: int) -> None:
    """What would prevent most of the failures, as sessions themselves have shown."""
    if not remedies:
        return
    from journeyman.templates.shown.briefing import remedy_text  # noqa: PLC0415 - loads slowly

    console.print(Text("\nWhat would prevent most failures", style="bold"))
    for one in remedies:
        what = one.target or one.tool
        share = f"{one.times} of {failures:,} failures"
        said = f'{what} says "{one.error}": {share}, fixed by {remedy_text(one.remedy)}'
        console.print(Text(f"- {shown.plain(said)}"))
