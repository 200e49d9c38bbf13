"""`journeyman confirm list`, `show`, `approve` and `deny`: what a person does."""

import sys
import termios
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, confirm_given, confirm_shown, shown
from journeyman.confirm.received import Card
from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import ConfirmationStatus


@click.command(
    "list",
    epilog="""\b
Examples:
  journeyman confirm list
  journeyman confirm list --status pending
  journeyman confirm list --limit 5 --json""",
)
@click.option("--status", type=click.Choice(get_args(ConfirmationStatus)), help="Only these.")
@click.option(
    "--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="How many."
)
@asked.json_option
@click.pass_context
def list_(
    ctx: click.Context, *, status: ConfirmationStatus | None, limit: int, as_json: bool
) -> None:
    """List confirmations, newest first.

    With an approver's key all of them, with an agent's token its own.
    """
    cards = confirm_given.reader(ctx).list(status=status, limit=limit)
    if as_json:
        asked.print_json(cards)
        return
    console = shown.console()
    if cards:
        console.print(confirm_shown.cards_table(cards, console.width))
    else:
        console.print(f"There is none that is {status}." if status else "Nobody has asked yet.")


@click.command(
    epilog="""\b
Examples:
  journeyman confirm show 5f0c2d
  journeyman confirm show 5f0c2d --json"""
)
@click.argument("id_", metavar="ID")
@asked.json_option
@click.pass_context
def show(ctx: click.Context, *, id_: str, as_json: bool) -> None:
    """Show one confirmation, whole.

    Characters that hide or turn text round are shown as escapes.
    """
    card = confirm_given.reader(ctx).get(id_)
    if as_json:
        asked.print_json(card)
    else:
        confirm_shown.show_card(shown.console(), card)


@click.command(
    epilog="""\b
Examples:
  journeyman confirm approve 5f0c2d
  journeyman confirm approve 5f0c2d --reason "as agreed" --detail amount=80
  journeyman confirm approve 5f0c2d --yes --digest sha256:9a1b…"""
)
@click.argument("id_", metavar="ID")
@click.option("--reason", default="", help="Why; the agent and the audit log are told.")
@click.option("--code", default="", help="The one-time code, where one is needed.")
@click.option("--yes", is_flag=True, help="Do not ask; needs --digest.")
@click.option("--digest", default="", metavar="SHA256", help="What you were shown, with --yes.")
@click.option(
    "--detail",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Approve it with this parameter changed, where the policy lets people do so.",
)
@asked.json_option
@click.pass_context
def approve(
    ctx: click.Context,
    *,
    id_: str,
    reason: str,
    code: str,
    yes: bool,
    digest: str,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Look at the confirmation ID and approve it.

    The card is shown and the short id has to be typed. The key comes from
    JOURNEYMAN_CONFIRM_APPROVER_KEY, or is asked for. An agent's token cannot approve.
    """
    if yes and not digest:
        raise click.UsageError("--yes needs --digest, which `journeyman confirm show` tells.")
    changes = confirm_given.detail_pairs(pairs)
    client = confirm_given.approver(ctx)
    card = client.get(id_)
    changed = card.approved_details | changes if changes else None
    if not yes:
        _ask(card, changed)
    if card.second_factor and not code and not yes:
        code = click.prompt("One-time code", hide_input=True, err=True)
    card = client.approve(
        card.id,
        digest or card.digest,
        reason=reason,
        details=changed,
        code=code.strip(),
        typed="" if yes else card.short_id,
    )
    _show_vote(card, as_json=as_json)


@click.command(
    epilog="""\b
Examples:
  journeyman confirm deny 5f0c2d
  journeyman confirm deny 5f0c2d --reason "not on a Friday" """
)
@click.argument("id_", metavar="ID")
@click.option("--reason", default="", help="Why; the agent and the audit log are told.")
@asked.json_option
@click.pass_context
def deny(ctx: click.Context, *, id_: str, reason: str, as_json: bool) -> None:
    """Say no to the confirmation ID. One no is enough."""
    _show_vote(confirm_given.approver(ctx).deny(id_, reason=reason), as_json=as_json)


def _ask(card: Card, changed: dict[str, Any] | None) -> None:
    """Show what would be approved, and have the person type which one it is. On standard error:
    standard output is for the answer.
    """
    console = Console(stderr=True, highlight=False)
    confirm_shown.show_card(console, card)
    if changed is not None:
        console.print(Text("you change the parameters to", style="bold"))
        for line in confirm_shown.parameter_lines(changed):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if card.status != "pending":
        return  # the service says no, and that it is on record
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # only what is typed from now on is an answer
    typed: str = click.prompt(
        f"Type {visible(card.short_id)} to approve it", default="", show_default=False, err=True
    )
    if typed.strip() != card.short_id:
        raise click.Abort


def _show_vote(card: Card, *, as_json: bool) -> None:
    if as_json:
        asked.print_json(card)
    elif card.status == "pending":
        still = f"{card.approvals} of {card.quorum} people have approved it."
        click.echo(f"Your approval of {visible(card.short_id)} counts. {still}")
    else:
        told = f"{visible(card.short_id)} {visible(card.action)}: {card.outcome}"
        shown.console().print(Text(told), soft_wrap=True)
