"""`journeyman forget`."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records import SessionId
from journeyman.records.kept_out import Forgotten

_NAMED = 5


@asked.command()
@click.argument("target", required=False, default="", metavar="[SESSION|PROJECT|SOURCE]")
@option("--session ID", "What was learned from this session.", default="")
@option("--project NAME|DIR", "What was learned in this project.", default="")
@option("--source NAME", "What was learned from this recorder.", default="")
@option("--matching TEXT", "What holds this text, in any case; it is no pattern.")
@flag("--dry-run", "Only show what would be removed.")
@flag("--undo", "Let what was forgotten be learned again.")
@flag("--list", "Show which sessions are forgotten.", to="listing")
@asked.yes_option
def forget(
    journeyman: Journeyman,
    *,
    target: str,
    matching: str | None,
    dry_run: bool,
    undo: bool,
    listing: bool,
    yes: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Remove what was learned from a session, a project or a recorder, or what holds a text.

    Episodes, patterns, vectors and what was kept out are removed, playbooks and openings no longer
    know of it, and templates lose the patterns concerned; a template with nothing left is deleted.
    It is not learned again until you --undo it. Sessions that are recorded later are learned from
    as usual.

    The recorded sessions stay: `journeyman sessions delete` deletes those.

    Examples:
      journeyman forget 0442a060 --dry-run
      journeyman forget --project acme/shop
      journeyman forget --source codex --yes
      journeyman forget --matching "db-7.internal"
      journeyman forget --list
      journeyman forget --undo 0442a060
    """
    if listing:
        asked.answer(journeyman.forgotten.list(), _show_list, as_json=as_json)
        return
    if not (target or any(where.values()) or matching is not None):
        raise click.UsageError("Say what to forget: a session, a project, a source, or --matching.")
    if undo:
        look = "`journeyman forget --list`"
        if matching is not None:
            raise click.UsageError(f"The text is not kept. {look} names the sessions to undo.")
        if dry_run:
            raise click.UsageError(f"--undo has no --dry-run. {look} shows what can be undone.")
        ids = journeyman.unforget(target, **where)
        asked.answer(ids, partial(_show_undone, journeyman), as_json=as_json)
        return
    if not yes or dry_run:
        would = journeyman.forget(target, **where, matching=matching, dry_run=True)
        if dry_run:
            asked.answer(would, _show, as_json=as_json)
            return
        asked.check_terminal()
        _show(Console(stderr=True, highlight=False), would)
        if would.is_empty and not would.sessions:
            return
        click.confirm("Forget this?", abort=True, err=True)
    gone = journeyman.forget(target, **where, matching=matching)
    asked.answer(gone, partial(_show, undo_by=_undo_by(target, where)), as_json=as_json)


def _undo_by(target: str, where: Mapping[str, str]) -> str:
    chosen = [word for name, value in where.items() if value for word in (f"--{name}", value)]
    given = [target] if target else chosen
    return shlex.join(["journeyman", "forget", "--undo", *given]) if given else ""


def _show(console: Console, found: Forgotten, undo_by: str | None = None) -> None:
    """What was removed, with the command that takes it back, empty where none takes back all of it;
    or without one, what would be removed.
    """
    many, done = shown.many, undo_by is not None
    if found.is_empty:
        sessions, will = many(len(found.sessions), "session"), "will" if done else "would"
        some = f"Nothing was learned from {sessions} so far, and nothing {will} be."
        console.print(
            some if found.sessions else "Nothing that was learned holds this: nothing to forget."
        )
        return
    lists = (("changed", found.templates_changed), ("deleted", found.templates_deleted))
    templates = [f"{done_} {shown.names(names, _NAMED)}" for done_, names in lists if names]
    less = f" ({many(found.template_patterns, 'pattern')} less)" if found.template_patterns else ""
    lost = (many(found.commands, "command"), many(found.files, "file"))
    facts = {
        "sessions": f"{len(found.sessions):,}",
        "projects": shown.names(found.projects, _NAMED),
        "episodes": f"{found.episodes:,} with {many(found.vectors, 'vector')}",
        "playbooks": f"{', '.join(lost)} and {many(found.mistakes, 'mistake')} no longer known",
        "patterns": f"{found.patterns:,}",
        "kept out": f"{found.kept_out:,}" if found.kept_out else "",
        "templates": "; ".join(templates) + less,
    }
    console.print(Text("Forgotten:" if done else "This would be forgotten:", style="bold"))
    shown.facts(console, {f"  {name}": value for name, value in facts.items()}, width=12, wrap=True)
    if not done:
        return
    if found.learned_again:
        again = many(found.learned_again, "session")
        alike = "again that had something in common with it."
        console.print(f"`journeyman learn` goes through {again} {alike}")
    if found.projects:
        console.print(
            "Files that hold a playbook are as they were: `journeyman playbook --write FILE` "
            "brings them up to date."
        )
    if found.sessions:
        if not undo_by and len(found.sessions) == 1:
            undo_by = _undo_by(found.sessions[0], {})
        back = f"`{undo_by}`" if undo_by else "`journeyman forget --undo` with each of them"
        said = f"The sessions are still stored. To take it back: {back}, then `journeyman learn`."
        console.print(shown.cell(said), soft_wrap=True)


def _show_undone(journeyman: Journeyman, console: Console, found: Sequence[SessionId]) -> None:
    stored = [one.session.id for one in journeyman.sessions.with_ids(found)]
    for gone in sorted(set(found).difference(stored)):
        said = f"Session {gone} is not stored any more. If it is imported again, it may teach."
        console.print(shown.cell(said), soft_wrap=True)
    if stored:
        said = f"{shown.many(len(stored), 'session')} may teach again: `journeyman learn` learns "
        said += f"from {'it' if len(stored) == 1 else 'them'}. Templates stay as they are."
        console.print(said, soft_wrap=True)


def _show_list(console: Console, found: Sequence[Any]) -> None:
    columns = (
        Column("session", lambda one: shown.short_id(one.session), overflow="fold"),
        Column("forgotten", lambda one: shown.moment(one.at), no_wrap=True),
        Column("requests", lambda one: ", ".join(map(str, one.requests)) or "all"),
    )
    shown.listed(console, found, columns, "Nothing is forgotten.")
