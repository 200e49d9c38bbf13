"""`journeyman playbook`: shows a project's playbook, and writes it to a file that agents read."""

import difflib
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.facts import show_facts
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.fact import Playbook
from journeyman.text.display import readable

_MAX_PROJECTS_NAMED = 8
_MOST_SHOWN = 12
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
    """Show the playbook of PROJECT: what agents are told about it, because it holds in this
    checkout and no instructions file says it; and where such a file is wrong.

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
    if learned.is_empty and learned.sessions and not (write_to or as_json):
        click.echo(
            f"Nothing to tell about {learned.project}: what is known does not hold any more, or an "
            "instructions file says it. `journeyman facts list` shows it."
        )
    elif learned.is_empty:
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
    from journeyman.experience.playbook_files import read_playbook_file  # noqa: PLC0415 - not needed for help

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
    show_facts(console, playbook.facts, None if show_all else _MOST_SHOWN)
    if playbook.corrections:
        formatting.print_heading(console, "Where instructions files are wrong")
        for wrong in playbook.corrections:
            line = f"{wrong.file} says `{wrong.says}`. Sessions show: {wrong.fact.text}"
            console.print(Text(readable(line)))
