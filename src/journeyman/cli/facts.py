"""`journeyman facts`, `remember` and `playbook`: what is known about working in a project, and what
a file that agents read says of it.
"""

import difflib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import choice, flag, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.fact import FACT_KINDS, Fact, FactState, Playbook
from journeyman.text.display import readable

_MOST_NAMES, _MOST_SHOWN = 8, 12
_FILE = click.Path(dir_okay=False, path_type=Path)
_HINT = "Facts come from recorded sessions: `journeyman import`, then `journeyman learn`."

_TITLES = {
    "trap": "What fails here",
    "command": "Commands of this project",
    "finding": "What linters and tests report",
    "continuity": "What the last sessions worked on",
    "preference": "What you want",
}

_project_option = option(
    "--project NAME|DIR", "Name of the project, or a folder in it (default: the current folder)."
)
_fact_argument = click.argument("fact")


def _name(journeyman: Journeyman, project: str | None) -> str:
    return journeyman.project_named(project or Path.cwd())


@click.group()
def facts() -> None:
    """List, show and decide about facts: what is known about working in a project.

    A fact is counted from recorded sessions, with its evidence. Agents are told facts that still
    hold in the checkout and that no instructions file says already. What you said to an agent when
    you refused or corrected something is a draft, and told to nobody until you accept it.
    """


@context.command(facts, name="list")
@_project_option
@flag("--drafts", "List drafts that wait for you.")
@choice("--kind", "Only facts of this kind.", FACT_KINDS)
@context.bots_option
def list_(
    journeyman: Journeyman,
    *,
    project: str | None,
    drafts: bool,
    kind: str | None,
    bots: bool,
    as_json: bool,
) -> None:
    """List the facts of a project with their evidence, and why one is not told.

    Examples:
      journeyman facts list
      journeyman facts list --project acme/app --kind trap
    """
    name = _name(journeyman, project)
    reasons = journeyman.moments(project or Path.cwd(), bots=bots).reasons()
    found = journeyman.facts.list(name, drafts=drafts, bots=bots)
    listed = [fact for fact in found if kind in (None, fact.kind)]
    if as_json:
        context.print_json(listed)
        return
    if not listed and project and (unknown := journeyman.sessions.no_match(project=name)):
        raise WrongInput(unknown)
    console = formatting.console()
    what = "draft" if drafts else kind or "fact"
    if_empty = f"Nothing is known yet: no {what} for {name or 'this folder'}. {_HINT}"
    columns = (
        Column("id", lambda fact: fact.id, no_wrap=True),
        Column("kind", lambda fact: fact.kind, no_wrap=True),
        Column("sessions", lambda fact: len(fact.sessions) or None, numeric=True),
        Column("fact", partial(_fact_cell, reasons)),
    )
    formatting.print_table(console, listed, columns, if_empty)
    if listed and not drafts and (unread := journeyman.facts.list(name, drafts=True, bots=bots)):
        count = formatting.pluralize(len(unread), "draft")
        console.print(f"\n{count} of what you said: `journeyman facts list --drafts`", style="dim")


def _fact_cell(reasons: dict[str, str], fact: Fact) -> Text:
    notes: list[str] = [fact.state] if fact.state in ("pinned", "dropped") else []
    if fact.kind == "preference" and fact.target:
        notes.append(f"about {fact.target}")
    reason = reasons.get(fact.id, "it comes from another folder of this name")
    if reason and fact.state in ("known", "pinned"):
        notes.append(f"not told: {reason}")
    note = f"  ({'; '.join(notes)})" if notes else ""
    return Text.assemble(readable(fact.text), (readable(note), "dim"))


def _show(console: Console, fact: Fact) -> None:
    shorts = context.short_ids(fact.sessions)
    fields = {
        "fact": fact.text,
        "kind": fact.kind,
        "state": fact.state,
        "seen": formatting.pluralize(fact.times, "time"),
        "first": formatting.local_time(fact.first_at),
        "last": formatting.local_time(fact.last_at),
        "sessions": formatting.join_names([shorts[one] for one in fact.sessions], _MOST_NAMES),
        "needs": ", ".join(fact.present),
        "without": ", ".join(fact.absent),
    }
    formatting.print_fields(console, fields, wrap=True)


@context.command(facts, render=_show)
@_fact_argument
@_project_option
def show(journeyman: Journeyman, *, fact: str, project: str | None) -> Fact:
    """Show a FACT, by its id or the beginning of it, with the sessions behind it.

    Examples:
      journeyman facts show 3f2a
    """
    return journeyman.facts.get(_name(journeyman, project), fact)


def _said(done: str) -> Callable[[Fact], str]:
    return lambda fact: readable(f"{done}: {fact.text}")


def _decision(name: str, state: FactState | None, about: str, done: str) -> click.Command:
    """Add the command that gives a fact this state, or accepts it."""

    @context.command(facts, name, help=about, message=_said(done))
    @_fact_argument
    @_project_option
    def decide(journeyman: Journeyman, *, fact: str, project: str | None) -> Fact:
        where, facts = _name(journeyman, project), journeyman.facts
        return facts.decide(where, fact, state) if state else facts.accept(where, fact)

    decide.epilog = f"\b\nExamples:\n  journeyman facts {name} 3f2a"
    return decide


_decision("accept", None, "Accept a draft: agents are told it.", "Accepted")
_decision(
    "pin",
    "pinned",
    "Tell a FACT as long as it holds, even if it fades or a file says it.",
    "Pinned",
)
_decision("drop", "dropped", "Never tell a FACT again.", "Dropped")


@context.command(facts, message=_said("Pinned"))
@_fact_argument
@click.argument("text", nargs=-1, required=True)
@_project_option
def edit(journeyman: Journeyman, *, fact: str, text: tuple[str, ...], project: str | None) -> Fact:
    """Say a FACT in other words, and pin it.

    Examples:
      journeyman facts edit 3f2a "use bin/test, never pytest"
    """
    name = _name(journeyman, project)
    return journeyman.facts.decide(name, fact, "pinned", text=" ".join(text))


@context.command(facts, message=_said("Decision withdrawn"))
@_fact_argument
@_project_option
def restore(journeyman: Journeyman, *, fact: str, project: str | None) -> Fact:
    """Withdraw what was decided about a FACT. What you told Journeyman to remember is forgotten.

    Examples:
      journeyman facts restore 3f2a
    """
    name = _name(journeyman, project)
    found = journeyman.facts.get(name, fact)
    journeyman.facts.restore(name, fact)
    return found


@context.command()
@click.argument("text", nargs=-1, required=True)
@_project_option
def remember(
    journeyman: Journeyman, *, text: tuple[str, ...], project: str | None, as_json: bool
) -> None:
    """Tell every later session in this project what you want, in your words.

    Examples:
      journeyman remember "never run git stash here"
      journeyman remember "answer in German" --project ~/src/app
    """
    name = _name(journeyman, project)
    if project and (reason := journeyman.sessions.no_match(project=name)):
        raise WrongInput(reason)
    fact = journeyman.facts.remember(name, " ".join(text))
    if as_json:
        context.print_json(fact)
    else:
        click.echo(_said(f"Remembered for {name}")(fact))


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
      journeyman playbook --write CLAUDE.md
      journeyman playbook --undo CLAUDE.md
    """
    if write_to and undo_in:
        raise click.UsageError("Pass --write or --undo, not both.")
    files = journeyman.playbook_files
    if undo_in:
        if _is_agreed(undo_in, files.preview_undo(undo_in), yes=yes):
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
        if _is_agreed(write_to, files.preview(learned, write_to), yes=yes):
            files.write(learned, write_to)
            click.echo(f"Written. To undo this: `journeyman playbook --undo {write_to}`", err=True)
    else:
        show = partial(_show_playbook, most=None if show_all else _MOST_SHOWN)
        context.print_result(learned, show, as_json=as_json)


def _nothing_learned(journeyman: Journeyman, project: str) -> WrongInput:
    """Return the error for a project without a playbook; it names the projects that have one."""
    known = [totals.project for totals in journeyman.sessions.projects() if totals.project]
    names = formatting.join_names(known, _MOST_NAMES)
    return WrongInput(
        f"Nothing has been learned in {project!r}, or it was forgotten. "
        f"{f'Known projects: {names}. ' if names else ''}"
        "To learn from recorded sessions: `journeyman import`, then `journeyman learn`."
    )


def _is_agreed(path: Path, after: str, *, yes: bool) -> bool:
    """Show what would change in a file and ask for confirmation; return whether anything would."""
    from journeyman.experience.playbook_files import read_playbook_file  # noqa: PLC0415 - not needed for help

    before = read_playbook_file(path)
    if before == after:
        click.echo(f"{path} is up to date.", err=True)
        return False
    sides = before.splitlines(), after.splitlines(), f"{path} (now)", f"{path} (then)"
    formatting.print_diff(formatting.console(), difflib.unified_diff(*sides, lineterm=""))
    return yes or click.confirm(f"Change {path}?", abort=True, err=True)


def _show_playbook(console: Console, playbook: Playbook, most: int | None) -> None:
    sessions = formatting.pluralize(playbook.sessions, "session")
    console.print(Text(f"{readable(playbook.project)}: {sessions}", style="bold"))
    formatting.print_bots_left_out(console, playbook.bots)
    columns = (
        Column("sessions", lambda fact: len(fact.sessions) or None, numeric=True),
        Column("fact", lambda fact: fact.text),
    )
    for kind, title in _TITLES.items():
        if of_kind := [fact for fact in playbook.facts if fact.kind == kind]:
            formatting.print_heading(console, title)
            formatting.print_table(console, of_kind[:most], columns, "")
            hint = ": --all shows them"
            formatting.print_remainder(console, len(of_kind), most or len(of_kind), hint)
    if playbook.corrections:
        formatting.print_heading(console, "Where instructions files are wrong")
    for wrong in playbook.corrections:
        line = f"{wrong.file} says `{wrong.says}`. Sessions show: {wrong.fact.text}"
        console.print(formatting.safe_text(line))
