"""`journeyman review`: reviews a session, and shows or undoes what reviews wrote."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import number, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records import JournalEntry, Review
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.agent.review.journal import UndoneWrites
    from journeyman.agent.review.reviewer import ReviewResult

_STYLES = {"changed": "green", "failed": "red", "incomplete": "yellow", "cancelled": "yellow"}


@click.group(
    cls=context.DefaultGroup,
    default="session",
    usage="SESSION [OPTIONS] | list | show ID | undo ID",
)
def review() -> None:
    """Review a session, and store its lessons, if any, in memory and skills.

    A review writes only what the user stated or a successful call showed, reads a skill before it
    changes it, and makes small changes. Most sessions have nothing worth storing. Every write is
    in a journal and can be undone.
    """


@context.command(
    review,
    "session",
    hidden=True,
    render=lambda console, reviewed: _show(console, reviewed.review, reviewed.entries),
    is_failure=lambda reviewed: reviewed.review.status in ("failed", "incomplete"),
)
@click.argument("session", metavar="SESSION")
@option("--model NAME", "Model that reviews (default: as in the settings).", default="")
def session_(journeyman: Journeyman, *, session: str, **options: Any) -> "ReviewResult":
    """Review one session now.

    Examples:
      journeyman review 20261116-081500-3fa2b1
      journeyman review 20261116-081500-3fa2b1 --model gpt-5-mini
    """
    with formatting.spinner("reviewing"):
        return journeyman.review(session, platform="cli", **options)


_ReviewWithWrites = tuple[Review, Sequence[JournalEntry]]


def _to_json(row: _ReviewWithWrites) -> dict[str, Any]:
    return {**msgspec.to_builtins(row[0]), "writes": msgspec.to_builtins([*row[1]])}


_COLUMNS = (
    Column("review", lambda row: row[0].id),
    Column("when", lambda row: formatting.local_time(row[0].started_at)),
    Column("session", lambda row: row[0].session),
    Column("status", lambda row: Text(row[0].status, style=_STYLES.get(row[0].status, ""))),
    Column("changes", lambda row: len(row[1]), numeric=True),
)


def _show_list(console: Console, rows: Sequence[_ReviewWithWrites]) -> None:
    if_empty = "No session has been reviewed yet. To review one: journeyman review SESSION"
    formatting.print_table(console, rows, _COLUMNS, if_empty)


@context.command(
    review,
    "list",
    render=_show_list,
    to_json=lambda rows: [*map(_to_json, rows)],
    is_paged=True,
)
@number("-n --limit", "Number of reviews to list.", least=0, default=20)
def list_(journeyman: Journeyman, *, limit: int) -> Sequence[_ReviewWithWrites]:
    """List reviews, newest first, with what they wrote.

    Examples:
      journeyman review list
    """
    return [(row, journeyman.reviews.writes(row)) for row in journeyman.reviews.list(limit)]


def _show_steps(console: Console, row: _ReviewWithWrites) -> None:
    _show(console, *row)
    for step in row[0].details.get("steps", []):
        text = step.get("said") or f"{step.get('tool', '')} {step.get('arguments', '')}"
        if text.strip():
            console.print(Text(f"  {formatting.one_line(text, console.width - 2)}", style="dim"))
        if "result" in step:
            console.print(Text(f"    {formatting.one_line(step['result'], console.width - 4)}"))


@context.command(review, "show", render=_show_steps, to_json=_to_json, is_paged=True)
@click.argument("review_id", metavar="ID")
def show(journeyman: Journeyman, *, review_id: str) -> _ReviewWithWrites:
    """Show a review: its steps, its writes and their evidence.

    Examples:
      journeyman review show 3fa2b1c0
    """
    stored = journeyman.reviews.get(review_id)
    return stored, journeyman.reviews.writes(stored)


def _show_undone(console: Console, undone: "UndoneWrites") -> None:
    for entry in undone.entries:
        console.print(Text(f"Undone: {readable(entry.write.summary)}"))
    for entry, reason in undone.kept:
        kept = f"Not undone: {entry.write.summary}. {reason}"
        console.print(Text(readable(kept), style="yellow"))
    if not undone.entries and not undone.kept:
        console.print("Nothing is left to undo.")


@context.command(review, "undo", render=_show_undone, is_failure=lambda undone: undone.kept)
@click.argument("id_", metavar="ID")
def undo(journeyman: Journeyman, *, id_: str) -> "UndoneWrites":
    """Undo everything that a review wrote, or one write of the journal.

    Examples:
      journeyman review undo 3fa2b1c0      everything that this review wrote
      journeyman review undo 77d0a4e9      one write
    """
    return journeyman.reviews.undo(id_)


def _show(console: Console, stored: Review, entries: Sequence[JournalEntry]) -> None:
    head = Text(f"review {stored.id} of {readable(stored.session)}: ")
    console.print(head.append(stored.status, style=_STYLES.get(stored.status, "")))
    if stored.error:
        console.print(Text(readable(stored.error), style="red"))
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
