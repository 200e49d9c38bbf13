"""`journeyman confirm token` and `approver`: who may ask, and who may decide."""

from collections.abc import Iterable

import click
from rich.table import Table
from rich.text import Text

from journeyman.cli import asked, confirm_given, shown
from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import Credential, CredentialKind


@click.group(
    epilog="""\b
Examples:
  journeyman confirm token add builder
  journeyman confirm token list
  journeyman confirm token revoke builder"""
)
def token() -> None:
    """Make, list and revoke the tokens with which agents ask.

    A token can ask and never decide. These commands work on the database, so they can be used by
    whoever may write to it, also while nothing is served.
    """


@token.command(
    "add",
    epilog="""\b
Examples:
  journeyman confirm token add builder
  journeyman confirm token add builder --owner alice --json""",
)
@click.argument("name")
@click.option(
    "--owner",
    default="",
    metavar="APPROVER",
    help="Whose agent it is: that person cannot approve what it asks for.",
)
@asked.json_option
@click.pass_context
def add_token(ctx: click.Context, *, name: str, owner: str, as_json: bool) -> None:
    """Make a token for the agent NAME. It is shown this once."""
    credential, secret = asked.opened(ctx).confirmations.add_agent(
        name, owner=owner, by=confirm_given.person()
    )
    if as_json:
        asked.print_json({"credential": credential, "token": secret})
        return
    click.echo(f"The token of {visible(credential.name)}, shown this once:\n\n  {secret}\n")
    click.echo("The agent gives it as JOURNEYMAN_CONFIRM_TOKEN, or as confirm.token in its config.")


@token.command(
    "list",
    epilog="""\b
Examples:
  journeyman confirm token list
  journeyman confirm token list --json""",
)
@asked.json_option
@click.pass_context
def list_tokens(ctx: click.Context, *, as_json: bool) -> None:
    """List the agents that have a token."""
    _list(ctx, "agent", "No agent has a token: journeyman confirm token add NAME", as_json=as_json)


@token.command(
    "revoke",
    epilog="""\b
Examples:
  journeyman confirm token revoke builder""",
)
@click.argument("name")
@click.pass_context
def revoke_token(ctx: click.Context, *, name: str) -> None:
    """Take the token of the agent NAME back, at once."""
    _revoke(ctx, "agent", name)


@click.group(
    epilog="""\b
Examples:
  journeyman confirm approver add alice --telegram 123456789
  journeyman confirm approver link alice
  journeyman confirm approver totp alice"""
)
def approver() -> None:
    """Make, list and revoke the accounts of people who decide.

    These commands work on the database, so they can be used by whoever may write to it, also
    while nothing is served. An agent that runs as the same user could do so too: serve under
    another user.
    """


@approver.command(
    "add",
    epilog="""\b
Examples:
  journeyman confirm approver add alice
  journeyman confirm approver add alice --telegram 123456789 --json""",
)
@click.argument("name")
@click.option(
    "--telegram",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="The person's id at Telegram, a number: then its buttons decide for them.",
)
@asked.json_option
@click.pass_context
def add_approver(ctx: click.Context, *, name: str, telegram: int | None, as_json: bool) -> None:
    """Make an account for NAME. The key is shown this once."""
    credential, secret = asked.opened(ctx).confirmations.add_approver(
        name, telegram_id=telegram, by=confirm_given.person()
    )
    if as_json:
        asked.print_json({"credential": credential, "key": secret})
        return
    known = visible(credential.name)
    click.echo(f"The key of {known}, shown this once:\n\n  {secret}\n")
    click.echo(
        "It logs in on the page and is JOURNEYMAN_CONFIRM_APPROVER_KEY for commands. Keep it from\n"
        f"agents. To open the page without typing it: journeyman confirm approver link {known}"
    )


@approver.command(
    "list",
    epilog="""\b
Examples:
  journeyman confirm approver list
  journeyman confirm approver list --json""",
)
@asked.json_option
@click.pass_context
def list_approvers(ctx: click.Context, *, as_json: bool) -> None:
    """List the people who decide."""
    nobody = "Nobody can decide: journeyman confirm approver add NAME"
    _list(ctx, "approver", nobody, as_json=as_json)


@approver.command(
    "revoke",
    epilog="""\b
Examples:
  journeyman confirm approver revoke alice""",
)
@click.argument("name")
@click.pass_context
def revoke_approver(ctx: click.Context, *, name: str) -> None:
    """Close the account of NAME, at once, and all sessions in browsers with it."""
    _revoke(ctx, "approver", name)


@approver.command(
    epilog="""\b
Examples:
  journeyman confirm approver link alice"""
)
@click.argument("name")
@asked.json_option
@click.pass_context
def link(ctx: click.Context, *, name: str, as_json: bool) -> None:
    """Make a link that logs NAME in on the page, once and soon."""
    made = asked.opened(ctx).confirmations.login_link(name, by=confirm_given.person())
    if as_json:
        asked.print_json({"name": name, "link": made})
    else:
        click.echo(made)


@approver.command(
    epilog="""\b
Examples:
  journeyman confirm approver totp alice"""
)
@click.argument("name")
@asked.json_option
@click.pass_context
def totp(ctx: click.Context, *, name: str, as_json: bool) -> None:
    """Give NAME a new secret for one-time codes. It is shown this once.

    The one before stops working.
    """
    secret, url = asked.opened(ctx).confirmations.set_totp(name, by=confirm_given.person())
    if as_json:
        asked.print_json({"name": name, "secret": secret, "url": url})
    else:
        click.echo(f"For an app that makes one-time codes, shown this once:\n\n  {secret}\n  {url}")


def _list(ctx: click.Context, kind: CredentialKind, nobody: str, *, as_json: bool) -> None:
    found = asked.opened(ctx).confirmations.credentials(kind)
    if as_json:
        asked.print_json(found)
    elif found:
        shown.console().print(_table(kind, found))
    else:
        click.echo(nobody)


def _table(kind: CredentialKind, found: Iterable[Credential]) -> Table:
    own = ("owner",) if kind == "agent" else ("Telegram", "codes")
    made = shown.table("name", *own, "since", "state")
    for one in found:
        telegram = shown.UNKNOWN if one.telegram_id is None else str(one.telegram_id)
        about = (one.owner,) if kind == "agent" else (telegram, "yes" if one.has_totp else "no")
        gone = one.revoked_at is not None
        state = Text("revoked" if gone else "active", style="red" if gone else "green")
        cells = (Text(visible(text)) for text in (one.name, *about, shown.moment(one.created_at)))
        made.add_row(*cells, state)
    return made


def _revoke(ctx: click.Context, kind: CredentialKind, name: str) -> None:
    confirmations = asked.opened(ctx).confirmations
    gone = confirmations.revoke_credential(kind, name, confirm_given.person())
    click.echo(f"Revoked: {visible(gone.name)}")
