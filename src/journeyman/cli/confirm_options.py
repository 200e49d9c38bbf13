"""What the `journeyman confirm` commands share: their decorator, the parameters of an action, and
clients with the credentials of an agent or an approver.
"""

import getpass
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli import context, files
from journeyman.facade.journeyman import Journeyman
from journeyman.text.display import visible
from journeyman.text.strict_json import InvalidJson, read_json

if TYPE_CHECKING:
    from journeyman.confirm.client import ConfirmClient

id_argument = click.argument("id_", metavar="ID")
name_argument = click.argument("name")
detail_option = context.option(
    "--detail NAME=TEXT|NAME:=JSON",
    "One parameter; repeatable. version=2.10 is text, count:=3 is JSON: a number here.",
    dest="pairs",
    multiple=True,
)
details_option = context.option(
    "--details JSON|@FILE|-",
    "All parameters as a JSON object: inline, in a file, or on standard input.",
    dest="document",
)


def command(
    group: click.Group | None, *examples: str, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command of `journeyman confirm`, or of a group in it. The examples become
    the end of its help; the first word of the first one is its name.
    """
    name = examples[0].split()[0]
    prefix = f"  journeyman confirm {group.name if group else ''}".rstrip()
    epilog = "\n".join(["\b\nExamples:", *(f"{prefix} {line}" for line in examples)])
    return context.command(group, name, epilog=epilog, **settings)


def parse_details(document: str | None, pairs: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of an action: those of the document, overridden by the single ones."""
    details: dict[str, Any] = {}
    if document is not None:
        if document == files.STANDARD_INPUT or document.startswith("@"):
            document = files.read_text(document.removeprefix("@"), "object with the parameters")
        decoded = _decoded("--details", document)
        if not isinstance(decoded, dict):
            raise click.UsageError('--details must be a JSON object, like {"amount": 100}.')
        details = decoded
    for pair in pairs:
        name, sign, text = pair.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":").strip()
        if not sign or not name:
            raise click.UsageError(
                f"{visible(pair)!r} is not a parameter. Write it as name=text or name:=JSON."
            )
        details[name] = _decoded(f"The value of {visible(name)!r}", text) if is_json else text
    return details


def _decoded(what: str, text: str) -> Any:
    try:
        return read_json(text)
    except InvalidJson as error:
        raise click.UsageError(f"{what} is not valid JSON: {visible(str(error))}.") from error


def agent_client(journeyman: Journeyman, key: str = "") -> "ConfirmClient":
    """Return a client with this key, or else with the agent's token from the settings, if any."""
    return click.get_current_context().with_resource(journeyman.confirm_client(key))


def approver_client(journeyman: Journeyman) -> "ConfirmClient":
    """Return a client with the approver's key, from the settings or a hidden prompt. Raise
    UsageError if there is neither a key nor a terminal.
    """
    key = journeyman.settings.confirm.approver_key
    if not key and not sys.stdin.isatty():
        raise click.UsageError(
            "This needs an approver's key, and none is set. Set JOURNEYMAN_CONFIRM_APPROVER_KEY, "
            "or run the command on a terminal to enter the key."
        )
    key = key or click.prompt("Approver's key", hide_input=True, err=True).strip()
    return agent_client(journeyman, key)


def reader_client(journeyman: Journeyman) -> "ConfirmClient":
    """Return a client for reading: the approver's if a key is set, or if it can be entered because
    no token is set either; else the agent's.
    """
    settings = journeyman.settings.confirm
    is_approver = settings.approver_key or (not settings.token and sys.stdin.isatty())
    return approver_client(journeyman) if is_approver else agent_client(journeyman)


def operator_name() -> str:
    """Return the name of the person at this terminal, for the audit log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # as in some containers
        return "a person at the terminal"
