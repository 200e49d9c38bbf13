"""`journeyman playbook`: shows a project's playbook, and writes it to a file that agents read."""

import difflib
import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook, PlaybookCommand, PlaybookFile, PlaybookMistake
from journeyman.templates.briefing import remedy_text
from journeyman.text.display import readable

_MAX_PROJECTS_NAMED = 8
_FILE = click.Path(dir_okay=False, path_type=Path)


@context.command(is_paged=True)
@click.argument("project", required=False, metavar="[PROJECT]")
@option(
    "--write FILE",
    "Write the playbook to a marked block of this file, such as CLAUDE.md.",
    dest="write_to",
    type=_FILE,
)
@option("--undo FILE", "Remove the block from this file.", dest="undo_in", type=_FILE)
@context.yes_option
@context.bots_option
@flag("--all", "Show all rows, not only the first.", dest="show_all")
def playbook(
    journeyman: Journeyman,
    *,
    project: str | None,
    write_to: Path | None,
    undo_in: Path | None,
    yes: bool,
    bots: bool,
    show_all: bool,
    as_json: bool,
) -> None:
    """Show the playbook of PROJECT: the commands that work there, recurring mistakes and their
    fixes, and the files used most.

    PROJECT is a folder or the name of a repository (default: the current folder). Everything is
    counted from recorded sessions, so run `journeyman import` and `journeyman learn` first.

    --write puts the most useful part into a file that agents read at the start, between two
    markers. It shows the change and asks for confirmation before it writes; text outside the
    markers is never changed.

    Examples:
      journeyman playbook
      journeyman playbook acme/app
      journeyman playbook --json
      journeyman playbook --write CLAUDE.md
      journeyman playbook --undo CLAUDE.md
    """
    if write_to and undo_in:
        raise click.UsageError("Pass --write or --undo, not both.")
    files = journeyman.playbook_files
    if undo_in:
        if _confirm_change(undo_in, files.preview_undo(undo_in), yes=yes):
            files.undo(undo_in)
            click.echo("Undone.", err=True)
        return
    learned = journeyman.playbook(project or ".", bots=bots)
    if learned.is_empty:
        named = bool(project or write_to or as_json)
        _report_empty(journeyman, learned.project or project or ".", named=named)
    elif write_to:
        if _confirm_change(write_to, files.preview(learned, write_to), yes=yes):
            files.write(learned, write_to)
            click.echo(f"Written. To undo this: `journeyman playbook --undo {write_to}`", err=True)
    elif as_json:
        context.print_json(learned)
    else:
        show_playbook(formatting.console(), learned, show_all=show_all)


def _report_empty(journeyman: Journeyman, project: str, *, named: bool) -> None:
    """List the known projects. Raise WrongInput if this project was requested by name, or was
    forgotten.
    """
    forgotten = {exclusion.session for exclusion in journeyman.forgotten.list()}
    stored = journeyman.sessions.list(project=project) if forgotten else ()
    if any(overview.session.id in forgotten for overview in stored):
        raise WrongInput(
            f"There is no playbook: what was learned in {project!r} was forgotten. To undo that: "
            f"`journeyman forget --undo --project {shlex.quote(project)}`, then `journeyman learn`."
        )
    known = [totals for totals in journeyman.sessions.projects() if totals.project]
    message = f"Nothing has been learned in {project!r}."
    if named or not known:
        names = ", ".join(totals.project for totals in known[:_MAX_PROJECTS_NAMED])
        raise WrongInput(
            f"{message} {f'Known projects: {names}. ' if names else ''}"
            "To learn from recorded sessions: `journeyman import`, then `journeyman learn`."
        )
    console, numbers = formatting.console(), ("sessions", "calls")
    console.print(f"{message} Name one of these projects: journeyman playbook PROJECT")
    rows = ((row.sessions, row.calls, _day(row.ended_at), row.project) for row in known)
    console.print(formatting.table(*numbers, "last", "project", numbers=numbers, rows=rows))


def _confirm_change(path: Path, after: str, *, yes: bool) -> bool:
    """Show what would change in a file and ask for confirmation; return whether anything would."""
    from journeyman.templates.playbook_files import read_playbook_file  # noqa: PLC0415 - not needed for help

    before = read_playbook_file(path)
    if before == after:
        click.echo(f"{path} is up to date.", err=True)
        return False
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{path} (now)", f"{path} (then)", lineterm=""
    )
    click.echo("\n".join(readable(line) for line in lines))
    if not yes:
        click.confirm(f"Change {path}?", abort=True, err=True)
    return True


_MAX_ROWS = 20


def _day(at: float | None) -> str:
    return formatting.local_time(at)[:10]


def show_playbook(console: Console, playbook: Playbook, *, show_all: bool) -> None:
    sessions = formatting.pluralize(playbook.sessions, "session")
    console.print(Text(f"{readable(playbook.project)}: {sessions}", style="bold"))
    formatting.print_bots_left_out(console, playbook.bots)

    room = max(console.width - 40, 20)

    def two_lines(title: str, below: str, *, rest: str = "", limit: int = room) -> Text:
        line = formatting.one_line(below, limit)
        dim = (f"\n{line}" if line else "", "dim")
        return Text.assemble((readable(title), "bold"), readable(rest), dim)

    def command_row(row: PlaybookCommand) -> Sequence[formatting.Cell]:
        worked = f"{row.worked} of {row.worked + row.failed}"
        return row.sessions, worked, _day(row.last_at), two_lines(row.form, row.purpose)

    def mistake_row(row: PlaybookMistake) -> Sequence[formatting.Cell]:
        fix = f"fixed by {remedy_text(row.remedy)}" if row.remedy else ""
        mistake = two_lines(row.target or row.tool, fix, rest=f": {row.error}", limit=len(fix))
        return row.sessions, f"{row.mended} of {row.times}", mistake

    def file_row(row: PlaybookFile) -> Sequence[formatting.Cell]:
        return row.sessions, row.read, row.changed, readable(row.path)

    parts: tuple[tuple[str, str, Sequence[Sequence[formatting.Cell]], int], ...] = (
        (
            *("Commands that work", "worked last command"),
            *([*map(command_row, playbook.commands)], _MAX_ROWS),
        ),
        (
            *("Recurring mistakes", "fixed mistake"),
            *([*map(mistake_row, playbook.mistakes)], _MAX_ROWS),
        ),
        (
            *("Files used most", "read changed file"),
            *([*map(file_row, playbook.files)], _MAX_ROWS // 2),
        ),
    )
    for title, headers, rows, limit in parts:
        if rows:
            formatting.print_heading(console, title)
            names = ("sessions", *headers.split())
            shown_rows = rows if show_all else rows[:limit]
            console.print(formatting.table(*names, numbers=names[:2], rows=shown_rows))
            if not show_all:
                formatting.print_remainder(console, len(rows), limit, ": --all shows them")
