"""`journeyman undo`: restores the files that a run changed."""

from collections import Counter

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag
from journeyman.facade.journeyman import Journeyman
from journeyman.text.display import readable
from journeyman.undo.undo import Undo

_MAX_SHOWN = 40
_LABELS: dict[str, tuple[str, str]] = {
    "restore": ("restore", "green"),
    "change": ("change back", "yellow"),
    "delete": ("delete", "red"),
}


@context.command(is_failure=lambda plan: any(change.failed for change in plan.changes))
@click.argument("session", metavar="SESSION")
@flag("--dry-run", "Show what would change, and change nothing.")
@context.yes_option
def undo(journeyman: Journeyman, *, session: str, dry_run: bool, yes: bool, as_json: bool) -> Undo:
    """Restore the files that a run changed or deleted, and delete those that it created.

    Shows what would change and asks for confirmation. Files that something else changed, during the
    run or after it, stay as they are; so do commits, branches and the index.

    Examples:
      journeyman undo 20261116-081500-3fa2b1 --dry-run
      journeyman undo 20261116-081500-3fa2b1
    """
    plan = journeyman.undo(session, dry_run=True)
    if not as_json:
        _show(formatting.console(), plan)
    if plan.changes and not dry_run:
        if not yes:
            context.require_terminal()
            question = (
                f"Change {formatting.pluralize(len(plan.changes), 'path')} in {plan.workspace}?"
            )
            click.confirm(readable(question), abort=True, err=True)
        plan = journeyman.undo(session)
    if as_json:
        context.print_json(plan)
    elif plan.done:
        for change in plan.changes:
            if change.failed:
                failure = f"Failed: {readable(change.path)}: {change.failed}"
                formatting.console().print(Text(failure, style="red"))
        click.echo("Done.")
    return plan


def _show(console: Console, plan: Undo) -> None:
    left = {"during": plan.changed_during, "after": plan.changed_since}
    for when, paths in left.items():
        if paths:
            files = formatting.join_names(paths, _MAX_SHOWN)
            said = f"Changed by something else {when} the run, so they stay as they are: {files}"
            console.print(Text(readable(said)))
    if plan.repository:
        console.print("Commits, branches and the index stay as they are. What became of them:")
    for told in plan.repository:
        console.print(Text(f"  {readable(told)}"))
    if not plan.changes:
        console.print("Nothing to change: the files are already in their earlier state.")
    for change in plan.changes[:_MAX_SHOWN]:
        label, style = _LABELS[change.action]
        line = Text(f"  {label:<12}", style=style)
        console.print(line.append(readable(change.path), style="default"))
    formatting.print_remainder(console, len(plan.changes), _MAX_SHOWN, "")
    if counts := Counter(_LABELS[change.action][0] for change in plan.changes):
        labels = (label for label, _ in _LABELS.values() if counts[label])
        console.print(", ".join(f"{counts[label]:,} to {label}" for label in labels))
    if any(left.values()):
        click.echo(f"To see what the run changed: {readable(plan.diff)}")
