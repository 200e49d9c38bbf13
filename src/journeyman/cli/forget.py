"""`journeyman forget`: removes what was learned."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from rich.console import Console

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records import SessionId
from journeyman.records.forgetting import Forgotten

_MAX_NAMES = 5


@context.command()
@click.argument("session", required=False, default="", metavar="[SESSION]")
@option("--project NAME|DIR", "Forget what was learned in this project.", default="")
@option("--matching TEXT", "Forget what contains this literal text, in any case.")
@flag("--dry-run", "Show what would be removed, and remove nothing.")
@flag("--undo", "Allow what was forgotten to be learned again.")
@flag("--list", "List the forgotten sessions.", dest="is_list")
@context.yes_option
def forget(
    journeyman: Journeyman,
    *,
    matching: str | None,
    dry_run: bool,
    undo: bool,
    is_list: bool,
    yes: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Remove what was learned from a session or a project, or what contains a text.

    Removes episodes and their vectors. Playbooks and openings no longer use them, and templates
    lose the affected patterns; a template with none left is deleted. None of it is learned again
    until you --undo it. Sessions recorded later are learned from as usual.

    The recorded sessions stay; `journeyman sessions delete` deletes them.

    Examples:
      journeyman forget 0442a060 --dry-run
      journeyman forget --project acme/shop --yes
      journeyman forget --matching "db-7.internal"
      journeyman forget --undo 0442a060
    """
    is_named = any(where.values())
    if is_list:
        context.print_result(journeyman.forgotten.list(), _show_list, as_json=as_json)
    elif undo:
        if not is_named or dry_run or matching is not None:
            raise click.UsageError(
                "Name what to undo: --undo takes a session or a project. `journeyman forget "
                "--list` shows what can be undone."
            )
        context.print_result(journeyman.unforget(**where), _show_undone, as_json=as_json)
    elif not is_named and matching is None:
        raise click.UsageError(
            "Name what to forget: a session, a project or a text. `journeyman forget --help` has "
            "examples."
        )
    elif dry_run or yes or _is_agreed(journeyman.forget(**where, matching=matching, dry_run=True)):
        forgotten = journeyman.forget(**where, matching=matching, dry_run=dry_run)
        context.print_result(forgotten, partial(_show, is_done=not dry_run), as_json=as_json)


def _is_agreed(preview: Forgotten) -> bool:
    context.require_terminal()
    _show(Console(stderr=True, highlight=False), preview)
    if preview.is_empty and not preview.sessions:
        return False
    return click.confirm("Forget this?", abort=True, err=True)


def _show(console: Console, forgotten: Forgotten, *, is_done: bool = False) -> None:
    """Show what was removed, or would be."""
    if forgotten.is_empty and not forgotten.sessions:
        console.print("Nothing that was learned contains this: nothing to forget.")
        return
    console.print("Forgotten:" if is_done else "This would be forgotten:", style="bold")
    fields = {
        "  sessions": formatting.count(len(forgotten.sessions)),
        "  projects": formatting.join_names(forgotten.projects, _MAX_NAMES),
        "  episodes": formatting.count(forgotten.episodes),
        "  templates changed": formatting.join_names(forgotten.templates_changed, _MAX_NAMES),
        "  templates deleted": formatting.join_names(forgotten.templates_deleted, _MAX_NAMES),
    }
    formatting.print_fields(console, fields, wrap=True)
    if is_done:
        console.print(
            "Sessions and files with a playbook stay as they are; `journeyman playbook --write "
            "FILE` updates a file. To undo this: `journeyman forget --undo SESSION` or `--undo "
            "--project NAME`, then `journeyman learn`.",
            soft_wrap=True,
        )


def _show_undone(console: Console, ids: Sequence[SessionId]) -> None:
    sessions = formatting.pluralize(len(ids), "session")
    console.print(f"{sessions} can be learned from again: `journeyman learn`.")
    console.print("Templates do not change.")


def _show_list(console: Console, exclusions: Sequence[Any]) -> None:
    ids = context.short_ids(row.session for row in exclusions)
    columns = (
        Column("session", lambda row: ids[row.session], overflow="fold"),
        Column("forgotten", lambda row: formatting.local_time(row.at), no_wrap=True),
        Column("requests", lambda row: ", ".join(map(str, row.requests)) or "all"),
    )
    formatting.print_table(console, exclusions, columns, "Nothing is forgotten.")
