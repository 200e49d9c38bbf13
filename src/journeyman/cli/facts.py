"""`journeyman facts` and `journeyman remember`: what is known about working in a project."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.facade.journeyman import Journeyman
from journeyman.records.errors import WrongInput
from journeyman.records.fact import FACT_KINDS, Fact, FactState
from journeyman.text.display import readable

project_option = option(
    "--project NAME|DIR", "Name of the project, or a folder in it (default: the current folder)."
)
_MOST_SESSIONS = 5


@click.group()
def facts() -> None:
    """List, show and decide about facts: what is known about working in a project.

    A fact is counted from recorded sessions, with its evidence. Agents are told facts that still
    hold in the checkout and that no instructions file says already. What you said to an agent when
    you refused or corrected something is a draft, and told to nobody until you accept it.

    \b
    Examples:
      journeyman facts list
      journeyman facts list --drafts
      journeyman facts accept 3f2a
      journeyman facts drop 9c41
    """  # noqa: D301 - click's mark of a paragraph that keeps its lines


def _project(journeyman: Journeyman, project: str | None) -> str:
    return journeyman.project_named(project or Path.cwd())


@context.command(facts, name="list")
@project_option
@flag("--drafts", "List drafts that wait for you.")
@option("--kind", "Only facts of this kind.", type=click.Choice(FACT_KINDS))
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
      journeyman facts list --drafts --json
    """
    name = _project(journeyman, project)
    reasons = journeyman.moments(project or Path.cwd(), bots=bots).reasons()
    listed = [
        fact
        for fact in journeyman.facts.list(name, drafts=drafts, bots=bots)
        if kind in (None, fact.kind)
    ]
    if as_json:
        context.print_json(listed)
        return
    console = formatting.console()
    if not listed:
        if project and (unknown := journeyman.sessions.no_match(project=name)):
            raise WrongInput(unknown)
        waiting = f"No {kind} is known yet" if kind else "Nothing is known yet"
        waiting = "No draft waits" if drafts else waiting
        console.print(formatting.safe_text(f"{waiting} for {name or 'this folder'}. {_HINT}"))
        return
    console.print(
        formatting.table(
            "id",
            "kind",
            "sessions",
            "fact",
            numbers=("sessions",),
            rows=(
                (fact.id, fact.kind, len(fact.sessions) or None, _fact_cell(fact, reasons))
                for fact in listed
            ),
        )
    )
    if not drafts and (unread := journeyman.facts.list(name, drafts=True, bots=bots)):
        count = formatting.pluralize(len(unread), "draft")
        console.print(f"\n{count} of what you said: `journeyman facts list --drafts`", style="dim")


_HINT = "Facts come from recorded sessions: `journeyman import`, then `journeyman learn`."


def _fact_cell(fact: Fact, reasons: dict[str, str]) -> Text:
    cell = Text(readable(fact.text))
    notes: list[str] = [fact.state] if fact.state in ("pinned", "dropped") else []
    if fact.kind == "preference" and fact.target:
        notes.append(f"about {fact.target}")
    reason = reasons.get(fact.id, "it comes from another folder of this name")
    if reason and fact.state in ("known", "pinned"):
        notes.append(f"not told: {reason}")
    return cell.append(readable(f"  ({'; '.join(notes)})") if notes else "", style="dim")


@context.command(facts)
@click.argument("fact")
@project_option
def show(journeyman: Journeyman, *, fact: str, project: str | None, as_json: bool) -> None:
    """Show a FACT, by its id or the beginning of it, with the sessions behind it.

    Examples:
      journeyman facts show 3f2a
    """
    found = journeyman.facts.get(_project(journeyman, project), fact)
    context.print_result(found, _show, as_json=as_json)


def _show(console: Console, fact: Fact) -> None:
    sessions = [str(session) for session in fact.sessions]
    shorts = context.short_ids(fact.sessions[:_MOST_SESSIONS])
    named = [shorts.get(session, session) for session in sessions[:_MOST_SESSIONS]]
    more = f" and {len(sessions) - len(named):,} more" if len(sessions) > len(named) else ""
    formatting.print_fields(
        console,
        {
            "fact": fact.text,
            "kind": fact.kind,
            "state": fact.state,
            "seen": formatting.pluralize(fact.times, "time"),
            "first": formatting.local_time(fact.first_at),
            "last": formatting.local_time(fact.last_at),
            "sessions": ", ".join(named) + more,
            "needs": ", ".join(fact.present),
            "without": ", ".join(fact.absent),
        },
        width=9,
        wrap=True,
    )


def _decision(name: str, state: FactState | None, about: str, done: str) -> Callable[..., Any]:
    def decide(journeyman: Journeyman, *, fact: str, project: str | None, as_json: bool) -> None:
        where, facts = _project(journeyman, project), journeyman.facts
        decided = facts.decide(where, fact, state) if state else facts.accept(where, fact)
        context.print_result(decided, partial(_print, done), as_json=as_json)

    decide.__doc__ = f"{about}\n\nExamples:\n  journeyman facts {name} 3f2a\n"
    command: Callable[..., Any] = context.command(facts, name=name)(
        click.argument("fact")(project_option(decide))
    )
    return command


def _print(done: str, console: Console, fact: Fact) -> None:
    console.print(Text(readable(f"{done}: {fact.text}")))


accept = _decision("accept", None, "Accept a draft: agents are told it.", "Accepted")
pin = _decision(
    "pin",
    "pinned",
    "Tell a FACT as long as it holds, even if it fades or a file says it.",
    "Pinned",
)
drop = _decision("drop", "dropped", "Never tell a FACT again.", "Dropped")


@context.command(facts)
@click.argument("fact")
@click.argument("text", nargs=-1, required=True)
@project_option
def edit(
    journeyman: Journeyman, *, fact: str, text: tuple[str, ...], project: str | None, as_json: bool
) -> None:
    """Say a FACT in other words, and pin it.

    Examples:
      journeyman facts edit 3f2a "use bin/test, never pytest"
    """
    name = _project(journeyman, project)
    decided = journeyman.facts.decide(name, fact, "pinned", text=" ".join(text))
    context.print_result(decided, partial(_print, "Pinned"), as_json=as_json)


@context.command(facts)
@click.argument("fact")
@project_option
def restore(journeyman: Journeyman, *, fact: str, project: str | None, as_json: bool) -> None:
    """Withdraw what was decided about a FACT. What you told Journeyman to remember is forgotten.

    Examples:
      journeyman facts restore 3f2a
    """
    name = _project(journeyman, project)
    found = journeyman.facts.get(name, fact)
    journeyman.facts.restore(name, fact)
    context.print_result(found, partial(_print, "Decision withdrawn"), as_json=as_json)


@context.command()
@click.argument("text", nargs=-1, required=True)
@project_option
def remember(
    journeyman: Journeyman, *, text: tuple[str, ...], project: str | None, as_json: bool
) -> None:
    """Tell every later session in this project what you want, in your words.

    Examples:
      journeyman remember "never run git stash here"
      journeyman remember "answer in German" --project ~/src/app
    """
    name = _project(journeyman, project)
    if project and (reason := journeyman.sessions.no_match(project=name)):
        raise WrongInput(reason)
    fact = journeyman.facts.remember(name, " ".join(text))
    context.print_result(fact, partial(_print, f"Remembered for {name}"), as_json=as_json)


def show_facts(console: Console, listed: Sequence[Fact], most: int | None = None) -> None:
    """Show facts under the names of their kinds."""
    for kind in FACT_KINDS:
        of_kind = [fact for fact in listed if fact.kind == kind]
        if not of_kind:
            continue
        formatting.print_heading(console, TITLES[kind])
        rows = ((len(fact.sessions) or None, readable(fact.text)) for fact in of_kind[:most])
        console.print(formatting.table("sessions", "fact", numbers=("sessions",), rows=rows))
        if most:
            formatting.print_remainder(console, len(of_kind), most, ": --all shows them")


TITLES = {
    "trap": "What fails here",
    "command": "Commands of this project",
    "finding": "What linters and tests report",
    "continuity": "What the last sessions worked on",
    "preference": "What you want",
}
