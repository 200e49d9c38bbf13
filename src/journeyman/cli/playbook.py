"""`journeyman playbook`: what holds in a project, and the same in a file that agents read."""

import difflib
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.playbook_files import read_text
from journeyman.records import ProjectTotals
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook
from journeyman.templates.shown.briefing import remedy_text

_SHOWN = 20
_NAMED = 8


@click.command(
    epilog="""\b
Examples:
  journeyman playbook
  journeyman playbook acme/app
  journeyman playbook --json
  journeyman playbook --write CLAUDE.md
  journeyman playbook --undo CLAUDE.md"""
)
@click.argument("project", required=False, metavar="[PROJECT]")
@click.option(
    "--write",
    "write_to",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep a marked block with the playbook in this file, such as CLAUDE.md or AGENTS.md.",
)
@click.option(
    "--undo",
    "undo_in",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take back what the last --write did to this file.",
)
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--all", "every", is_flag=True, help="All commands and files, not only the first.")
@asked.json_option
@click.pass_context
def playbook(
    ctx: click.Context,
    *,
    project: str | None,
    write_to: Path | None,
    undo_in: Path | None,
    yes: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Show what holds in PROJECT: the commands that work there, the mistakes that recur with what
    mended them, and the files that work keeps coming back to.

    PROJECT is a folder or the name of a repository; without one it is the current folder's. All of
    it is counted from recorded sessions: `journeyman import` and `journeyman learn` come first.

    --write puts the most useful part into a file that agents read at the start, between two marks.
    It shows the change and asks before it writes; what is outside the marks is never touched.
    """
    if write_to and undo_in:
        raise click.UsageError("Give --write or --undo, not both.")
    journeyman = asked.opened(ctx)
    if undo_in:
        files = journeyman.playbook_files
        if _change(undo_in, files.preview_undo(undo_in), yes=yes):
            files.undo(undo_in)
            click.echo("Taken back.", err=True)
        return
    found = journeyman.playbook(project or ".")
    if found.is_empty:
        known = [one for one in journeyman.sessions.projects() if one.project]
        said = f"Nothing has been learned in {found.project or project!r}."
        if project or write_to or as_json or not known:
            names = ", ".join(one.project for one in known[:_NAMED])
            raise WrongInput(
                f"{said} {f'Known projects: {names}. ' if names else ''}"
                "`journeyman import` and `journeyman learn` learn from recorded sessions."
            )
        show_projects(shown.console(), said, known)
        return
    if write_to:
        files = journeyman.playbook_files
        if _change(write_to, files.preview(found, write_to), yes=yes):
            files.write(found, write_to)
            click.echo(f"Written. `journeyman playbook --undo {write_to}` takes it back.", err=True)
        return
    if as_json:
        asked.print_json(found)
        return
    show(shown.console(), found, every=every)


def show_projects(console: Console, said: str, known: Sequence[ProjectTotals]) -> None:
    """The projects that may have a playbook, for somebody who is in none of them."""
    console.print(f"{said} Name one of these projects: journeyman playbook PROJECT")
    table = shown.table("sessions", "calls", "last", "project", numbers=("sessions", "calls"))
    for one in known:
        counts = shown.count(one.sessions), shown.count(one.calls)
        table.add_row(*counts, shown.moment(one.ended_at)[:10], shown.cell(one.project))
    console.print(table)


def _change(path: Path, after: str, *, yes: bool) -> bool:
    """Show what would change in a file and ask; whether there is anything to change."""
    before = read_text(path)
    if before == after:
        click.echo(f"{path} is up to date.", err=True)
        return False
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{path} (now)", f"{path} (then)", lineterm=""
    )
    click.echo("\n".join(shown.plain(line) for line in lines))
    if not yes:
        click.confirm(f"Change {path}?", abort=True, err=True)
    return True


def show(console: Console, playbook: Playbook, *, every: bool = False) -> None:
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
        table = shown.table("sessions", "mended", "mistake", numbers=("sessions", "mended"))
        for mistake in playbook.mistakes[:most]:
            what = mistake.target or mistake.tool
            told = Text.assemble((shown.plain(what), "bold"), f": {shown.plain(mistake.error)}")
            if mistake.remedy:
                told.append(f"\nmended by {shown.plain(remedy_text(mistake.remedy))}", style="dim")
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
