"""`journeyman review`: review a session, and see or undo what reviews wrote."""

from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.records import JournalEntry, Review

_STYLES = {"changed": "green", "failed": "red", "cancelled": "yellow"}


class _SessionFirst(click.Group):
    """A group in which anything that is no command is a session to be reviewed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args and (args[0] in self.commands or args[0].startswith("-"))
        return super().resolve_command(ctx, args if known else ["session", *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "SESSION [OPTIONS] | list | show ID | undo ID")


@click.group(
    cls=_SessionFirst,
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


@review.command(
    "session",
    hidden=True,
    epilog="""\b
Examples:
  journeyman review 20261116-081500-3fa2b1
  journeyman review 20261116-081500-3fa2b1 --model gpt-5-mini""",
)
@click.argument("session", metavar="SESSION")
@click.option("--model", default="", metavar="NAME", help="The model that reviews.")
@asked.json_option
@click.pass_context
def session_(ctx: click.Context, *, session: str, model: str, as_json: bool) -> None:
    """Review one session now."""
    journeyman = asked.opened(ctx)
    with shown.waiting("reviewing"):
        reviewed = journeyman.review(session, model=model, platform="cli")
    if as_json:
        asked.print_json(reviewed)
    else:
        _show(shown.console(), reviewed.review, reviewed.entries)
    ctx.exit(1 if reviewed.review.status == "failed" else 0)


@review.command(
    "list",
    epilog="""\b
Examples:
  journeyman review list
  journeyman review list --limit 5 --json""",
)
@click.option("--limit", type=asked.COUNT, default=20, show_default=True, help="How many.")
@asked.json_option
@click.pass_context
def list_(ctx: click.Context, *, limit: int, as_json: bool) -> None:
    """List reviews, newest first, with what they wrote."""
    journal = asked.opened(ctx).reviews
    found = [(one, journal.writes(one)) for one in journal.list(limit)]
    if as_json:
        asked.print_json([_with_writes(*one) for one in found])
        return
    console = shown.console()
    if not found:
        console.print("No session was reviewed yet: journeyman review SESSION")
        return
    table = shown.table("review", "when", "session", "status", "changes", numbers=("changes",))
    for one, entries in found:
        table.add_row(
            shown.cell(one.id),
            shown.moment(one.started_at),
            shown.cell(one.session),
            Text(one.status, style=_STYLES.get(one.status, "")),
            shown.count(len(entries)),
        )
    console.print(table)


@review.command(
    "show",
    epilog="""\b
Examples:
  journeyman review show 3fa2b1c0
  journeyman review show 3fa2b1c0 --json""",
)
@click.argument("review_id", metavar="ID")
@asked.json_option
@click.pass_context
def show(ctx: click.Context, *, review_id: str, as_json: bool) -> None:
    """Show a review: what it did, what it wrote, where that came from."""
    journal = asked.opened(ctx).reviews
    found = journal.get(review_id)
    entries = journal.writes(found)
    if as_json:
        asked.print_json(_with_writes(found, entries))
        return
    console = shown.console()
    _show(console, found, entries)
    for step in found.details.get("steps", []):
        told = step.get("said") or f"{step.get('tool', '')} {step.get('arguments', '')}"
        if told.strip():
            console.print(Text(f"  {shown.one_line(told, console.width - 2)}", style="dim"))
        if "result" in step:
            console.print(Text(f"    {shown.one_line(step['result'], console.width - 4)}"))


@review.command(
    "undo",
    epilog="""\b
Examples:
  journeyman review undo 3fa2b1c0      all that this review wrote
  journeyman review undo 77d0a4e9      one write""",
)
@click.argument("id_", metavar="ID")
@asked.json_option
@click.pass_context
def undo(ctx: click.Context, *, id_: str, as_json: bool) -> None:
    """Take back what a review wrote, or one write of the journal."""
    undone = asked.opened(ctx).reviews.undo(id_)
    if as_json:
        asked.print_json(undone)
    else:
        console = shown.console()
        for entry in undone.entries:
            console.print(Text(f"Undone: {shown.plain(entry.write.summary)}"))
        for entry, reason in undone.kept:
            kept = f"Not undone: {entry.write.summary}. {reason}"
            console.print(Text(shown.plain(kept), style="yellow"))
        if not undone.entries and not undone.kept:
            console.print("There was nothing left to undo.")
    ctx.exit(1 if undone.kept else 0)


def _with_writes(found: Review, entries: Any) -> dict[str, Any]:
    return {**msgspec.to_builtins(found), "writes": msgspec.to_builtins(list(entries))}


def _show(console: Console, found: Review, entries: Any) -> None:
    head = Text(f"review {found.id} of {shown.plain(found.session)}: ")
    console.print(head.append(found.status, style=_STYLES.get(found.status, "")))
    if found.error:
        console.print(Text(shown.plain(found.error), style="red"))
    if not entries and found.status == "unchanged":
        console.print("Nothing was worth keeping. That is how most reviews end.")
    for entry in entries:
        _show_entry(console, entry)


def _show_entry(console: Console, entry: JournalEntry) -> None:
    gone = " (undone)" if entry.undone_at is not None else ""
    console.print(Text(f"{entry.id}  {shown.plain(entry.write.summary)}{gone}", style="bold"))
    if entry.evidence:
        evidence = shown.one_line(entry.evidence, console.width - 12)
        console.print(Text(f"  evidence: {evidence}", style="dim"))
    origin = entry.provenance
    by = f"  by {origin.origin} with {origin.model}, call {origin.tool_call}, {origin.context}"
    console.print(Text(shown.plain(by), style="dim"))
