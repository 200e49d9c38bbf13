"""`journeyman confirm whitelist`, `audit` and `policy`: what is let through without asking, what
happened and whether the record of it is whole, and what needs a person.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, confirm_given, confirm_shown, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.confirm_cards import limit_option
from journeyman.cli.confirm_given import command, ending, id_argument
from journeyman.cli.shown import Column
from journeyman.confirm.schemas import ListedEntry, ListedEvent, Verified
from journeyman.confirm.shown_text import visible
from journeyman.journeyman import Journeyman

if TYPE_CHECKING:
    from journeyman.confirm.audit import Format
    from journeyman.confirm.policy import Policy


@click.group(
    epilog=ending(
        None,
        "whitelist list",
        'whitelist add pay_invoice --where "amount>=0" --where "amount<=100" --for 2h',
        "whitelist remove 8c1d2e3f",
    )
)
def whitelist() -> None:
    """List, add and remove what is let through without asking.

    Only an approver can. Some actions are never let through, whatever stands here; `journeyman
    confirm policy show` names them.
    """


@command(whitelist, "list", "list --json", shows=confirm_shown.show_whitelist)
def list_entries(journeyman: Journeyman) -> list[ListedEntry]:
    """List what is let through, and how often it was."""
    return confirm_given.approver(journeyman).whitelist()


@command(
    whitelist,
    "add read_calendar",
    'add pay_invoice --where "amount>=0" --where "amount<=100" --for 2h',
    'add deploy --where \'to in ["test","stage"]\' --others --agent ci',
    shows=confirm_shown.show_added,
)
@click.argument("action")
@option(
    "--where CONSTRAINT",
    'Only with such a parameter: name=value, name<=10, name>=1, name in ["a","b"].',
    to="wheres",
    multiple=True,
)
@flag("--others", "Parameters without a constraint may be there too.", to="other_parameters")
@option("--session NAME", "Only in this session.", to="session_key", default="")
@option("--agent NAME", "Only for this agent.", to="requester", default="")
@option(
    "--for TIME",
    "How long, like 15m, 2h or 7d (default: until it is removed).",
    to="expires_in_s",
    callback=asked.seconds,
)
@option("--reason", "Why; it stands in the audit log.", default="")
def add(
    journeyman: Journeyman, *, action: str, wheres: tuple[str, ...], **limits: Any
) -> ListedEntry:
    """Let ACTION through without asking, by its exact name.

    Without --where it is let through with any parameters. With it, every constraint must hold and
    no other parameter may be there, unless --others says so.
    """
    # Loaded here because its libraries are an extra, and help needs none of them.
    from journeyman.confirm.whitelist import parse_constraints  # noqa: PLC0415

    lasts = limits["expires_in_s"]
    limits |= {"constraints": parse_constraints(wheres), "expires_in_s": lasts and round(lasts)}
    return confirm_given.approver(journeyman).add_to_whitelist(action, **limits)


@command(
    whitelist,
    "remove 8c1d2e3f",
    says=lambda entry: f"Removed: people are asked again about {visible(entry.action)}.",
)
@id_argument
def remove(journeyman: Journeyman, *, id_: str) -> ListedEntry:
    """Take an entry back: people are asked again."""
    return confirm_given.approver(journeyman).revoke(id_)


@click.group(
    epilog=ending(
        None, "audit list --limit 20", "audit verify", "audit export --format csv > audit.csv"
    )
)
def audit() -> None:
    """List, check and export the audit log.

    Each entry holds the digest of the one before, and the last digest is kept outside the
    database too: an entry that was changed, or cut off, is noticed. It is not proof against
    somebody who can write to both places.
    """


@command(audit, "list", "list --confirmation 5f0c2d… --json", shows=confirm_shown.show_audit)
@limit_option
@option("--confirmation ID", "Only of this one, by its whole id.", default="")
def list_events(journeyman: Journeyman, **chosen: Any) -> list[ListedEvent]:
    """List what happened, newest first. The service is asked, with an approver's key."""
    return confirm_given.approver(journeyman).audit(**chosen)


@command(
    audit,
    "verify",
    "verify --anchor 812:9a1b… --json",
    shows=confirm_shown.show_verified,
    fails=lambda found: not found.ok,
)
@option(
    "--anchor SEQ:DIGEST", "An entry that is known from elsewhere, such as a notice.", default=""
)
def verify(journeyman: Journeyman, *, anchor: str) -> Verified:
    """Check the chain in the database, and name the first broken link."""
    return journeyman.confirmations.verify_audit(anchor)


@command(audit, "export > audit.jsonl", "export --format csv > audit.csv", has_json=False)
@option(
    "--format",
    "One JSON object a line, with which the chain can be checked, or a table.",
    to="form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
)
def export(journeyman: Journeyman, *, form: "Format") -> None:
    """Write the whole audit log to standard output, oldest first."""
    # As it is for a file; on a terminal nothing in it may be obeyed.
    clean = asked.escaped if sys.stdout.isatty() else str
    for line in journeyman.confirmations.export_audit(form):
        click.echo(clean(line), nl=False)


@command(audit, "reset", "reset --yes", has_json=False, fails=lambda found: not found.ok)
@flag("--yes", "Do not ask.")
def reset(journeyman: Journeyman, *, yes: bool) -> Verified:
    """Accept the log as it is now, after it was found cut off.

    Needed when the database was restored from a backup: the digest that is kept outside is set to
    the last entry there is. That is written to the log.
    """
    if not yes:
        question = "Accept the log as it is now? What is missing will no longer be noticed."
        click.confirm(question, abort=True, err=True)
    journeyman.confirmations.reset_anchor(confirm_given.person())
    found = journeyman.confirmations.verify_audit()
    no = f"The end is accepted, but the chain does not hold: {visible(found.problem)}"
    click.echo("Accepted; that stands in the log." if found.ok else no)
    return found


@click.group(
    epilog=ending(None, "policy show", "policy show deploy_production", "policy check confirm.toml")
)
def policy() -> None:
    """Show the policy, and check a file before it is used."""


@command(policy, "show", "show pay_invoice", "show --json")
@click.argument("action", required=False)
def show(journeyman: Journeyman, *, action: str | None, as_json: bool) -> None:
    """Show the rules, or what they say about ACTION."""
    found = journeyman.confirmations.policy()
    if action is not None:
        _show_rule(found, action, as_json=as_json)
    elif as_json:
        asked.print_json({**found.describe(), "digest": found.digest})
    else:
        _show_policy(shown.console(), found)


@command(
    policy,
    "check",
    "check confirm.toml",
    says=lambda found: f"The policy can be used: {shown.many(found['rules'], 'rule')}.",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
def check(journeyman: Journeyman, *, file: Path | None) -> dict[str, Any]:
    """Check FILE, or the file of the settings, without using it."""
    found = journeyman.confirmations.policy(file)
    return {"ok": True, "rules": len(found.rules), "digest": found.digest}


def _show_policy(console: Console, found: "Policy") -> None:
    columns = (
        Column("action", lambda rule: visible(rule.action)),
        Column("tier", lambda rule: confirm_shown.styled(rule.tier)),
        Column("people", lambda rule: rule.quorum, number=True),
        Column("limit", lambda rule: f"{found.rate_limit_of(rule)} an hour"),
        Column("by", lambda rule: ", ".join(rule.channels) or "any way"),
        Column("reason", lambda rule: visible(rule.reason)),
    )
    nothing = "There are no rules: people are asked about everything."
    shown.listed(console, found.rules, columns, nothing)
    console.print(Text("Never let through without a person", style="bold"))
    console.print(Text(visible(", ".join(found.never_bypass))))
    console.print(
        f"An agent may ask {found.requester_limit} times an hour. An approval is good for "
        f"{found.redeem_within_s} seconds."
    )


def _show_rule(found: "Policy", action: str, *, as_json: bool) -> None:
    rule = found.rule_for(action)
    limit = found.rate_limit_of(rule)
    if as_json:
        names = ("tier", "why", "quorum", "channels", "edits", "self_approval", "second_factor")
        told = {name: getattr(rule, name) for name in (*names, "file_params")}
        asked.print_json({"action": action, "rate_limit": limit, **told})
        return
    console = shown.console()
    head = Text(f"{visible(action)}  ", style="bold")
    console.print(head.append_text(confirm_shown.styled(rule.tier, "not bold")))
    changes = "all parameters may be changed" if rule.edits else "none"
    facts = {
        "why": visible(rule.why),
        "people": str(rule.quorum),
        "limit": f"{limit} an hour",
        "by": ", ".join(rule.channels),
        "changes": changes if isinstance(rule.edits, bool) else visible(", ".join(rule.edits)),
        "code": "needed" if rule.second_factor else "not needed",
    }
    shown.facts(console, {f"  {name}": value for name, value in facts.items()}, width=11, wrap=True)


COMMANDS = (whitelist, audit, policy)
