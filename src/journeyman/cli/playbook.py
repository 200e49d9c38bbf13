"""`journeyman playbook`: shows a project's playbook, and writes it to a file that agents read."""

import difflib
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
        error = _nothing_learned(journeyman, learned.project or project or ".")
        if project or write_to or as_json:
            raise error
        click.echo(error)
    elif write_to:
        if _confirm_change(write_to, files.preview(learned, write_to), yes=yes):
            files.write(learned, write_to)
            click.echo(f"Written. To undo this: `journeyman playbook --undo {write_to}`", err=True)
    elif as_json:
        context.print_json(learned)
    else:
        show_playbook(formatting.console(), learned, show_all=show_all)


def _nothing_learned(journeyman: Journeyman, project: str) -> WrongInput:
    """Return the error for a project without a playbook; it names the projects that have one."""
    known = [totals.project for totals in journeyman.sessions.projects() if totals.project]
    names = formatting.join_names(known, _MAX_PROJECTS_NAMED)
    return WrongInput(
        f"Nothing has been learned in {project!r}, or it was forgotten. "
        f"{f'Known projects: {names}. ' if names else ''}"
        "To learn from recorded sessions: `journeyman import`, then `journeyman learn`."
    )


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
        worked, last = (
            f"{row.worked} of {row.worked + row.failed}",
            formatting.local_time(row.last_at),
        )
        return row.sessions, worked, last[:10], two_lines(row.form, row.purpose)

    def mistake_row(row: PlaybookMistake) -> Sequence[formatting.Cell]:
        fix = f"fixed by {remedy_text(row.remedy)}" if row.remedy else ""
        mistake = two_lines(row.target or row.tool, fix, rest=f": {row.error}", limit=len(fix))
        return row.sessions, f"{row.mended} of {row.times}", mistake

    def file_row(row: PlaybookFile) -> Sequence[formatting.Cell]:
        return row.sessions, row.read, row.changed, readable(row.path)

    parts: tuple[tuple[str, str, list[Sequence[formatting.Cell]], int], ...] = (
        ("Commands that work", "worked last command", [*map(command_row, playbook.commands)], 20),
        ("Recurring mistakes", "fixed mistake", [*map(mistake_row, playbook.mistakes)], 20),
        ("Files used most", "read changed file", [*map(file_row, playbook.files)], 10),
    )
    for title, headers, rows, limit in parts:
        if rows:
            formatting.print_heading(console, title)
            names = ("sessions", *headers.split())
            shown_rows = rows if show_all else rows[:limit]
            console.print(formatting.table(*names, numbers=names[:2], rows=shown_rows))
            if not show_all:
                formatting.print_remainder(console, len(rows), limit, ": --all shows them")
