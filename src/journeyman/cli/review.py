"""`journeyman review`: review a session, and see or undo what reviews wrote."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import option
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records import JournalEntry, Review

if TYPE_CHECKING:
    from journeyman.agent.review.journal import Undone
    from journeyman.agent.review.reviewer import Reviewed

_STYLES = {"changed": "green", "failed": "red", "cancelled": "yellow"}


@click.group(
    cls=asked.DefaultGroup,
    default="session",
    usage="SESSION [OPTIONS] | list | show ID | undo ID",
    epilog="""\b
Examples:
  journeyman review 20261116-081500-3fa2b1
  journeyman review list
  journeyman review show 3fa2b1c0
  journeyman review undo 3fa2b1c0""",
)
def review() -> None:
    """Review a session: keep in memory and skills what it shows, if anything.

    A review writes only what the user said or a call that worked has shown, reads a skill before
    it changes it, and changes little at a time. Usually there is nothing to keep, and that is
    fine. Every write is in a journal and can be undone.
    """


@asked.command(
    review,
    "session",
    hidden=True,
    shows=lambda console, reviewed: _show(console, reviewed.review, reviewed.entries),
    fails=lambda reviewed: reviewed.review.status == "failed",
)
@click.argument("session", metavar="SESSION")
@option("--model NAME", "The model that reviews.", default="")
def session_(journeyman: Journeyman, *, session: str, model: str) -> "Reviewed":
    """Review one session now.

    Examples:
      journeyman review 20261116-081500-3fa2b1
      journeyman review 20261116-081500-3fa2b1 --model gpt-5-mini
    """
    with shown.waiting("reviewing"):
        return journeyman.review(session, model=model, platform="cli")


_Found = tuple[Review, Sequence[JournalEntry]]


def _with_writes(found: _Found) -> dict[str, Any]:
    return {**msgspec.to_builtins(found[0]), "writes": msgspec.to_builtins([*found[1]])}


def _show_list(console: Console, found: Sequence[_Found]) -> None:
    columns = (
        Column("review", lambda one: one[0].id),
        Column("when", lambda one: shown.moment(one[0].started_at)),
        Column("session", lambda one: one[0].session),
        Column("status", lambda one: Text(one[0].status, style=_STYLES.get(one[0].status, ""))),
        Column("changes", lambda one: len(one[1]), number=True),
    )
    nothing = "No session was reviewed yet: journeyman review SESSION"
    shown.listed(console, found, columns, nothing)


@asked.command(review, "list", shows=_show_list, tells=lambda found: [*map(_with_writes, found)])
@option("--limit", "How many.", type=asked.COUNT, default=20)
def list_(journeyman: Journeyman, *, limit: int) -> Sequence[_Found]:
    """List reviews, newest first, with what they wrote.

    Examples:
      journeyman review list
      journeyman review list --limit 5 --json
    """
    return [(one, journeyman.reviews.writes(one)) for one in journeyman.reviews.list(limit)]


def _show_steps(console: Console, found: _Found) -> None:
    _show(console, *found)
    for step in found[0].details.get("steps", []):
        told = step.get("said") or f"{step.get('tool', '')} {step.get('arguments', '')}"
        if told.strip():
            console.print(Text(f"  {shown.one_line(told, console.width - 2)}", style="dim"))
        if "result" in step:
            console.print(Text(f"    {shown.one_line(step['result'], console.width - 4)}"))


@asked.command(review, "show", shows=_show_steps, tells=_with_writes)
@click.argument("review_id", metavar="ID")
def show(journeyman: Journeyman, *, review_id: str) -> _Found:
    """Show a review: what it did, what it wrote, where that came from.

    Examples:
      journeyman review show 3fa2b1c0
      journeyman review show 3fa2b1c0 --json
    """
    found = journeyman.reviews.get(review_id)
    return found, journeyman.reviews.writes(found)


def _show_undone(console: Console, undone: "Undone") -> None:
    for entry in undone.entries:
        console.print(Text(f"Undone: {shown.plain(entry.write.summary)}"))
    for entry, reason in undone.kept:
        kept = f"Not undone: {entry.write.summary}. {reason}"
        console.print(Text(shown.plain(kept), style="yellow"))
    if not undone.entries and not undone.kept:
        console.print("There was nothing left to undo.")


@asked.command(review, "undo", shows=_show_undone, fails=lambda undone: undone.kept)
@click.argument("id_", metavar="ID")
def undo(journeyman: Journeyman, *, id_: str) -> "Undone":
    """Take back what a review wrote, or one write of the journal.

    Examples:
      journeyman review undo 3fa2b1c0      all that this review wrote
      journeyman review undo 77d0a4e9      one write
    """
    return journeyman.reviews.undo(id_)


def _show(console: Console, found: Review, entries: Sequence[JournalEntry]) -> None:
    head = Text(f"review {found.id} of {shown.plain(found.session)}: ")
    console.print(head.append(found.status, style=_STYLES.get(found.status, "")))
    if found.error:
        console.print(Text(shown.plain(found.error), style="red"))
    if not entries and found.status == "unchanged":
        console.print("Nothing was worth keeping. That is how most reviews end.")
    for entry in entries:
        gone = " (undone)" if entry.undone_at is not None else ""
        console.print(Text(f"{entry.id}  {shown.plain(entry.write.summary)}{gone}", style="bold"))
        if entry.evidence:
            evidence = shown.one_line(entry.evidence, console.width - 12)
            console.print(Text(f"  evidence: {evidence}", style="dim"))
        origin = entry.provenance
        by = f"  by {origin.origin} with {origin.model}, call {origin.tool_call}, {origin.context}"
        console.print(Text(shown.plain(by), style="dim"))
