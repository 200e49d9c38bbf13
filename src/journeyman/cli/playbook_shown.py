"""How a playbook looks in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.records import ProjectTotals
from journeyman.records.playbook import Playbook
from journeyman.templates.shown.briefing import remedy_text

_SHOWN = 20


def show_projects(console: Console, said: str, known: Sequence[ProjectTotals]) -> None:
    """The projects that may have a playbook, for somebody who is in none of them."""
    console.print(f"{said} Name one of these projects: journeyman playbook PROJECT")
    table = shown.table("sessions", "calls", "last", "project", numbers=("sessions", "calls"))
    for one in known:
        counts = shown.count(one.sessions), shown.count(one.calls)
        table.add_row(*counts, shown.moment(one.ended_at)[:10], shown.cell(one.project))
    console.print(table)


def show_playbook(console: Console, playbook: Playbook, *, every: bool = False) -> None:
    """The playbook for a person, with how often each was seen."""
    most = None if every else _SHOWN
    sessions = shown.many(playbook.sessions, "session")
    console.print(Text(f"{shown.plain(playbook.project)}: {sessions}", style="bold"))
    if playbook.commands:
        table = shown.table("sessions", "worked", "last", "command", numbers=("sessions", "worked"))
        for one in playbook.commands[:most]:
            total = one.worked + one.failed
            command = Text(shown.plain(one.form), style="bold")
            if said := one.purpose or (one.requests[-1] if one.requests else ""):
                room = max(console.width - 40, 20)
                command.append(f"\n{shown.one_line(said, room)}", style="dim")
            table.add_row(
                shown.count(one.sessions),
                f"{one.worked} of {total}",
                shown.moment(one.last_at)[:10],
                command,
            )
        console.print(Text("\nCommands that work", style="bold"))
        console.print(table)
        _more(console, len(playbook.commands), most)
    if playbook.mistakes:
        table = shown.table("sessions", "fixed", "mistake", numbers=("sessions", "fixed"))
        for mistake in playbook.mistakes[:most]:
            what = mistake.target or mistake.tool
            told = Text.assemble((shown.plain(what), "bold"), f": {shown.plain(mistake.error)}")
            if mistake.remedy:
                told.append(f"\nfixed by {shown.plain(remedy_text(mistake.remedy))}", style="dim")
            table.add_row(
                shown.count(mistake.sessions), f"{mistake.mended} of {mistake.times}", told
            )
        console.print(Text("\nMistakes that recur", style="bold"))
        console.print(table)
    if playbook.files:
        table = shown.table("sessions", "read", "changed", "file", numbers=("sessions", "read"))
        for file in playbook.files[: most and most // 2]:
            path = Text(shown.plain(file.path))
            if file.requests:
                room = max(console.width - 40, 20)
                path.append(f"\n{shown.one_line(file.requests[-1], room)}", style="dim")
            counts = (shown.count(one) for one in (file.sessions, file.read, file.changed))
            table.add_row(*counts, path)
        console.print(Text("\nWhere things are", style="bold"))
        console.print(table)
        _more(console, len(playbook.files), most and most // 2)


def _more(console: Console, number: int, most: int | None) -> None:
    if most is not None and number > most:
        console.print(f"and {number - most:,} more: --all shows them", style="dim")
