"""`journeyman confirm whitelist` and `audit`: actions that need no approval, and the record of all
events and its verification.
"""

import sys
from collections.abc import Sequence
from typing import Any

import click

from journeyman.cli import confirm_options, confirm_view, context
from journeyman.cli.confirm_cards import limit_option
from journeyman.cli.confirm_options import command, id_argument
from journeyman.cli.context import flag, option
from journeyman.confirm.schemas import ListedEntry, ListedEvent, Verified
from journeyman.facade.journeyman import Journeyman
from journeyman.text.display import visible


@click.group()
def whitelist() -> None:
    """List, add and remove actions that are allowed without asking for approval.

    This needs an approver's key. Some actions always need approval, regardless of the whitelist;
    the page names them.
    """


@command(whitelist, "list", "list --json", render=confirm_view.show_whitelist)
def list_entries(journeyman: Journeyman) -> Sequence[ListedEntry]:
    """List the entries of the whitelist, and how often each was used."""
    return confirm_options.approver_client(journeyman).whitelist()


@command(
    whitelist,
    'add pay_invoice --where "amount>=0" --where "amount<=100" --for 2h',
    'add deploy --where \'to in ["test","stage"]\' --others --agent ci',
    render=confirm_view.show_added,
)
@click.argument("action")
@option(
    "--where CONSTRAINT",
    'Constraint on a parameter: name=value, name<=10, name>=1, name in ["a","b"].',
    dest="wheres",
    multiple=True,
)
@flag("--others", "Allow parameters that have no constraint.", dest="other_parameters")
@option("--session NAME", "Only in this session.", dest="session_key", default="")
@option("--agent NAME", "Only for this agent.", dest="requester", default="")
@option(
    "--for TIME",
    "Time until the entry expires, like 15m, 2h or 7d (default: never).",
    dest="expires_in_s",
    callback=context.parse_duration,
)
@option("--reason", "Reason for the audit log.", default="")
def add(
    journeyman: Journeyman, *, action: str, wheres: tuple[str, ...], **limits: Any
) -> ListedEntry:
    """Allow ACTION, by its exact name, without asking for approval.

    Without --where, all parameters are allowed. With it, every constraint must hold and no other
    parameter is allowed, unless you pass --others.
    """
    # Imported here because its libraries are an optional extra that help does not need.
    from journeyman.confirm.whitelist import parse_constraints  # noqa: PLC0415

    if limits["expires_in_s"]:
        limits["expires_in_s"] = round(limits["expires_in_s"])
    client = confirm_options.approver_client(journeyman)
    return client.add_to_whitelist(action, constraints=parse_constraints(wheres), **limits)


@command(
    whitelist,
    "remove 8c1d2e3f",
    message=lambda entry: f"Removed: {visible(entry.action)} needs approval again.",
)
@id_argument
def remove(journeyman: Journeyman, *, id_: str) -> ListedEntry:
    """Remove an entry: the action needs approval again."""
    return confirm_options.approver_client(journeyman).revoke(id_)


@click.group()
def audit() -> None:
    """List, verify and export the audit log.

    Each entry contains the digest of the one before, and the last digest is also stored outside
    the database, so changed or missing entries are detected. This does not protect against someone
    who can write to both places.
    """


@command(audit, "list", "list --confirmation 5f0c2d… --json", render=confirm_view.show_audit)
@limit_option
@option("--confirmation ID", "Only events of this confirmation, by its full id.", default="")
def list_events(journeyman: Journeyman, **filters: Any) -> Sequence[ListedEvent]:
    """List events, newest first. This queries the service with an approver's key."""
    return confirm_options.approver_client(journeyman).audit(**filters)


@command(
    audit,
    "verify",
    "verify --anchor 812:9a1b… --json",
    render=confirm_view.show_verified,
    is_failure=lambda verified: not verified.ok,
)
@option(
    "--anchor SEQ:DIGEST",
    "Entry known from elsewhere, such as a notice, to check against.",
    default="",
)
def verify(journeyman: Journeyman, *, anchor: str) -> Verified:
    """Verify the chain of entries in the database, and report the first broken link."""
    return journeyman.confirmations.verify_audit(anchor)


@command(audit, "export > audit.jsonl", has_json=False)
def export(journeyman: Journeyman) -> None:
    """Write the whole audit log to standard output as JSON lines, oldest first."""
    # Unchanged in a file; escaped on a terminal, which could otherwise be controlled by it.
    escape = context.escape_json if sys.stdout.isatty() else str
    for line in journeyman.confirmations.export_audit():
        click.echo(escape(line), nl=False)


@command(audit, "reset", "reset --yes", has_json=False, is_failure=lambda verified: not verified.ok)
@context.yes_option
def reset(journeyman: Journeyman, *, yes: bool) -> Verified:
    """Accept the log as it is now, after entries at its end were found missing.

    Needed after the database was restored from a backup: sets the digest stored outside the
    database to the last existing entry. The reset itself is recorded in the log.
    """
    if not yes:
        question = "Accept the log as it is now? Missing entries will no longer be detected."
        click.confirm(question, abort=True, err=True)
    journeyman.confirmations.reset_anchor(confirm_options.operator_name())
    verified = journeyman.confirmations.verify_audit()
    broken = f"The end is accepted, but the chain is broken: {visible(verified.problem)}"
    click.echo("Accepted. The reset is recorded in the log." if verified.ok else broken)
    return verified


COMMANDS = (whitelist, audit)
