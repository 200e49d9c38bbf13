"""`journeyman forget`: removes what was learned."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records import SessionId
from journeyman.records.exclusions import Forgotten

_MAX_NAMES = 5


@context.command()
@click.argument("session", required=False, default="", metavar="[SESSION]")
@option("--project NAME|DIR", "Forget what was learned in this project.", default="")
@option("--source NAME", "Forget what was learned from this recorder.", default="")
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
    """Remove what was learned from a session, a project or a recorder, or what contains a text.

    Removes episodes, patterns, vectors and quarantined items. Playbooks and openings no longer use
    them, and templates lose the affected patterns; a template with none left is deleted. None
    of it is learned again until you --undo it. Sessions recorded later are learned from as usual.

    The recorded sessions stay; `journeyman sessions delete` deletes them.

    Examples:
      journeyman forget 0442a060 --dry-run
      journeyman forget --project acme/shop
      journeyman forget --source codex --yes
      journeyman forget --matching "db-7.internal"
      journeyman forget --list
      journeyman forget --undo 0442a060
    """
    if is_list:
        context.print_result(journeyman.forgotten.list(), _show_list, as_json=as_json)
        return
    if not (any(where.values()) or matching is not None):
        raise click.UsageError(
            "Name what to forget: a session, a project, a source, or --matching TEXT."
        )
    if undo:
        _check_undo(matching, dry_run=dry_run)
        ids = journeyman.unforget(**where)
        context.print_result(ids, partial(_show_undone, journeyman), as_json=as_json)
        return
    if not yes or dry_run:
        preview = journeyman.forget(**where, matching=matching, dry_run=True)
        if dry_run:
            context.print_result(preview, _show, as_json=as_json)
            return
        context.require_terminal()
        _show(Console(stderr=True, highlight=False), preview)
        if preview.is_empty and not preview.sessions:
            return
        click.confirm("Forget this?", abort=True, err=True)
    forgotten = journeyman.forget(**where, matching=matching)
    context.print_result(forgotten, partial(_show, undo_by=_undo_command(where)), as_json=as_json)


def _check_undo(matching: str | None, *, dry_run: bool) -> None:
    list_command = "`journeyman forget --list`"
    if matching is not None:
        raise click.UsageError(
            "--undo cannot find sessions by text, because the text is not stored. "
            f"{list_command} shows the sessions to undo."
        )
    if dry_run:
        raise click.UsageError(f"--undo has no --dry-run. {list_command} shows what can be undone.")


def _undo_command(where: Mapping[str, str]) -> str:
    words = [
        word
        for name, value in where.items()
        if value
        for word in ((value,) if name == "session" else (f"--{name}", value))
    ]
    return shlex.join(["journeyman", "forget", "--undo", *words]) if words else ""


def _show(console: Console, forgotten: Forgotten, undo_by: str | None = None) -> None:
    """Show what was removed, with the command that undoes it (empty if no single command does);
    without `undo_by`, show what would be removed.
    """
    pluralize, is_done = formatting.pluralize, undo_by is not None
    if forgotten.is_empty:
        sessions, will = (
            pluralize(len(forgotten.sessions), "session"),
            "will" if is_done else "would",
        )
        none_yet = f"Nothing was learned from {sessions} so far, and nothing {will} be."
        no_match = "Nothing that was learned contains this: nothing to forget."
        console.print(none_yet if forgotten.sessions else no_match)
        return
    lists = (("changed", forgotten.templates_changed), ("deleted", forgotten.templates_deleted))
    templates = [
        f"{action} {formatting.join_names(names, _MAX_NAMES)}" for action, names in lists if names
    ]
    fewer = f" ({pluralize(forgotten.template_patterns, 'pattern')} fewer)"
    fields = {
        "sessions": f"{len(forgotten.sessions):,}",
        "projects": formatting.join_names(forgotten.projects, _MAX_NAMES),
        "episodes": f"{forgotten.episodes:,}",
        "patterns": f"{forgotten.patterns:,}",
        "quarantine": f"{forgotten.kept_out:,}" if forgotten.kept_out else "",
        "templates": "; ".join(templates) + (fewer if forgotten.template_patterns else ""),
    }
    console.print(Text("Forgotten:" if is_done else "This would be forgotten:", style="bold"))
    formatting.print_fields(
        console, {f"  {name}": value for name, value in fields.items()}, width=13, wrap=True
    )
    if not is_done:
        return
    if forgotten.projects:
        console.print(
            "Files with a playbook were not changed. To update one: `journeyman playbook --write "
            "FILE`."
        )
    if forgotten.sessions:
        if not undo_by and len(forgotten.sessions) == 1:
            undo_by = _undo_command({"session": forgotten.sessions[0]})
        undo = f"`{undo_by}`" if undo_by else "`journeyman forget --undo` with each of them"
        note = f"The sessions are still stored. To undo this: {undo}, then `journeyman learn`."
        console.print(formatting.safe_text(note), soft_wrap=True)


def _show_undone(journeyman: Journeyman, console: Console, ids: Sequence[SessionId]) -> None:
    stored = [overview.session.id for overview in journeyman.sessions.with_ids(ids)]
    for missing in sorted(set(ids).difference(stored)):
        note = (
            f"Session {missing} is no longer stored. If it is imported again, it is learned from."
        )
        console.print(formatting.safe_text(note), soft_wrap=True)
    if stored:
        sessions = formatting.pluralize(len(stored), "session")
        note = f"{sessions} can be learned from again: `journeyman learn`. Templates do not change."
        console.print(note, soft_wrap=True)


def _show_list(console: Console, exclusions: Sequence[Any]) -> None:
    ids = context.short_ids(row.session for row in exclusions)
    columns = (
        Column("session", lambda row: ids[row.session], overflow="fold"),
        Column("forgotten", lambda row: formatting.local_time(row.at), no_wrap=True),
        Column("requests", lambda row: ", ".join(map(str, row.requests)) or "all"),
    )
    formatting.print_table(console, exclusions, columns, "Nothing is forgotten.")
