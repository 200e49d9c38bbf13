"""`journeyman confirm audit`: what happened, and whether the record of it is whole."""

import sys

import click
from rich.text import Text

from journeyman.cli import asked, confirm_given, confirm_shown, shown
from journeyman.confirm.answers import Verified
from journeyman.confirm.exporting import Format
from journeyman.confirm.shown_text import visible


@click.group(
    epilog="""\b
Examples:
  journeyman confirm audit list --limit 20
  journeyman confirm audit verify
  journeyman confirm audit export --format csv > audit.csv"""
)
def audit() -> None:
    """List, check and export the audit log.

    Each entry holds the digest of the one before, and the last digest is kept outside the
    database too: an entry that was changed, or cut off, is noticed. It is not proof against
    somebody who can write to both places.
    """


@audit.command(
    "list",
    epilog="""\b
Examples:
  journeyman confirm audit list
  journeyman confirm audit list --confirmation 5f0c2d… --json""",
)
@click.option(
    "--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="How many."
)
@click.option("--confirmation", default="", metavar="ID", help="Only of this one, by its whole id.")
@asked.json_option
@click.pass_context
def list_(ctx: click.Context, *, limit: int, confirmation: str, as_json: bool) -> None:
    """List what happened, newest first. The service is asked, with an approver's key."""
    events = confirm_given.approver(ctx).audit(limit, confirmation=confirmation)
    if as_json:
        asked.print_json(events)
        return
    console = shown.console()
    if events:
        console.print(confirm_shown.audit_table(events, console.width))
    else:
        console.print("Nothing has happened yet.")


@audit.command(
    epilog="""\b
Examples:
  journeyman confirm audit verify
  journeyman confirm audit verify --anchor 812:9a1b… --json"""
)
@click.option(
    "--anchor",
    default="",
    metavar="SEQ:DIGEST",
    help="An entry that is known from elsewhere, such as a notice.",
)
@asked.json_option
@click.pass_context
def verify(ctx: click.Context, *, anchor: str, as_json: bool) -> None:
    """Check the chain in the database, and name the first broken link."""
    found = asked.opened(ctx).confirmations.verify_audit(anchor)
    if as_json:
        asked.print_json(found)
    else:
        _show_verified(found)
    ctx.exit(0 if found.ok else 1)


@audit.command(
    epilog="""\b
Examples:
  journeyman confirm audit export > audit.jsonl
  journeyman confirm audit export --format csv > audit.csv"""
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="One JSON object a line, with which the chain can be checked, or a table.",
)
@click.pass_context
def export(ctx: click.Context, *, form: Format) -> None:
    """Write the whole audit log to standard output, oldest first."""
    # As it is for a file; on a terminal nothing in it may be obeyed.
    clean = asked.escaped if sys.stdout.isatty() else str
    for line in asked.opened(ctx).confirmations.export_audit(form):
        click.echo(clean(line), nl=False)


@audit.command(
    epilog="""\b
Examples:
  journeyman confirm audit reset
  journeyman confirm audit reset --yes"""
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def reset(ctx: click.Context, *, yes: bool) -> None:
    """Accept the log as it is now, after it was found cut off.

    Needed when the database was restored from a backup: the digest that is kept outside is set to
    the last entry there is. That is written to the log.
    """
    question = "Accept the log as it is now? What is missing will no longer be noticed."
    if not yes and not click.confirm(question, default=False, err=True):
        raise click.Abort
    confirmations = asked.opened(ctx).confirmations
    confirmations.reset_anchor(confirm_given.person())
    found = confirmations.verify_audit()
    if found.ok:
        click.echo("Accepted; that stands in the log.")
        return
    click.echo(f"The end is accepted, but the chain does not hold: {visible(found.problem)}")
    ctx.exit(1)


def _show_verified(found: Verified) -> None:
    console = shown.console()
    many = f"{found.entries:,} {'entry' if found.entries == 1 else 'entries'}"
    if found.ok:
        held = f", held against {visible(found.anchor)}" if found.anchor else ""
        console.print(Text(f"The chain holds: {many}{held}.", style="green"), soft_wrap=True)
        if found.head:
            console.print(Text(f"head {visible(found.head)}"), soft_wrap=True)
    else:
        where = "" if found.broken_at is None else f" at entry {found.broken_at}"
        told = f"The chain is broken{where}: {visible(found.problem)}"
        console.print(Text(told, style="red"), soft_wrap=True)
