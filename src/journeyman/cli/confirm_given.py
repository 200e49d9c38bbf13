"""What the commands on confirmations are given: parameters, times, credentials, and with them the
client that speaks for whoever gave them.
"""

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli import asked, files
from journeyman.confirm.shown_text import visible
from journeyman.journeyman import Journeyman

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient

_MOST_BYTES = 256 * 1024

id_argument = click.argument("id_", metavar="ID")
name_argument = click.argument("name")
detail_option = asked.option(
    "--detail NAME=VALUE",
    'A parameter; repeatable. VALUE is JSON, or else a text ("1" in quotes is one too).',
    to="pairs",
    multiple=True,
)
details_option = asked.option(
    "--details JSON|@FILE|-",
    "All parameters as a JSON object: here, in a file, or on standard input.",
    to="document",
)


def command(
    group: click.Group | None, *examples: str, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command of `journeyman confirm`, or of a group in it, with the examples that end its help;
    the first begins with its name.
    """
    name = examples[0].split()[0]
    return asked.command(group, name, epilog=ending(group, *examples), **settings)


def ending(group: click.Group | None, *examples: str) -> str:
    before = f"  journeyman confirm {group.name if group else ''}".rstrip()
    return "\n".join(["\b\nExamples:", *(f"{before} {line}" for line in examples)])


def details(document: str | None, pairs: Iterable[str]) -> dict[str, Any]:
    """The parameters of an action: the document's, and over them the single ones."""
    found: dict[str, Any] = {}
    if document is not None:
        if document == files.STANDARD_INPUT or document.startswith("@"):
            place = document.removeprefix("@")
            document = files.read_text(place, "object with the parameters", most=_MOST_BYTES)
        try:
            found = json.loads(document, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"--details is no JSON: {visible(str(error))}.") from error
        if not isinstance(found, dict):
            raise click.UsageError('--details must be a JSON object, like {"amount": 100}.')
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


def agent(journeyman: Journeyman) -> "ConfirmClient":
    """A client with the agent's token of the settings."""
    return click.get_current_context().with_resource(journeyman.confirm_client())


def approver(journeyman: Journeyman) -> "ConfirmClient":
    """A client with the approver's key: from the settings, or asked for where nobody sees it."""
    key = journeyman.settings.confirm.approver_key
    if not key and not sys.stdin.isatty():
        raise click.UsageError(
            "This needs an approver's key. Set JOURNEYMAN_CONFIRM_APPROVER_KEY, or run it on a "
            "terminal to be asked for it."
        )
    key = key or click.prompt("Approver's key", hide_input=True, err=True).strip()
    return click.get_current_context().with_resource(journeyman.approver_client(key))


def reader(journeyman: Journeyman) -> "ConfirmClient":
    """A client for looking: the approver's where there is a key, else the agent's."""
    settings = journeyman.settings.confirm
    is_approver = settings.approver_key or not settings.token
    return approver(journeyman) if is_approver else agent(journeyman)


def person() -> str:
    """Who sits at this terminal, for the audit log."""
    return asked.person() or "somebody at the terminal"
