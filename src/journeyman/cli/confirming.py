"""`journeyman confirm`: the service that holds risky actions until a person decides, and what
agents and people do with it.
"""

import logging
import os
from typing import TYPE_CHECKING

import click

from journeyman.cli import (
    confirm_asking,
    confirm_audit,
    confirm_deciding,
    confirm_people,
    confirm_policy,
    confirm_whitelist,
)
from journeyman.confirm.shown_text import visible
from journeyman.journeyman import Journeyman

if TYPE_CHECKING:
    from journeyman.confirm.running import Started

_PORT = click.IntRange(0, 65_535)


@click.group(
    epilog="""\b
Examples:
  journeyman confirm serve
  journeyman confirm token add builder
  journeyman confirm request pay_invoice "Pay ACME for March" --detail amount=100
  journeyman confirm list --status pending
  journeyman confirm approve 5f0c2d"""
)
def confirm() -> None:
    """Hold risky actions until a person decides.

    An agent asks and waits; a person looks at exactly what would be done and approves or denies
    it, on the page, in a chat or here. No answer means no.
    """


@confirm.command(
    epilog="""\b
Examples:
  journeyman confirm serve
  journeyman confirm serve --port 6001 --page-port 6081
  CONFIRMATION_PORT=6001 journeyman confirm serve"""
)
@click.option("--host", metavar="ADDRESS", help="Where to serve (default 127.0.0.1).")
@click.option("--port", type=_PORT, help="The port for agents (default 6000).")
@click.option("--page-port", type=_PORT, help="The port of the page for people (default 6080).")
@click.option(
    "--anonymous", is_flag=True, help="Take requests without a token, for trying it out here."
)
@click.pass_context
def serve(
    ctx: click.Context,
    *,
    host: str | None,
    port: int | None,
    page_port: int | None,
    anonymous: bool,
) -> None:
    """Serve confirmations to agents, and a page to people.

    The first start makes an approver and shows how to log in, once. Everything is kept in the
    database; whoever waits when the service stops goes on waiting when it is back.
    """
    chosen = ctx.find_root().obj
    given = {"HOST": host, "PORT": port, "PAGE_PORT": page_port}
    flags = {
        f"JOURNEYMAN_CONFIRM_{name}": str(value)
        for name, value in given.items()
        if value is not None
    }
    # A service has no other way to say that something goes wrong.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # Flags go over variables; the settings are read in one place.
    journeyman = Journeyman(**chosen, environ={**os.environ, **flags})
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


for _command in (
    confirm_asking.request,
    confirm_asking.wait,
    confirm_asking.redeem,
    confirm_asking.cancel,
    confirm_deciding.list_,
    confirm_deciding.show,
    confirm_deciding.approve,
    confirm_deciding.deny,
    confirm_whitelist.whitelist,
    confirm_audit.audit,
    confirm_people.token,
    confirm_people.approver,
    confirm_policy.policy,
):
    confirm.add_command(_command)
