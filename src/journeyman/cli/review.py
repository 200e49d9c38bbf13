"""`journeyman review`: reviews a session, shows and undoes what reviews wrote, and decides about
their drafts.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import choice, number, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.engines import ENGINES, OWN
from journeyman.records import Draft, JournalEntry, Review
from journeyman.records.fact import FactState
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.agent.review.journal import Changes

_STYLES = {"changed": "green", "drafted": "green", "failed": "red"}
_STYLES |= dict.fromkeys(("incomplete", "cancelled"), "yellow")
_STATES: dict[FactState, str] = {
    "draft": "waits for you",
    "known": "told, as a second session confirmed it",
    "pinned": "accepted",
    "dropped": "refused",
}
_ReviewWithWrites = tuple[Review, Sequence[JournalEntry]]


@click.group(
    cls=context.DefaultGroup,
    default="session",
    usage="SESSION [OPTIONS] | list | show ID | accept ID | refuse ID | undo ID",
)
def review() -> None:
    """Review a session: what would help in later ones?

    The agent that the session is of reviews a copy of it, with your subscription or key. It drafts
    what you want, what holds in the project, and skills, each with evidence from the session. No
    agent is told a draft before you accept it, or a second session confirms what you said. Most
    sessions have nothing worth keeping.

    The small loop (--with journeyman) writes to its own memory and skills, by the same rules.
    Everything can be undone.
    """


@context.command(
    review,
    "session",
    hidden=True,
    render=lambda console, reviewed: _show(console, *reviewed),
    to_json=lambda reviewed: {"review": reviewed[0], "entries": reviewed[1]},
    is_failure=lambda reviewed: reviewed[0].status in ("failed", "incomplete"),
)
@click.argument("session", metavar="SESSION")
@choice("--with HOST", "Agent that reviews (default: the one that the session is of).", ENGINES)
@option("--model NAME", "Model that reviews (default: that of the session or the settings).")
@click.option("--unasked", is_flag=True, hidden=True)
def session_(
    journeyman: Journeyman, *, session: str, model: str | None, unasked: bool, **options: Any
) -> _ReviewWithWrites:
    """Review one session now.

    Examples:
      journeyman review 20261116-081500-3fa2b1
      journeyman review 20261116-081500-3fa2b1 --with journeyman --model gpt-5-mini
    """
    from journeyman.plugin.host_review import HostReviewer, review_engine  # noqa: PLC0415 - heavy

    engine = options["with"] or review_engine(journeyman, session)
    with (
        context.graceful_stop("Stopping. Press Ctrl-C again to stop immediately.") as stopping,
        formatting.spinner("reviewing"),
    ):
        if engine != OWN:
            reviewer = HostReviewer(journeyman, engine)
            found = reviewer.find(session)
            if unasked and (reason := reviewer.why_not(found)):
                click.echo(reason, err=True)
                click.get_current_context().exit(0)
            done = reviewer.review(found, model=model or "", cancelled=stopping.is_set)
            if not unasked:
                journeyman.reviews.note_told()
            return done, ()
        reviewed = journeyman.review(
            session, platform="cli", model=model or "", cancelled=stopping.is_set
        )
        return reviewed.review, reviewed.entries


def _to_json(row: _ReviewWithWrites) -> dict[str, Any]:
    return {**msgspec.to_builtins(row[0]), "writes": msgspec.to_builtins([*row[1]])}


_COLUMNS = (
    Column("review", lambda row: row[0].id),
    Column("when", lambda row: formatting.local_time(row[0].started_at)),
    Column("session", lambda row: row[0].session),
    Column("status", lambda row: Text(row[0].status, style=_STYLES.get(row[0].status, ""))),
    Column("changes", lambda row: len(row[1]), numeric=True),
    Column("waiting", lambda row: len(_waiting(row[0])) or None, numeric=True),
)


def _waiting(stored: Review) -> list[Draft]:
    return [draft for draft in stored.drafts if draft.state == "draft"]


def _show_list(console: Console, rows: Sequence[_ReviewWithWrites]) -> None:
    if_empty = "No session has been reviewed yet. To review one: journeyman review SESSION"
    formatting.print_table(console, rows, _COLUMNS, if_empty)
    waiting = {draft.id: draft for stored, _ in rows for draft in _waiting(stored)}
    if waiting:
        formatting.print_heading(console, "Drafts that wait for you")
        _show_drafts(console, waiting.values())
        console.print("\nDecide with: journeyman review accept ID, or refuse ID", style="dim")


def _show_drafts(console: Console, drafts: Iterable[Draft]) -> None:
    for draft in drafts:
        text = f"{draft.name}: {draft.text}" if draft.kind == "skill" else draft.text
        head = Text(f"{draft.id}  ", style="bold").append(readable(f"{draft.kind}: {text}"), "")
        state = _STATES[draft.state]
        console.print(head.append(f"  ({state})" if draft.state != "draft" else "", style="dim"))
        evidence = formatting.one_line(draft.evidence, console.width - 12)
        console.print(Text(f"  evidence: {evidence}", style="dim"))


@context.command(
    review,
    "list",
    render=_show_list,
    to_json=lambda rows: [*map(_to_json, rows)],
    is_paged=True,
)
@number("-n --limit", "Number of reviews to list.", least=0, default=20)
def list_(journeyman: Journeyman, *, limit: int) -> Sequence[_ReviewWithWrites]:
    """List reviews, newest first, with what they wrote, and the drafts that wait for you.

    Examples:
      journeyman review list
    """
    journeyman.reviews.note_told()
    return [(row, journeyman.reviews.writes(row)) for row in journeyman.reviews.list(limit)]


def _show_steps(console: Console, row: _ReviewWithWrites) -> None:
    _show(console, *row)
    for step in row[0].details.get("steps", []):
        text = step.get("said") or f"{step.get('tool', '')} {step.get('arguments', '')}"
        if text.strip():
            console.print(Text(f"  {formatting.one_line(text, console.width - 2)}", style="dim"))
        if "result" in step:
            console.print(Text(f"    {formatting.one_line(step['result'], console.width - 4)}"))
    for dropped in row[0].details.get("dropped", []):
        line = readable(f"left out: {dropped['draft']} ({dropped['reason']})")
        console.print(Text(line, style="dim"))


@context.command(review, "show", render=_show_steps, to_json=_to_json, is_paged=True)
@click.argument("review_id", metavar="ID")
def show(journeyman: Journeyman, *, review_id: str) -> _ReviewWithWrites:
    """Show a review: its steps, its writes and drafts with their evidence, and what was left out.

    Examples:
      journeyman review show 3fa2b1c0
    """
    stored = journeyman.reviews.get(review_id)
    return stored, journeyman.reviews.writes(stored)


def _show_changes(console: Console, changes: "Changes", *, done: str) -> None:
    for entry in changes.entries:
        console.print(Text(f"{done}: {readable(entry.write.summary)}"))
    for draft in changes.drafts:
        what = draft.name if draft.kind == "skill" else draft.text
        console.print(Text(readable(f"{what}: {_STATES[draft.state]}")))
    for what, reason in changes.kept:
        console.print(Text(readable(f"Left as it is: {what}. {reason}"), style="yellow"))
    if not (changes.entries or changes.drafts or changes.kept):
        console.print("Nothing is left to undo or to decide.")


def _decision(name: str, done: str, about: str) -> Callable[..., Any]:
    def decide(journeyman: Journeyman, *, id_: str) -> "Changes":
        changes: Changes = getattr(journeyman.reviews, name)(id_)
        return changes

    example = f"  journeyman review {name}"
    examples = f"{example} t3fa2b1c\n{example} 3fa2b1c0      a whole review\n"
    decide.__doc__ = f"{about}\n\nExamples:\n{examples}"
    command: Callable[..., Any] = context.command(
        review,
        name,
        render=partial(_show_changes, done=done),
        is_failure=lambda changes: changes.kept,
    )(click.argument("id_", metavar="ID")(decide))
    return command


accept = _decision(
    "accept",
    "Written",
    "Accept a draft, or all drafts of a review: later sessions are told it, and a skill is written "
    "where the agent reads skills.",
)
refuse = _decision(
    "refuse", "Undone", "Refuse a draft, or all drafts of a review: nobody is told it."
)
undo = _decision(
    "undo",
    "Undone",
    "Undo everything that a review wrote, one write of the journal, or what you decided about a "
    "draft or all drafts of a review, which wait again.",
)


def _show(console: Console, stored: Review, entries: Sequence[JournalEntry]) -> None:
    head = Text(f"review {stored.id} of {readable(stored.session)}: ")
    console.print(head.append(stored.status, style=_STYLES.get(stored.status, "")))
    if stored.error:
        console.print(Text(readable(stored.error), style="red"))
    _show_drafts(console, stored.drafts)
    if not entries and stored.status == "unchanged":
        console.print("Nothing was worth storing, as in most reviews.")
    for entry in entries:
        undone = " (undone)" if entry.undone_at is not None else ""
        console.print(Text(f"{entry.id}  {readable(entry.write.summary)}{undone}", style="bold"))
        if entry.evidence:
            evidence = formatting.one_line(entry.evidence, console.width - 12)
            console.print(Text(f"  evidence: {evidence}", style="dim"))
        origin = entry.provenance
        by = f"  by {origin.origin} with {origin.model}, call {origin.tool_call}, {origin.context}"
        console.print(Text(readable(by), style="dim"))
