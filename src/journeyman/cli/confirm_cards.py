"""`journeyman confirm request`, `wait`, `redeem` and `cancel`, which an agent or a script uses, and
`list`, `show`, `approve` and `deny`, which a person uses.
"""

import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.console import Console

from journeyman.cli import confirm_options, confirm_view, context, formatting
from journeyman.cli.confirm_options import command, detail_option, details_option, id_argument
from journeyman.cli.context import choice, flag, number, option
from journeyman.confirm.schemas import Card
from journeyman.facade.journeyman import Journeyman
from journeyman.records.confirmation import ConfirmationStatus
from journeyman.records.errors import JourneymanError
from journeyman.text.display import visible

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient

limit_option = number("-n --limit", "Number of rows to list.", most=500, default=20)


@command(
    None,
    'request pay_invoice "Pay ACME for March" --detail amount:=100 && ./pay.sh',
    'request deploy "Release 2.1" --details @release.json --timeout 900',
    'request deploy "Release 2.10" --detail version=2.10 --no-wait --json',
)
@click.argument("action")
@click.argument("description")
@detail_option
@details_option
@option("--wait/--no-wait", "Wait for the decision (the default), or return at once.", default=True)
@number(
    "--timeout SECONDS",
    "Time that people have to decide, from 30 to 3,600; after that, the answer is no.",
    dest="timeout_s",
    least=0,
    default=300,
)
@option("--session NAME", "Session that the request belongs to.", dest="session_key", default="")
@option(
    "--key",
    "Idempotency key: people are asked only once for requests with the same key.",
    dest="idempotency_key",
    default="",
)
@flag("--edits", "Also accept an approval with changed parameters.")
def request(
    journeyman: Journeyman,
    *,
    pairs: tuple[str, ...],
    document: str | None,
    wait: bool,
    edits: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Request approval for ACTION, and wait for the decision.

    The exit code is 0 only if the action was approved, and 1 if it was denied, not decided in
    time, or anything failed. An approval is valid once and is used up here, so perform the action
    at once. Ctrl-C cancels the request. With --no-wait, 0 means that the request was accepted, not
    that it was approved.
    """
    details = confirm_options.parse_details(document, pairs)
    client = confirm_options.agent_client(journeyman)
    card = client.request(details=details, **fields)
    for warning in card.warnings:
        click.echo(f"Warning: {visible(warning)}", err=True)
    if not wait:
        context.print_result(card, confirm_view.show_requested, as_json=as_json)
        return
    with _cancel_on_interrupt(client, card):
        if not as_json and card.status == "pending":
            confirm_view.show_requested(formatting.console(), card)
        decided = _wait_for_decision(client, card, None)
    if not decided.is_approved or (decided.edited is not None and not edits):
        context.print_result(decided, confirm_view.show_decided, as_json=as_json)
        click.get_current_context().exit(1)
    grant = client.redeem(decided, decided.approved_details if edits else details)
    granted = {"confirmation": decided, "grant": grant}
    context.print_result(granted, confirm_view.show_grant, as_json=as_json)


@command(
    None,
    "wait 5f0c2d",
    "wait 5f0c2d --timeout 60 --json",
    render=confirm_view.show_decided,
    is_failure=lambda card: not card.is_approved or card.edited is not None,
)
@id_argument
@option(
    "--timeout SECONDS",
    "Stop waiting after this time; the request stays open.",
    type=context.POSITIVE_FLOAT,
)
def wait(journeyman: Journeyman, *, id_: str, timeout: float | None) -> Card:
    """Wait until the confirmation ID is decided.

    The exit code is 0 if it was approved as requested and can be redeemed, and 1 otherwise, also
    while it is undecided. The approval is not used up: `journeyman confirm redeem` does that.
    """
    return _wait_for_decision(confirm_options.reader_client(journeyman), id_, timeout)


@command(None, "redeem 5f0c2d --detail amount:=100 && ./pay.sh", "redeem 5f0c2d --json")
@id_argument
@detail_option
@details_option
def redeem(
    journeyman: Journeyman, *, id_: str, pairs: tuple[str, ...], document: str | None, as_json: bool
) -> None:
    """Use up the approval of ID, just before the action is performed.

    Pass the parameters that are about to be used: the exit code is 0 only the first time, and only
    if exactly these were approved. Without any, the requested parameters are used, and the exit
    code is 1 if a person changed them.
    """
    client = confirm_options.agent_client(journeyman)
    card = client.get(id_)
    has_details = document is not None or bool(pairs)
    if card.edited is not None and not has_details:
        context.print_result(card, confirm_view.show_decided, as_json=as_json)
        click.get_current_context().exit(1)
    details = (
        confirm_options.parse_details(document, pairs) if has_details else card.approved_details
    )
    granted = {"confirmation": card, "grant": client.redeem(card, details)}
    context.print_result(granted, confirm_view.show_grant, as_json=as_json)


@command(
    None,
    "cancel 5f0c2d",
    'cancel 5f0c2d --reason "no longer needed"',
    message=lambda card: f"Cancelled: {visible(card.short_id)} {visible(card.action)}",
)
@id_argument
@option("--reason", "Reason for cancelling.", default="")
def cancel(journeyman: Journeyman, *, id_: str, reason: str) -> Card:
    """Cancel a request that is still undecided."""
    return confirm_options.reader_client(journeyman).cancel(id_, reason=reason)


def _wait_for_decision(client: "ConfirmClient", card: Card | str, timeout_s: float | None) -> Card:
    id_ = card.short_id if isinstance(card, Card) else card
    with formatting.spinner(f"waiting for a decision on {visible(id_)}; Ctrl-C stops"):
        return client.wait(card, timeout_s)


@contextmanager
def _cancel_on_interrupt(client: "ConfirmClient", card: Card) -> Iterator[None]:
    """Cancel a request if waiting for it is interrupted, because its approval would go unused."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            client.cancel(card.id, reason="interrupted")
            message = f"Interrupted: the request {visible(card.short_id)} was cancelled."
        except JourneymanError as error:
            message = f"Interrupted. The request was not cancelled: {error}"
        click.echo(message, err=True)
        click.get_current_context().exit(1)


@command(
    None, "list", "list --status pending", "list --limit 5 --json", render=confirm_view.show_cards
)
@choice("--status", "Only confirmations with this status.", get_args(ConfirmationStatus))
@limit_option
def list_(journeyman: Journeyman, **filters: Any) -> Sequence[Card]:
    """List confirmations, newest first.

    With an approver's key, lists all of them; with an agent's token, only its own.
    """
    return confirm_options.reader_client(journeyman).list(**filters)


@command(None, "show 5f0c2d", "show 5f0c2d --json", render=confirm_view.show_card)
@id_argument
def show(journeyman: Journeyman, *, id_: str) -> Card:
    """Show a confirmation in full.

    Invisible characters, and those that change the direction of text, are shown as escapes.
    """
    return confirm_options.reader_client(journeyman).get(id_)


_reason_option = option("--reason", "Reason, for the agent and the audit log.", default="")


@command(
    None,
    "approve 5f0c2d",
    'approve 5f0c2d --reason "as agreed" --detail amount:=80',
    "approve 5f0c2d --yes --digest sha256:9a1b…",
    render=confirm_view.show_vote,
)
@id_argument
@_reason_option
@flag("--yes", "Do not ask for confirmation; needs --digest.")
@option("--digest SHA256", "Digest of what you were shown; with --yes.", default="")
@option(
    "--detail NAME=TEXT|NAME:=JSON",
    "Change this parameter and approve, if the policy allows changes; repeatable.",
    dest="pairs",
    multiple=True,
)
def approve(
    journeyman: Journeyman, *, id_: str, yes: bool, digest: str, pairs: Sequence[str], **vote: str
) -> Card:
    """Review the confirmation ID and approve it.

    Shows the confirmation and asks you to type its short id. The approver's key is read from
    JOURNEYMAN_CONFIRM_APPROVER_KEY or a prompt. An agent's token cannot approve.
    """
    if yes and not digest:
        raise click.UsageError("--yes needs --digest, which `journeyman confirm show` prints.")
    changes = confirm_options.parse_details(None, pairs)
    client = confirm_options.approver_client(journeyman)
    card = client.get(id_)
    changed = card.approved_details | changes if changes else None
    if not yes:
        _confirm_by_id(card, changed)
    typed = "" if yes else card.short_id
    return client.approve(card.id, digest or card.digest, details=changed, typed=typed, **vote)


@command(
    None, "deny 5f0c2d", 'deny 5f0c2d --reason "not on a Friday"', render=confirm_view.show_vote
)
@id_argument
@_reason_option
def deny(journeyman: Journeyman, *, id_: str, reason: str) -> Card:
    """Deny the confirmation ID. One denial is enough."""
    return confirm_options.approver_client(journeyman).deny(id_, reason=reason)


def _confirm_by_id(card: Card, changed: dict[str, Any] | None) -> None:
    """Show what would be approved and ask the person to type its id; raise Abort if it differs.
    Uses standard error, because standard output is for the result.
    """
    console = Console(stderr=True, highlight=False)
    confirm_view.show_card(console, card)
    if changed is not None:
        confirm_view.show_parameters(console, "you change the parameters to", changed)
    if card.status != "pending":
        return  # the service refuses the vote and records it
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # discard what was typed before the prompt
    typed: str = click.prompt(
        f"Type {visible(card.short_id)} to approve it", default="", show_default=False, err=True
    )
    if typed.strip() != card.short_id:
        raise click.Abort


COMMANDS = (request, wait, redeem, cancel, list_, show, approve, deny)
