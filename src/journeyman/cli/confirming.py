"""`journeyman confirm`: the service that holds risky actions until a person decides, who may ask,
and who may decide.
"""

import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import confirm_admin, confirm_cards, shown
from journeyman.cli.asked import WholeNumber, flag, option
from journeyman.cli.confirm_given import command, ending, name_argument, person
from journeyman.confirm.shown_text import visible
from journeyman.journeyman import Journeyman
from journeyman.records.confirmation import Credential, CredentialKind

if TYPE_CHECKING:
    from journeyman.confirm.administration import Started

_PORT = WholeNumber(0, 65_535)


@click.group(
    epilog=ending(
        None,
        "serve",
        "token add builder",
        'request pay_invoice "Pay ACME for March" --detail amount=100',
        "list --status pending",
        "approve 5f0c2d",
    )
)
def confirm() -> None:
    """Hold risky actions until a person decides.

    An agent asks and waits; a person looks at exactly what would be done and approves or denies
    it, on the page, in a chat or here. No answer means no.
    """


@confirm.command(
    epilog=ending(None, "serve", "serve --port 6001 --page-port 6081")
    + "\n  CONFIRMATION_PORT=6001 journeyman confirm serve"
)
@option("--host ADDRESS", "Where to serve (default 127.0.0.1).")
@option("--port", "The port for agents (default 6000).", type=_PORT)
@option("--page-port", "The port of the page for people (default 6080).", type=_PORT)
@flag("--anonymous", "Take requests without a token, for trying it out here.")
@click.pass_context
def serve(ctx: click.Context, /, *, anonymous: bool, **given: str | int | None) -> None:
    """Serve confirmations to agents, and a page to people.

    The first start makes an approver and shows how to log in, once. Everything is kept in the
    database; whoever waits when the service stops goes on waiting when it is back.
    """
    flags = {
        f"JOURNEYMAN_CONFIRM_{name.upper()}": str(value)
        for name, value in given.items()
        if value is not None
    }
    # A service has no other way to say that something goes wrong.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # Flags go over variables; the settings are read in one place.
    journeyman = Journeyman(**ctx.find_root().obj, environ={**os.environ, **flags})
    ctx.with_resource(journeyman).confirmations.serve(_show_started, anonymous=anonymous)
    click.echo("Stopped. Whoever waits can go on waiting when it is served again.")


def _show_started(started: "Started") -> None:
    told = ", ".join(started.channels) or "only this terminal; set confirm.notify for more"
    lines = [
        "Confirmations are served until Ctrl-C.",
        f"  agents   {started.agents_url}",
        f"  page     {started.page_url}",
        f"  notices  {visible(told)}",
    ]
    if started.anonymous:
        lines.append("  warning  requests are taken without a token, under the name anonymous")
    if started.login is not None:
        lines += [
            "",
            f"The first start made the approver {visible(started.login.name)}. Shown this once:",
            f"  key   {started.login.key}",
            f"  link  {started.login.link}",
            "The link logs in on the page, once and soon; the key does so at any time. Keep both",
            "from agents. Give each agent a token: journeyman confirm token add NAME",
        ]
    click.echo("\n".join(lines))


@confirm.group(epilog=ending(None, "token add builder", "token list", "token revoke builder"))
def token() -> None:
    """Make, list and revoke the tokens with which agents ask.

    A token can ask and never decide. These commands work on the database, so they can be used by
    whoever may write to it, also while nothing is served.
    """


@confirm.group(
    epilog=ending(
        None,
        "approver add alice --telegram 123456789",
        "approver link alice",
        "approver totp alice",
    )
)
def approver() -> None:
    """Make, list and revoke the accounts of people who decide.

    These commands work on the database, so they can be used by whoever may write to it, also
    while nothing is served. An agent that runs as the same user could do so too: serve under
    another user.
    """


@command(
    token,
    "add builder",
    "add builder --owner alice --json",
    says=lambda made: (
        f"The token of {visible(made['credential'].name)}, shown this once:\n\n"
        f"  {made['token']}\n\n"
        "The agent gives it as JOURNEYMAN_CONFIRM_TOKEN, or as confirm.token in its config."
    ),
)
@name_argument
@option(
    "--owner APPROVER",
    "Whose agent it is: that person cannot approve what it asks for.",
    default="",
)
def _add_token(journeyman: Journeyman, *, name: str, owner: str) -> dict[str, Any]:
    """Make a token for the agent NAME. It is shown this once."""
    made, secret = journeyman.confirmations.add_agent(name, owner=owner, by=person())
    return {"credential": made, "token": secret}


@command(
    approver,
    "add alice",
    "add alice --telegram 123456789 --json",
    says=lambda made: (
        f"The key of {visible(made['credential'].name)}, shown this once:\n\n  {made['key']}\n\n"
        "It logs in on the page and is JOURNEYMAN_CONFIRM_APPROVER_KEY for commands. Keep it from\n"
        "agents. To open the page without typing it: journeyman confirm approver link "
        f"{visible(made['credential'].name)}"
    ),
)
@name_argument
@option(
    "--telegram NUMBER",
    "The person's id at Telegram, a number: then its buttons decide for them.",
    type=WholeNumber(1),
)
def _add_approver(journeyman: Journeyman, *, name: str, telegram: int | None) -> dict[str, Any]:
    """Make an account for NAME. The key is shown this once."""
    made, secret = journeyman.confirmations.add_approver(name, telegram_id=telegram, by=person())
    return {"credential": made, "key": secret}


def _show(kind: CredentialKind, console: Console, found: Sequence[Credential]) -> None:
    are_agents = kind == "agent"
    if not found:
        nobody = (
            "No agent has a token: {} token" if are_agents else "Nobody can decide: {} approver"
        )
        console.print(nobody.format("journeyman confirm"), "add NAME")
        return
    own = ("owner",) if are_agents else ("Telegram", "codes")
    made = shown.table("name", *own, "since", "state")
    for one in found:
        telegram = shown.UNKNOWN if one.telegram_id is None else str(one.telegram_id)
        about = (one.owner,) if are_agents else (telegram, "yes" if one.has_totp else "no")
        gone = one.revoked_at is not None
        state = Text("revoked" if gone else "active", style="red" if gone else "green")
        cells = (Text(visible(text)) for text in (one.name, *about, shown.moment(one.created_at)))
        made.add_row(*cells, state)
    console.print(made)


def _add_commands(
    group: click.Group, kind: CredentialKind, who: str, *, lists: str, revokes: str
) -> None:
    """The commands that tokens of agents and accounts of people have alike."""

    @command(group, "list", "list --json", help=lists, shows=partial(_show, kind))
    def _list(journeyman: Journeyman) -> Sequence[Credential]:
        return journeyman.confirmations.credentials(kind)

    @command(group, f"revoke {who}", help=revokes, has_json=False)
    @name_argument
    def _revoke(journeyman: Journeyman, *, name: str) -> None:
        gone = journeyman.confirmations.revoke_credential(kind, name, person())
        click.echo(f"Revoked: {visible(gone.name)}")


_add_commands(
    token,
    "agent",
    "builder",
    lists="List the agents that have a token.",
    revokes="Take the token of the agent NAME back, at once.",
)
_add_commands(
    approver,
    "approver",
    "alice",
    lists="List the people who decide.",
    revokes="Close the account of NAME, at once, and all sessions in browsers with it.",
)


@command(approver, "link alice", says=lambda made: made["link"])
@name_argument
def link(journeyman: Journeyman, *, name: str) -> dict[str, str]:
    """Make a link that logs NAME in on the page, once and soon."""
    return {"name": name, "link": journeyman.confirmations.login_link(name, by=person())}


@command(
    approver,
    "totp alice",
    says=lambda made: (
        "For an app that makes one-time codes, shown this once:\n\n"
        f"  {made['secret']}\n  {made['url']}"
    ),
)
@name_argument
def totp(journeyman: Journeyman, *, name: str) -> dict[str, str]:
    """Give NAME a new secret for one-time codes. It is shown this once.

    The one before stops working.
    """
    secret, url = journeyman.confirmations.set_totp(name, by=person())
    return {"name": name, "secret": secret, "url": url}


for _command in (*confirm_cards.COMMANDS, *confirm_admin.COMMANDS):
    confirm.add_command(_command)
