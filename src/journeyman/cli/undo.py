"""`journeyman undo`: put back what a run changed in its folder."""

from collections import Counter

import click
from rich.console import Console
from rich.text import Text

from journeyman.agent.undo import Undo
from journeyman.cli import asked, shown
from journeyman.journeyman import Journeyman

_MOST_SHOWN = 40
_LABELS: dict[str, tuple[str, str]] = {
    "restore": ("restore", "green"),
    "change": ("change back", "yellow"),
    "delete": ("delete", "red"),
}


@asked.command(fails=lambda found: any(one.failed for one in found.changes))
@click.argument("session", metavar="SESSION")
@click.option(
    "--turn",
    type=asked.SOME,
    metavar="N",
    help="Undo this turn and those after it (default: the whole session).",
)
@click.option("--redo", is_flag=True, help="Take the last undo back.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def undo(
    journeyman: Journeyman,
    *,
    session: str,
    turn: int | None,
    redo: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> Undo:
    """Put back the files that a run changed, deleted or created.

    Shows what would change and asks first. Files that the run did not touch stay as they are. The
    folder is kept as it is before anything is changed, so --redo can bring it back.

    Examples:
      journeyman undo 20261116-081500-3fa2b1 --dry-run
      journeyman undo 20261116-081500-3fa2b1
      journeyman undo 20261116-081500-3fa2b1 --turn 2 --yes
      journeyman undo 20261116-081500-3fa2b1 --redo
    """
    if turn is not None and redo:
        raise click.UsageError("--redo takes the last undo back as a whole: leave out --turn.")
    found = journeyman.undo(session, turn=turn, redo=redo, dry_run=True)
    if not as_json:
        _show(shown.console(), found)
    if found.changes and not dry_run:
        if not yes:
            asked.check_terminal()
            question = f"Change {shown.many(len(found.changes), 'path')} in {found.workspace}?"
            if found.changed_since:
                later = f"Somebody changed {shown.names(found.changed_since, 5)} after the run"
                question = f"{later}, which would be lost. {question}"
            click.confirm(shown.plain(question), abort=True, err=True)
        found = journeyman.undo(session, turn=turn, redo=redo)
    if as_json:
        asked.print_json(found)
    elif found.done:
        for change in found.changes:
            if change.failed:
                said = f"Not done: {shown.plain(change.path)}: {change.failed}"
                shown.console().print(Text(said, style="red"))
        click.echo(f"Done. To take it back: journeyman undo {shown.plain(found.session)} --redo")
    return found


def _show(console: Console, found: Undo) -> None:
    for turn in found.turns:
        task = shown.one_line(turn.task, 60)
        ended = "" if turn.ended else " (ended abruptly: all changes since count as its own)"
        console.print(Text(f"turn {turn.number}, {shown.moment(turn.at)}: {task}{ended}"))
    if not found.changes:
        console.print("Nothing to change: the files are as they were before.")
        return
    own = [one for one in found.changes if not one.path.startswith(".git/")]
    for change in own[:_MOST_SHOWN]:
        since = "  (changed since)" if change.changed_since else ""
        label, style = _LABELS[change.action]
        line = Text(f"  {label:<12}", style=style)
        console.print(line.append(shown.plain(change.path) + since, style="default"))
    shown.more(console, len(own), _MOST_SHOWN, "")
    if inner := len(found.changes) - len(own):
        console.print(f"  and {shown.many(inner, 'file')} of the git repository (.git)")
    counts = Counter(_LABELS[one.action][0] for one in found.changes)
    labels = (label for label, _ in _LABELS.values() if counts[label])
    console.print(", ".join(f"{counts[label]:,} to {label}" for label in labels))
