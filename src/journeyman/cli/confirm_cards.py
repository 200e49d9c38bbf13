"""`journeyman confirm request`, `wait`, `redeem` and `cancel`, which an agent or a script uses, and
`list`, `show`, `approve` and `deny`, which a person uses.
"""

import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, confirm_given, confirm_shown, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.confirm_given import command, detail_option, details_option, id_argument
from journeyman.confirm.schemas import Card
from journeyman.confirm.shown_text import visible
from journeyman.journeyman import Journeyman
from journeyman.records.confirmation import ConfirmationStatus
from journeyman.records.errors import JourneymanError

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient

limit_option = option("--limit", "How many.", type=asked.WholeNumber(1, 500), default=20)


@command(
    None,
    'request pay_invoice "Pay ACME for March" --detail amount=100 && ./pay.sh',
    'request deploy "Release 2.1" --details @release.json --timeout 900',
    'request deploy "Release 2.1" --detail version=\'"2.1"\' --no-wait --json',
)
@click.argument("action")
@click.argument("description")
@detail_option
@details_option
@option("--wait/--no-wait", "Wait for the decision (the default), or not.", default=True)
@option(
    "--timeout SECONDS",
    "How long people may take to decide; then the answer is no.",
    to="timeout_s",
    type=click.IntRange(30, 3600),
    default=300,
)
@option("--session NAME", "The session that this belongs to.", to="session_key", default="")
@option("--key", "Asking again with the same key asks only once.", to="idempotency_key", default="")
@flag("--edits", "Take an approval with changed parameters, too.")
def request(
    journeyman: Journeyman,
    *,
    pairs: tuple[str, ...],
    document: str | None,
    wait: bool,
    edits: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Ask people to confirm ACTION, and wait for what they decide.

    It ends with 0 only when it was approved, and with 1 when it was denied, nobody decided in
    time, or anything went wrong. An approval is good for one time and is used up here, so do at
    once what was approved. Ctrl-C takes the request back. With --no-wait, 0 means that the
    request was taken, not that it was approved.
    """
    details = confirm_given.details(document, pairs)
    client = confirm_given.agent(journeyman)
    card = client.request(details=details, **given)
    if not wait:
        asked.answer(card, confirm_shown.show_asked, as_json=as_json)
        return
    with _cancelling(client, card):
        if not as_json and card.status == "pending":
            confirm_shown.show_asked(shown.console(), card)
        decided = _awaited(client, card, None)
    if not decided.is_approved or (decided.edited is not None and not edits):
        asked.answer(decided, confirm_shown.show_decided, as_json=as_json)
        click.get_current_context().exit(1)
    grant = client.redeem(decided, decided.approved_details if edits else details)
    found = {"confirmation": decided, "grant": grant}
    asked.answer(found, confirm_shown.show_grant, as_json=as_json)


@command(
    None,
    "wait 5f0c2d",
    "wait 5f0c2d --timeout 60 --json",
    shows=confirm_shown.show_decided,
    fails=lambda card: not card.is_approved or card.edited is not None,
)
@id_argument
@option(
    "--timeout SECONDS",
    "Stop waiting after this time; the request goes on waiting.",
    type=asked.MORE,
)
def wait(journeyman: Journeyman, *, id_: str, timeout: float | None) -> Card:
    """Wait until the confirmation ID is decided.

    It ends with 0 when it was approved as it was asked for and can be redeemed, and with 1
    otherwise, also when nobody has decided yet. The approval is not used up: that is for
    `journeyman confirm redeem`.
    """
    return _awaited(confirm_given.reader(journeyman), id_, timeout)


@command(None, "redeem 5f0c2d --detail amount=100 && ./pay.sh", "redeem 5f0c2d --json")
@id_argument
@detail_option
@details_option
def redeem(
    journeyman: Journeyman, *, id_: str, pairs: tuple[str, ...], document: str | None, as_json: bool
) -> None:
    """Use up the approval of ID, just before the action is done.

    Give the parameters that are about to be used: it ends with 0 only the first time, and only
    when exactly these were approved. Without any, those that were asked for are taken, and it
    ends with 1 when a person changed them.
    """
    client = confirm_given.agent(journeyman)
    card = client.get(id_)
    given = document is not None or bool(pairs)
    if card.edited is not None and not given:
        asked.answer(card, confirm_shown.show_decided, as_json=as_json)
        click.get_current_context().exit(1)
    details = confirm_given.details(document, pairs) if given else card.approved_details
    show = partial(confirm_shown.show_grant, always=not given)
    found = {"confirmation": card, "grant": client.redeem(card, details)}
    asked.answer(found, show, as_json=as_json)


@command(
    None,
    "cancel 5f0c2d",
    'cancel 5f0c2d --reason "no longer needed"',
    says=lambda card: f"Cancelled: {visible(card.short_id)} {visible(card.action)}",
)
@id_argument
@option("--reason", "Why.", default="")
def cancel(journeyman: Journeyman, *, id_: str, reason: str) -> Card:
    """Take a request back that nobody has decided yet."""
    return confirm_given.reader(journeyman).cancel(id_, reason=reason)


def _awaited(client: "ConfirmClient", waited: Card | str, timeout_s: float | None) -> Card:
    known = waited.short_id if isinstance(waited, Card) else waited
    with shown.waiting(f"waiting for a decision on {visible(known)}; Ctrl-C stops"):
        return client.wait(waited, timeout_s)


@contextmanager
def _cancelling(client: "ConfirmClient", card: Card) -> Iterator[None]:
    """Takes a request back when its wait is interrupted: nobody would use the approval."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            client.cancel(card.id, reason="interrupted")
            told = f"Interrupted: the request {visible(card.short_id)} was cancelled."
        except JourneymanError as error:
            told = f"Interrupted. The request was not cancelled: {error}"
        click.echo(told, err=True)
        click.get_current_context().exit(1)


@command(
    None, "list", "list --status pending", "list --limit 5 --json", shows=confirm_shown.show_cards
)
@option("--status", "Only these.", type=click.Choice(get_args(ConfirmationStatus)))
@limit_option
def list_(journeyman: Journeyman, **chosen: Any) -> list[Card]:
    """List confirmations, newest first.

    With an approver's key all of them, with an agent's token its own.
    """
    return confirm_given.reader(journeyman).list(**chosen)


@command(None, "show 5f0c2d", "show 5f0c2d --json", shows=confirm_shown.show_card)
@id_argument
def show(journeyman: Journeyman, *, id_: str) -> Card:
    """Show one confirmation, whole.

    Characters that hide or turn text round are shown as escapes.
    """
    return confirm_given.reader(journeyman).get(id_)


_reason = option("--reason", "Why; the agent and the audit log are told.", default="")


@command(
    None,
    "approve 5f0c2d",
    'approve 5f0c2d --reason "as agreed" --detail amount=80',
    "approve 5f0c2d --yes --digest sha256:9a1b…",
    shows=confirm_shown.show_vote,
)
@id_argument
@_reason
@option("--code", "The one-time code, where one is needed.", default="")
@flag("--yes", "Do not ask; needs --digest.")
@option("--digest SHA256", "What you were shown, with --yes.", default="")
@option(
    "--detail NAME=VALUE",
    "Approve it with this parameter changed, where the policy lets people do so.",
    to="pairs",
    multiple=True,
)
def approve(
    journeyman: Journeyman, *, id_: str, yes: bool, digest: str, pairs: Sequence[str], **given: str
) -> Card:
    """Look at the confirmation ID and approve it.

    The card is shown and the short id has to be typed. The key comes from
    JOURNEYMAN_CONFIRM_APPROVER_KEY, or is asked for. An agent's token cannot approve.
    """
    if yes and not digest:
        raise click.UsageError("--yes needs --digest, which `journeyman confirm show` tells.")
    changes = confirm_given.details(None, pairs)
    client = confirm_given.approver(journeyman)
    card = client.get(id_)
    changed = card.approved_details | changes if changes else None
    if not yes:
        _ask(card, changed)
    if card.second_factor and not given["code"] and not yes:
        given["code"] = click.prompt("One-time code", hide_input=True, err=True)
    given["code"] = given["code"].strip()
    typed = "" if yes else card.short_id
    return client.approve(card.id, digest or card.digest, details=changed, typed=typed, **given)


@command(
    None, "deny 5f0c2d", 'deny 5f0c2d --reason "not on a Friday"', shows=confirm_shown.show_vote
)
@id_argument
@_reason
def deny(journeyman: Journeyman, *, id_: str, reason: str) -> Card:
    """Say no to the confirmation ID. One no is enough."""
    return confirm_given.approver(journeyman).deny(id_, reason=reason)


def _ask(card: Card, changed: dict[str, Any] | None) -> None:
    """Show what would be approved, and have the person type which one it is. On standard error:
    standard output is for the answer.
    """
    console = Console(stderr=True, highlight=False)
    confirm_shown.show_card(console, card)
    if changed is not None:
        said = Text("you change the parameters to", style="bold")
        confirm_shown.show_parameters(console, said, changed)
    if card.status != "pending":
        return  # the service says no, and that it is on record
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # only what is typed from now on is an answer
    typed: str = click.prompt(
        f"Type {visible(card.short_id)} to approve it", default="", show_default=False, err=True
    )
    if typed.strip() != card.short_id:
        raise click.Abort


COMMANDS = (request, wait, redeem, cancel, list_, show, approve, deny)
