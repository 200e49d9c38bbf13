"""`journeyman playbook`: what holds in a project, and the same in a file that agents read."""

import difflib
import shlex
from pathlib import Path

import click

from journeyman.cli import asked, shown
from journeyman.journeyman import Journeyman
from journeyman.records.errors import WrongInput

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
    fixed them, and the files that work keeps coming back to.

    PROJECT is a folder or the name of a repository; without one it is the current folder's. All of
    it is counted from recorded sessions: `journeyman import` and `journeyman learn` come first.

    --write puts the most useful part into a file that agents read at the start, between two marks.
    It shows the change and asks before it writes; what is outside the marks is never touched.
    """
    if write_to and undo_in:
        raise click.UsageError("Give --write or --undo, not both.")
    # Loaded here, because help needs nothing of it.
    from journeyman.cli import playbook_shown  # noqa: PLC0415

    journeyman = asked.opened(ctx)
    if undo_in:
        files = journeyman.playbook_files
        if _change(undo_in, files.preview_undo(undo_in), yes=yes):
            files.undo(undo_in)
            click.echo("Taken back.", err=True)
        return
    found = journeyman.playbook(project or ".")
    if found.is_empty:
        _check_forgotten(journeyman, found.project or project or ".")
        known = [one for one in journeyman.sessions.projects() if one.project]
        said = f"Nothing has been learned in {found.project or project!r}."
        if project or write_to or as_json or not known:
            names = ", ".join(one.project for one in known[:_NAMED])
            raise WrongInput(
                f"{said} {f'Known projects: {names}. ' if names else ''}"
                "`journeyman import` and `journeyman learn` learn from recorded sessions."
            )
        playbook_shown.show_projects(shown.console(), said, known)
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
    playbook_shown.show_playbook(shown.console(), found, every=every)


def _check_forgotten(journeyman: Journeyman, project: str) -> None:
    """Raises WrongInput if nothing is known of a project because it was forgotten."""
    forgotten = {one.session for one in journeyman.forgotten.list()}
    if forgotten and any(
        one.session.id in forgotten for one in journeyman.sessions.list(project=project)
    ):
        raise WrongInput(
            f"What was learned in {project!r} was forgotten. To take it back: "
            f"`journeyman forget --undo --project {shlex.quote(project)}`, then `journeyman learn`."
        )


def _change(path: Path, after: str, *, yes: bool) -> bool:
    """Show what would change in a file and ask; whether there is anything to change."""
    from journeyman.playbook_files import read_text  # noqa: PLC0415 - as above

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
