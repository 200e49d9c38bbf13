"""`journeyman playbook`: what holds in a project, and the same in a file that agents read."""

import difflib
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import flag, option
from journeyman.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook, PlaybookCommand, PlaybookFile, PlaybookMistake
from journeyman.templates.shown.briefing import remedy_text

_NAMED = 8
_FILE = click.Path(dir_okay=False, path_type=Path)


@asked.command()
@click.argument("project", required=False, metavar="[PROJECT]")
@option(
    "--write FILE",
    "Keep a marked block with the playbook in this file, such as CLAUDE.md or AGENTS.md.",
    to="write_to",
    type=_FILE,
)
@option(
    "--undo FILE", "Take back what the last --write did to this file.", to="undo_in", type=_FILE
)
@flag("--yes", "Write without asking.")
@flag("--all", "All commands and files, not only the first.", to="every")
def playbook(
    journeyman: Journeyman,
    *,
    project: str | None,
    write_to: Path | None,
    undo_in: Path | None,
    yes: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Show what holds in PROJECT: the commands that work there, the mistakes that recur with what
    fixed them, and the files that work keeps coming back to.

    PROJECT is a folder or the name of a repository; without one it is the current folder's. All of
    it is counted from recorded sessions: `journeyman import` and `journeyman learn` come first.

    --write puts the most useful part into a file that agents read at the start, between two marks.
    It shows the change and asks before it writes; what is outside the marks is never touched.

    Examples:
      journeyman playbook
      journeyman playbook acme/app
      journeyman playbook --json
      journeyman playbook --write CLAUDE.md
      journeyman playbook --undo CLAUDE.md
    """
    if write_to and undo_in:
        raise click.UsageError("Give --write or --undo, not both.")
    files = journeyman.playbook_files
    if undo_in:
        if _change(undo_in, files.preview_undo(undo_in), yes=yes):
            files.undo(undo_in)
            click.echo("Taken back.", err=True)
        return
    found = journeyman.playbook(project or ".")
    if found.is_empty:
        named = bool(project or write_to or as_json)
        _tell_empty(journeyman, found.project or project or ".", named=named)
    elif write_to:
        if _change(write_to, files.preview(found, write_to), yes=yes):
            files.write(found, write_to)
            click.echo(f"Written. `journeyman playbook --undo {write_to}` takes it back.", err=True)
    elif as_json:
        asked.print_json(found)
    else:
        _show_playbook(shown.console(), found, every=every)


def _tell_empty(journeyman: Journeyman, project: str, *, named: bool) -> None:
    """Say which projects there are; raises WrongInput where this one was asked for by name, or was
    forgotten.
    """
    forgotten = {one.session for one in journeyman.forgotten.list()}
    stored = journeyman.sessions.list(project=project) if forgotten else ()
    if any(one.session.id in forgotten for one in stored):
        raise WrongInput(
            f"What was learned in {project!r} was forgotten. To take it back: "
            f"`journeyman forget --undo --project {shlex.quote(project)}`, then `journeyman learn`."
        )
    known = [one for one in journeyman.sessions.projects() if one.project]
    said = f"Nothing has been learned in {project!r}."
    if named or not known:
        names = ", ".join(one.project for one in known[:_NAMED])
        raise WrongInput(
            f"{said} {f'Known projects: {names}. ' if names else ''}"
            "`journeyman import` and `journeyman learn` learn from recorded sessions."
        )
    console, numbers = shown.console(), ("sessions", "calls")
    console.print(f"{said} Name one of these projects: journeyman playbook PROJECT")
    rows = ((one.sessions, one.calls, _day(one.ended_at), one.project) for one in known)
    console.print(shown.table(*numbers, "last", "project", numbers=numbers, rows=rows))


def _change(path: Path, after: str, *, yes: bool) -> bool:
    """Show what would change in a file and ask; whether there is anything to change."""
    from journeyman.playbook_files import read_text  # noqa: PLC0415 - help needs nothing of it

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


_SHOWN = 20


def _day(at: float | None) -> str:
    return shown.moment(at)[:10]


def _show_playbook(console: Console, playbook: Playbook, *, every: bool) -> None:
    sessions = shown.many(playbook.sessions, "session")
    console.print(Text(f"{shown.plain(playbook.project)}: {sessions}", style="bold"))

    room = max(console.width - 40, 20)

    def told(what: str, below: str, *, rest: str = "", most: int = room) -> Text:
        line = shown.one_line(below, most)
        dim = (f"\n{line}" if line else "", "dim")
        return Text.assemble((shown.plain(what), "bold"), shown.plain(rest), dim)

    def command(one: PlaybookCommand) -> Sequence[shown.Cell]:
        worked, request = f"{one.worked} of {one.worked + one.failed}", "".join(one.requests[-1:])
        return one.sessions, worked, _day(one.last_at), told(one.form, one.purpose or request)

    def mistake(one: PlaybookMistake) -> Sequence[shown.Cell]:
        fixed = f"fixed by {remedy_text(one.remedy)}" if one.remedy else ""
        what = told(one.target or one.tool, fixed, rest=f": {one.error}", most=len(fixed))
        return one.sessions, f"{one.mended} of {one.times}", what

    def file(one: PlaybookFile) -> Sequence[shown.Cell]:
        return one.sessions, one.read, one.changed, told(one.path, "".join(one.requests[-1:]))

    parts: tuple[tuple[str, str, Sequence[Sequence[shown.Cell]], int], ...] = (
        ("Commands that work", "worked last command", [*map(command, playbook.commands)], _SHOWN),
        ("Mistakes that recur", "fixed mistake", [*map(mistake, playbook.mistakes)], _SHOWN),
        ("Where things are", "read changed file", [*map(file, playbook.files)], _SHOWN // 2),
    )
    for title, heads, rows, most in parts:
        if rows:
            shown.head(console, title)
            names = ("sessions", *heads.split())
            shown_rows = rows if every else rows[:most]
            console.print(shown.table(*names, numbers=names[:2], rows=shown_rows))
            if not every:
                shown.more(console, len(rows), most, ": --all shows them")
