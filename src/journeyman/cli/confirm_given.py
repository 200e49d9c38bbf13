"""What the commands on confirmations are given: parameters, times, credentials, and with them the
client that speaks for whoever gave them.
"""

import getpass
import json
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli import asked, files
from journeyman.confirm.shown_text import visible
from journeyman.journeyman import Journeyman

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient

_MOST_BYTES = 256 * 1024
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,9})\s*([smhdw])")

detail_option = click.option(
    "--detail",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help='A parameter; repeatable. VALUE is JSON, or else a text ("1" in quotes is one too).',
)
details_option = click.option(
    "--details",
    "document",
    metavar="JSON|@FILE|-",
    help="All parameters as a JSON object: here, in a file, or on standard input.",
)


def details(document: str | None, pairs: Iterable[str]) -> dict[str, Any]:
    """The parameters of an action: the document's, and over them the single ones."""
    found = {} if document is None else _document(document)
    return found | detail_pairs(pairs)


def detail_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Parameters that were given one by one."""
    found = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise click.UsageError(f"{visible(pair)!r} is no parameter. Write it as name=value.")
        try:
            found[name.strip()] = json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError):
            found[name.strip()] = text
    return found


def _no_number(name: str) -> None:
    raise ValueError(name)


def _document(given: str) -> dict[str, Any]:
    if given == files.STANDARD_INPUT or given.startswith("@"):
        place = given.removeprefix("@")
        text = files.read(place, "object with the parameters", most=_MOST_BYTES).decode(
            "utf-8", "replace"
        )
    else:
        text = given
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--details is no JSON: {visible(str(error))}.") from error
    if not isinstance(found, dict):
        raise click.UsageError('--details must be a JSON object, like {"amount": 100}.')
    return found


def duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Seconds, from a text like 90s, 15m, 2h, 3d or 1w."""
    if value is None:
        return None
    found = _DURATION.fullmatch(value.strip())
    if found is None or not int(found[1]):
        raise click.BadParameter(f"{visible(value)!r} is no time. Write it like 15m, 2h or 7d.")
    return int(found[1]) * _UNITS[found[2]]


def agent(ctx: click.Context) -> "ConfirmClient":
    """A client with the agent's token of the settings."""
    return ctx.with_resource(asked.opened(ctx).confirm_client())


def approver(ctx: click.Context) -> "ConfirmClient":
    """A client with the approver's key: from the settings, or asked for where nobody sees it."""
    return _approver(ctx, asked.opened(ctx))


def reader(ctx: click.Context) -> "ConfirmClient":
    """A client for looking: the approver's where there is a key, else the agent's."""
    journeyman = asked.opened(ctx)
    settings = journeyman.settings.confirm
    if settings.approver_key or not settings.token:
        return _approver(ctx, journeyman)
    return ctx.with_resource(journeyman.confirm_client())


def _approver(ctx: click.Context, journeyman: Journeyman) -> "ConfirmClient":
    key = journeyman.settings.confirm.approver_key or _asked_key()
    return ctx.with_resource(journeyman.approver_client(key))


def _asked_key() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(
            "This needs an approver's key. Set JOURNEYMAN_CONFIRM_APPROVER_KEY, or run it on a "
            "terminal to be asked for it."
        )
    key: str = click.prompt("Approver's key", hide_input=True, err=True)
    return key.strip()


def person() -> str:
    """Who sits at this terminal, for the audit log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return "somebody at the terminal"
