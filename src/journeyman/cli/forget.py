"""`journeyman forget`."""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.journeyman import Journeyman
from journeyman.records import SessionId
from journeyman.records.kept_out import Forgotten

_NAMED = 5


@click.command(
    epilog="""\b
Examples:
  journeyman forget 0442a060 --dry-run
  journeyman forget --project acme/shop
  journeyman forget --source codex --yes
  journeyman forget --matching "db-7.internal"
  journeyman forget --list
  journeyman forget --undo 0442a060"""
)
@click.argument("target", required=False, default="", metavar="[SESSION|PROJECT|SOURCE]")
@click.option("--session", default="", metavar="ID", help="What was learned from this session.")
@click.option("--project", default="", metavar="NAME|DIR", help="What was learned in this project.")
@click.option("--source", default="", metavar="NAME", help="What was learned from this recorder.")
@click.option(
    "--matching", metavar="TEXT", help="What holds this text, in any case; it is no pattern."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--undo", is_flag=True, help="Let what was forgotten be learned again.")
@click.option("--list", "listing", is_flag=True, help="Show which sessions are forgotten.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@asked.json_option
@click.pass_context
def forget(
    ctx: click.Context,
    *,
    target: str,
    session: str,
    project: str,
    source: str,
    matching: str | None,
    dry_run: bool,
    undo: bool,
    listing: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove what was learned from a session, a project or a recorder, or what holds a text.

    Episodes, patterns, vectors and what was kept out are removed, playbooks and openings no longer
    know of it, and templates lose the patterns concerned; a template with nothing left is deleted.
    It is not learned again until you --undo it. Sessions that are recorded later are learned from
    as usual.

    The recorded sessions stay: `journeyman sessions delete` deletes those.
    """
    journeyman = asked.opened(ctx)
    if listing:
        _list(journeyman, as_json=as_json)
        return
    if not (target or session or project or source or matching is not None):
        raise click.UsageError("Say what to forget: a session, a project, a source, or --matching.")
    where: dict[str, Any] = {"session": session, "project": project, "source": source}
    if undo:
        if matching is not None:
            raise click.UsageError(
                "The text is not kept. `journeyman forget --list` names the sessions to undo."
            )
        if dry_run:
            raise click.UsageError(
                "--undo has no --dry-run. `journeyman forget --list` shows what can be undone."
            )
        _tell_undone(journeyman, journeyman.unforget(target, **where), as_json=as_json)
        return
    where["matching"] = matching
    if not yes or dry_run:
        found = journeyman.forget(target, **where, dry_run=True)
        if dry_run:
            _tell(found, as_json=as_json)
            return
        if not sys.stdin.isatty():
            raise click.UsageError("Nobody can be asked here. Use --yes, or --dry-run to look.")
        _show(Console(stderr=True, highlight=False), found)
        if found.is_empty and not found.sessions:
            return
        click.confirm("Forget this?", abort=True, err=True)
    undo_by = _undo_by(target, session=session, project=project, source=source)
    _tell(journeyman.forget(target, **where), as_json=as_json, undo_by=undo_by)


def _undo_by(target: str, **where: str) -> str:
    """The command that takes it back."""
    chosen = [word for name, value in where.items() if value for word in (f"--{name}", value)]
    given = [target] if target else chosen
    return shlex.join(["journeyman", "forget", "--undo", *given]) if given else ""


def _tell(found: Forgotten, *, as_json: bool, undo_by: str | None = None) -> None:
    if as_json:
        asked.print_json(found)
    else:
        _show(shown.console(), found, undo_by)


def _show(console: Console, found: Forgotten, undo_by: str | None = None) -> None:
    """What was removed, with the command that takes it back, empty where none takes back all of it;
    or without one, what would be removed.
    """
    many, done = shown.many, undo_by is not None
    if found.is_empty and not found.sessions:
        console.print("Nothing that was learned holds this: nothing to forget.")
        return
    if found.is_empty:
        will = "will" if done else "would"
        console.print(
            f"Nothing was learned from {many(len(found.sessions), 'session')} so far, and nothing "
            f"{will} be."
        )
        return
    templates = [
        *([f"changed {_names(found.templates_changed)}"] if found.templates_changed else []),
        *([f"deleted {_names(found.templates_deleted)}"] if found.templates_deleted else []),
    ]
    lost = (many(found.commands, "command"), many(found.files, "file"))
    facts = {
        "sessions": f"{len(found.sessions):,}",
        "projects": _names(found.projects),
        "episodes": f"{found.episodes:,} with {many(found.vectors, 'vector')}",
        "playbooks": f"{', '.join(lost)} and {many(found.mistakes, 'mistake')} no longer known",
        "patterns": f"{found.patterns:,}",
        "kept out": f"{found.kept_out:,}" if found.kept_out else "",
        "templates": "; ".join(templates),
    }
    if found.template_patterns:
        facts["templates"] += f" ({many(found.template_patterns, 'pattern')} less)"
    console.print(Text("Forgotten:" if done else "This would be forgotten:", style="bold"))
    for name, value in facts.items():
        if value:
            console.print(Text.assemble((f"  {name:10s}", "dim"), shown.plain(value)))
    if not done:
        return
    if found.learned_again:
        console.print(
            f"`journeyman learn` goes through {many(found.learned_again, 'session')} again that "
            "had something in common with it."
        )
    if found.projects:
        console.print(
            "Files that hold a playbook are as they were: `journeyman playbook --write FILE` "
            "brings them up to date."
        )
    if found.sessions:
        if not undo_by and len(found.sessions) == 1:
            undo_by = _undo_by(found.sessions[0])
        back = f"`{undo_by}`" if undo_by else "`journeyman forget --undo` with each of them"
        console.print(
            shown.cell(
                f"The sessions are still stored. To take it back: {back}, then `journeyman learn`."
            ),
            soft_wrap=True,
        )


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _tell_undone(journeyman: Journeyman, found: Sequence[SessionId], *, as_json: bool) -> None:
    if as_json:
        asked.print_json(found)
        return
    stored = [one.session.id for one in journeyman.sessions.with_ids(found)]
    for gone in sorted(set(found).difference(stored)):
        click.echo(
            f"Session {shown.plain(gone)} is not stored any more. If it is imported again, "
            "it may teach."
        )
    if stored:
        click.echo(
            f"{shown.many(len(stored), 'session')} may teach again: `journeyman learn` learns from "
            f"{'it' if len(stored) == 1 else 'them'}. Templates stay as they are."
        )


def _list(journeyman: Journeyman, *, as_json: bool) -> None:
    found = journeyman.forgotten.list()
    if as_json:
        asked.print_json(found)
        return
    console = shown.console()
    if not found:
        console.print("Nothing is forgotten.")
        return
    table = shown.table("session", "forgotten", "requests")
    table.columns[0].overflow = "fold"
    table.columns[1].no_wrap = True
    for one in found:
        which = ", ".join(map(str, one.requests)) or "all"
        table.add_row(shown.cell(shown.short_id(one.session)), shown.moment(one.at), which)
    console.print(table)
