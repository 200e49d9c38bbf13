"""`journeyman confirm request`, `wait`, `redeem` and `cancel`: what an agent, or a script, does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.text import Text

from journeyman.cli import asked, confirm_given, confirm_shown, shown
from journeyman.confirm.received import Card, Grant
from journeyman.confirm.shown_text import visible
from journeyman.records.errors import JourneymanError

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient


@click.command(
    epilog="""\b
Examples:
  journeyman confirm request pay_invoice "Pay ACME for March" --detail amount=100 && ./pay.sh
  journeyman confirm request deploy "Release 2.1" --details @release.json --timeout 900
  journeyman confirm request deploy "Release 2.1" --detail version='"2.1"' --no-wait --json"""
)
@click.argument("action")
@click.argument("description")
@confirm_given.detail_option
@confirm_given.details_option
@click.option("--wait/--no-wait", default=True, help="Wait for the decision (the default), or not.")
@click.option(
    "--timeout",
    type=click.IntRange(30, 3600),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="How long people may take to decide; then the answer is no.",
)
@click.option("--session", default="", metavar="NAME", help="The session that this belongs to.")
@click.option("--key", default="", help="Asking again with the same key asks only once.")
@click.option("--edits", is_flag=True, help="Take an approval with changed parameters, too.")
@asked.json_option
@click.pass_context
def request(
    ctx: click.Context,
    *,
    action: str,
    description: str,
    pairs: tuple[str, ...],
    document: str | None,
    wait: bool,
    timeout: int,
    session: str,
    key: str,
    edits: bool,
    as_json: bool,
) -> None:
    """Ask people to confirm ACTION, and wait for what they decide.

    It ends with 0 only when it was approved, and with 1 when it was denied, nobody decided in
    time, or anything went wrong. An approval is good for one time and is used up here, so do at
    once what was approved. Ctrl-C takes the request back. With --no-wait, 0 means that the
    request was taken, not that it was approved.
    """
    details = confirm_given.details(document, pairs)
    client = confirm_given.agent(ctx)
    card = client.request(
        action, description, details, session_key=session, timeout_s=timeout, idempotency_key=key
    )
    if not wait:
        _show_asked(card, as_json=as_json)
        return
    with _cancelling(ctx, client, card):
        if not as_json and card.status == "pending":
            _show_asked(card, as_json=False)
        card = _awaited(client, card, None)
    if not card.is_approved or (card.edited is not None and not edits):
        _show_decided(card, as_json=as_json)
        ctx.exit(1)
    grant = client.redeem(card, card.approved_details if edits else details)
    _show_grant(card, grant, as_json=as_json)


@click.command(
    epilog="""\b
Examples:
  journeyman confirm wait 5f0c2d
  journeyman confirm wait 5f0c2d --timeout 60 --json"""
)
@click.argument("id_", metavar="ID")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop waiting after this time; the request goes on waiting.",
)
@asked.json_option
@click.pass_context
def wait(ctx: click.Context, *, id_: str, timeout: float | None, as_json: bool) -> None:
    """Wait until the confirmation ID is decided.

    It ends with 0 when it was approved as it was asked for and can be redeemed, and with 1
    otherwise, also when nobody has decided yet. The approval is not used up: that is for
    `journeyman confirm redeem`.
    """
    card = _awaited(confirm_given.reader(ctx), id_, timeout)
    _show_decided(card, as_json=as_json)
    ctx.exit(0 if card.is_approved and card.edited is None else 1)


@click.command(
    epilog="""\b
Examples:
  journeyman confirm redeem 5f0c2d --detail amount=100 && ./pay.sh
  journeyman confirm redeem 5f0c2d --json"""
)
@click.argument("id_", metavar="ID")
@confirm_given.detail_option
@confirm_given.details_option
@asked.json_option
@click.pass_context
def redeem(
    ctx: click.Context, *, id_: str, pairs: tuple[str, ...], document: str | None, as_json: bool
) -> None:
    """Use up the approval of ID, just before the action is done.

    Give the parameters that are about to be used: it ends with 0 only the first time, and only
    when exactly these were approved. Without any, those that were asked for are taken, and it
    ends with 1 when a person changed them.
    """
    client = confirm_given.agent(ctx)
    card = client.get(id_)
    given = document is not None or bool(pairs)
    if card.edited is not None and not given:
        _show_decided(card, as_json=as_json)
        ctx.exit(1)
    details = confirm_given.details(document, pairs) if given else card.approved_details
    grant = client.redeem(card, details)
    _show_grant(card, grant, as_json=as_json)
    if not as_json and not given and card.edited is None:
        _show_parameters("Do it with exactly these parameters:", grant.details)


@click.command(
    epilog="""\b
Examples:
  journeyman confirm cancel 5f0c2d
  journeyman confirm cancel 5f0c2d --reason "no longer needed" """
)
@click.argument("id_", metavar="ID")
@click.option("--reason", default="", help="Why.")
@asked.json_option
@click.pass_context
def cancel(ctx: click.Context, *, id_: str, reason: str, as_json: bool) -> None:
    """Take a request back that nobody has decided yet."""
    card = confirm_given.reader(ctx).cancel(id_, reason=reason)
    if as_json:
        asked.print_json(card)
    else:
        click.echo(f"Cancelled: {visible(card.short_id)} {visible(card.action)}")


def _awaited(client: "ConfirmClient", waited: Card | str, timeout_s: float | None) -> Card:
    known = waited.short_id if isinstance(waited, Card) else waited
    with shown.waiting(f"waiting for a decision on {visible(known)}; Ctrl-C stops"):
        return client.wait(waited, timeout_s)


@contextmanager
def _cancelling(ctx: click.Context, client: "ConfirmClient", card: Card) -> Iterator[None]:
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
        ctx.exit(1)


def _show_asked(card: Card, *, as_json: bool) -> None:
    if as_json:
        asked.print_json(card)
        return
    console = shown.console()
    head = Text(f"{visible(card.short_id)}  ").append(
        card.status, confirm_shown.STYLES[card.status]
    )
    console.print(head.append(f"  {visible(card.action)}"))
    console.print(Text(f"id      {card.id}"), soft_wrap=True)
    console.print(Text(f"ends    {confirm_shown.moment(card.expires_at)}"))
    if card.page_url:
        console.print(Text(f"decide  {visible(card.page_url)}"), soft_wrap=True)
    if card.shared:
        console.print("An identical request waits already; both have one card.")
    if card.notice.status == "failed":
        problem = f"Nobody could be told: {visible(card.notice.error)}"
        console.print(Text(problem, style="yellow"))


def _show_decided(card: Card, *, as_json: bool) -> None:
    if as_json:
        asked.print_json(card)
        return
    console = shown.console()
    console.print(Text(card.outcome, style=confirm_shown.STYLES[card.status]))
    if card.edited is not None:
        _show_parameters("A person changed the parameters; approved are only these:", card.edited)
        console.print("What was asked for was not approved: ask again with these, or use --edits.")
    elif card.status == "pending":
        console.print(Text(f"Go on waiting: journeyman confirm wait {visible(card.short_id)}"))


def _show_grant(card: Card, grant: Grant, *, as_json: bool) -> None:
    if as_json:
        asked.print_json({"confirmation": card, "grant": grant})
        return
    shown.console().print(Text(card.outcome, style="green"))
    if card.edited is not None:
        _show_parameters("A person changed the parameters; do it with these:", grant.details)


def _show_parameters(said: str, details: dict[str, object]) -> None:
    console = shown.console()
    console.print(said)
    for line in confirm_shown.parameter_lines(details):
        console.print(Text(f"  {line}"), soft_wrap=True)
