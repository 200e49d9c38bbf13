"""`journeyman confirm`: the service that holds risky actions until a person decides, the tokens of
agents, and the accounts of approvers.
"""

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import confirm_admin, confirm_cards, formatting
from journeyman.cli.confirm_options import command, name_argument, operator_name
from journeyman.cli.confirm_view import show_first_login
from journeyman.cli.context import flag, number, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records.confirmation import Credential, CredentialKind
from journeyman.text.display import visible

if TYPE_CHECKING:
    from journeyman.confirm.administration import ServiceInfo


@click.group()
def confirm() -> None:
    """Hold risky actions until a person decides.

    An agent requests an action and waits; a person sees exactly what would be done and approves or
    denies it, on the page, in a chat or here. No answer means no.
    """


@confirm.command(epilog="Example: journeyman confirm serve --port 6001 --page-port 6081")
@option("--host ADDRESS", "Address to listen on (default 127.0.0.1).")
@number("--port", "Port for agents (default 6000).", least=0, most=65_535)
@number("--page-port", "Port of the page for people (default 6080).", least=0, most=65_535)
@number("--rate-limit", "Requests for one action that an agent may make per hour (default 10).")
@flag("--anonymous", "Accept requests without a token, to try it out locally.")
@click.pass_context
def serve(ctx: click.Context, /, *, anonymous: bool, **options: str | int | None) -> None:
    """Serve confirmations to agents, and a page to people.

    The first start creates an approver and shows how to log in, once. Everything is stored in the
    database; requests that are waiting when the service stops continue to wait when it is back.
    """
    variables = {
        f"JOURNEYMAN_CONFIRM_{name.upper()}": str(value)
        for name, value in options.items()
        if value is not None
    }
    # A service has no other way to report problems.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # Options override variables; the settings are read in one place.
    journeyman = Journeyman(**ctx.find_root().obj, environ={**os.environ, **variables})
    ctx.with_resource(journeyman).confirmations.serve(_show_started, anonymous=anonymous)
    click.echo("Stopped. Waiting requests continue when the service is started again.")


def _show_started(started: "ServiceInfo") -> None:
    channels = ", ".join(started.channels) or "only this terminal; set confirm.notify for more"
    click.echo("Serving confirmations. Press Ctrl-C to stop.")
    click.echo(f"  agents   {started.agents_url}")
    click.echo(f"  page     {started.page_url}")
    click.echo(f"  notices  {visible(channels)}")
    if started.anonymous:
        click.echo("  warning  requests without a token are accepted, under the name anonymous")
    show_first_login(started.login)


@confirm.group()
def token() -> None:
    """Create, list and revoke the tokens with which agents make requests.

    A token can request but never decide. These commands work on the database, so anyone who can
    write to it can use them, even while the service is not running.
    """


@confirm.group()
def approver() -> None:
    """Create, list and revoke the accounts of people who decide.

    These commands work on the database, so anyone who can write to it can use them, even while the
    service is not running. That includes an agent that runs as the same user: run the service as a
    different user.
    """


@command(
    token,
    "add builder",
    "add builder --owner alice --json",
    message=lambda added: (
        f"The token of {visible(added['credential'].name)}, shown only once:\n\n"
        f"  {added['token']}\n\n"
        "The agent uses it as JOURNEYMAN_CONFIRM_TOKEN, or as confirm.token in its config."
    ),
)
@name_argument
@option("--owner APPROVER", "Owner of the agent, who cannot approve its requests.", default="")
def _add_token(journeyman: Journeyman, *, name: str, owner: str) -> dict[str, Any]:
    """Create a token for the agent NAME. It is shown only once."""
    credential, secret = journeyman.confirmations.add_agent(name, owner=owner, by=operator_name())
    return {"credential": credential, "token": secret}


@command(
    approver,
    "add alice",
    "add alice --telegram 123456789 --json",
    message=lambda added: (
        f"The key of {visible(added['credential'].name)}, shown only once:\n\n"
        f"  {added['key']}\n\n"
        "It logs in on the page, and commands read it from JOURNEYMAN_CONFIRM_APPROVER_KEY. Keep\n"
        "it away from agents. To log in without typing it: journeyman confirm approver link "
        f"{visible(added['credential'].name)}"
    ),
)
@name_argument
@number("--telegram NUMBER", "Telegram user id; the person can then decide with buttons there.")
def _add_approver(journeyman: Journeyman, *, name: str, telegram: int | None) -> dict[str, Any]:
    """Create an account for NAME. The key is shown only once."""
    credential, secret = journeyman.confirmations.add_approver(name, telegram, operator_name())
    return {"credential": credential, "key": secret}


def _state(credential: Credential) -> Text:
    return Text("active", "green") if credential.revoked_at is None else Text("revoked", "red")


_COLUMNS = (
    Column("name", lambda one: visible(one.name)),
    Column("owner", lambda one: visible(one.owner), optional=True),
    Column("Telegram", lambda one: str(one.telegram_id or ""), optional=True),
    Column("since", lambda one: formatting.local_time(one.created_at), no_wrap=True),
    Column("state", _state),
)


def _add_commands(
    group: click.Group, kind: CredentialKind, example_name: str, *, list_help: str, revoke_help: str
) -> None:
    """Add the commands that agents' tokens and approvers' accounts have in common."""

    def show(console: Console, credentials: Sequence[Credential]) -> None:
        if_empty = f"There are none. To add one: journeyman confirm {group.name} add NAME"
        formatting.print_table(console, credentials, _COLUMNS, if_empty)

    @command(group, "list", "list --json", help=list_help, render=show)
    def _list(journeyman: Journeyman) -> Sequence[Credential]:
        return journeyman.confirmations.credentials(kind)

    @command(group, f"revoke {example_name}", help=revoke_help, has_json=False)
    @name_argument
    def _revoke(journeyman: Journeyman, *, name: str) -> None:
        revoked = journeyman.confirmations.revoke_credential(kind, name, operator_name())
        click.echo(f"Revoked: {visible(revoked.name)}")


_add_commands(
    *(token, "agent", "builder"),
    list_help="List the agents that have a token.",
    revoke_help="Revoke the token of the agent NAME, with immediate effect.",
)
_add_commands(
    *(approver, "approver", "alice"),
    list_help="List the people who decide.",
    revoke_help="Close the account of NAME and all its browser sessions, with immediate effect.",
)


@command(approver, "link alice", message=lambda created: created["link"])
@name_argument
def link(journeyman: Journeyman, *, name: str) -> dict[str, str]:
    """Create a link that logs NAME in on the page. It works once and expires soon."""
    return {"name": name, "link": journeyman.confirmations.login_link(name, by=operator_name())}


for _command in (*confirm_cards.COMMANDS, *confirm_admin.COMMANDS):
    confirm.add_command(_command)
