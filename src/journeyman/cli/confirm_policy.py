"""`journeyman confirm policy`: what needs a person, by the file that says so."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from journeyman.cli import asked, confirm_shown, shown
from journeyman.confirm.shown_text import visible

if TYPE_CHECKING:
    from journeyman.confirm.policy import Policy, Rule


@click.group(
    epilog="""\b
Examples:
  journeyman confirm policy show
  journeyman confirm policy show deploy_production
  journeyman confirm policy check confirm.toml"""
)
def policy() -> None:
    """Show the policy, and check a file before it is used."""


@policy.command(
    epilog="""\b
Examples:
  journeyman confirm policy show
  journeyman confirm policy show pay_invoice
  journeyman confirm policy show --json"""
)
@click.argument("action", required=False)
@asked.json_option
@click.pass_context
def show(ctx: click.Context, *, action: str | None, as_json: bool) -> None:
    """Show the rules, or what they say about ACTION."""
    found = asked.opened(ctx).confirmations.policy()
    if action is not None:
        _show_rule(found, action, as_json=as_json)
    elif as_json:
        asked.print_json({**found.describe(), "digest": found.digest})
    else:
        _show_policy(found)


@policy.command(
    epilog="""\b
Examples:
  journeyman confirm policy check
  journeyman confirm policy check confirm.toml"""
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@asked.json_option
@click.pass_context
def check(ctx: click.Context, *, file: Path | None, as_json: bool) -> None:
    """Check FILE, or the file of the settings, without using it."""
    found = asked.opened(ctx).confirmations.policy(file)
    if as_json:
        asked.print_json({"ok": True, "rules": len(found.rules), "digest": found.digest})
    else:
        click.echo(f"The policy can be used: {shown.many(len(found.rules), 'rule')}.")


def _show_policy(found: "Policy") -> None:
    console = shown.console()
    if found.rules:
        made = shown.table("action", "tier", "people", "limit", "by", "reason", numbers=("people",))
        for rule in found.rules:
            made.add_row(
                Text(visible(rule.action)),
                Text(rule.tier, style=confirm_shown.STYLES.get(rule.tier, "")),
                shown.count(rule.quorum),
                f"{found.rate_limit_of(rule)} an hour",
                ", ".join(rule.channels) or "any way",
                Text(visible(rule.reason)),
            )
        console.print(made)
    else:
        console.print("There are no rules: people are asked about everything.")
    console.print(Text("Never let through without a person", style="bold"))
    console.print(Text(visible(", ".join(found.never_bypass))))
    console.print(
        f"An agent may ask {found.requester_limit} times an hour. An approval is good for "
        f"{found.redeem_within_s} seconds."
    )


def _show_rule(found: "Policy", action: str, *, as_json: bool) -> None:
    rule = found.rule_for(action)
    told: dict[str, Any] = {
        "action": action,
        "tier": rule.tier,
        "why": rule.why,
        "quorum": rule.quorum,
        "rate_limit": found.rate_limit_of(rule),
        "channels": rule.channels,
        "edits": rule.edits,
        "self_approval": rule.self_approval,
        "second_factor": rule.second_factor,
        "file_params": rule.file_params,
    }
    if as_json:
        asked.print_json(told)
        return
    console = shown.console()
    head = Text(f"{visible(action)}  ", style="bold")
    console.print(head.append(rule.tier, style=confirm_shown.STYLES.get(rule.tier, "not bold")))
    for name, value in (
        ("why", visible(rule.why)),
        ("people", str(rule.quorum)),
        ("limit", f"{found.rate_limit_of(rule)} an hour"),
        ("by", ", ".join(rule.channels)),
        ("changes", _changes(rule)),
        ("code", "needed" if rule.second_factor else "not needed"),
    ):
        console.print(Text(f"  {name:<9}", style="dim").append(value, style="not dim"))


def _changes(rule: "Rule") -> str:
    if isinstance(rule.edits, bool):
        return "all parameters may be changed" if rule.edits else "none"
    return visible(", ".join(rule.edits))
