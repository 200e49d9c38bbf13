"""`journeyman confirm whitelist`: what is let through without asking."""

import click
from rich.text import Text

from journeyman.cli import asked, confirm_given, confirm_shown, shown
from journeyman.confirm.shown_text import visible


@click.group(
    epilog="""\b
Examples:
  journeyman confirm whitelist list
  journeyman confirm whitelist add pay_invoice --where "amount>=0" --where "amount<=100" --for 2h
  journeyman confirm whitelist remove 8c1d2e3f"""
)
def whitelist() -> None:
    """List, add and remove what is let through without asking.

    Only an approver can. Some actions are never let through, whatever stands here; `journeyman
    confirm policy show` names them.
    """


@whitelist.command(
    "list",
    epilog="""\b
Examples:
  journeyman confirm whitelist list
  journeyman confirm whitelist list --json""",
)
@asked.json_option
@click.pass_context
def list_(ctx: click.Context, *, as_json: bool) -> None:
    """List what is let through, and how often it was."""
    entries = confirm_given.approver(ctx).whitelist()
    if as_json:
        asked.print_json(entries)
    elif entries:
        shown.console().print(confirm_shown.whitelist_table(entries))
    else:
        click.echo("Nothing is let through without asking.")


@whitelist.command(
    epilog="""\b
Examples:
  journeyman confirm whitelist add read_calendar
  journeyman confirm whitelist add pay_invoice --where "amount>=0" --where "amount<=100" --for 2h
  journeyman confirm whitelist add deploy --where 'to in ["test","stage"]' --others --agent ci"""
)
@click.argument("action")
@click.option(
    "--where",
    "wheres",
    multiple=True,
    metavar="CONSTRAINT",
    help='Only with such a parameter: name=value, name<=10, name>=1, name in ["a","b"].',
)
@click.option("--others", is_flag=True, help="Parameters without a constraint may be there too.")
@click.option("--session", default="", metavar="NAME", help="Only in this session.")
@click.option("--agent", default="", metavar="NAME", help="Only for this agent.")
@click.option(
    "--for",
    "lasts_s",
    callback=confirm_given.duration,
    metavar="TIME",
    help="How long, like 15m, 2h or 7d (default: until it is removed).",
)
@click.option("--reason", default="", help="Why; it stands in the audit log.")
@asked.json_option
@click.pass_context
def add(
    ctx: click.Context,
    *,
    action: str,
    wheres: tuple[str, ...],
    others: bool,
    session: str,
    agent: str,
    lasts_s: int | None,
    reason: str,
    as_json: bool,
) -> None:
    """Let ACTION through without asking, by its exact name.

    Without --where it is let through with any parameters. With it, every constraint must hold and
    no other parameter may be there, unless --others says so.
    """
    # Loaded here because its libraries are an extra, and help needs none of them.
    from journeyman.confirm.whitelist import parse_constraints  # noqa: PLC0415

    constraints = parse_constraints(wheres)
    entry = confirm_given.approver(ctx).add_to_whitelist(
        action,
        session_key=session,
        requester=agent,
        constraints=constraints,
        other_parameters=others,
        expires_in_s=lasts_s,
        reason=reason,
    )
    if as_json:
        asked.print_json(entry)
        return
    limits = "; ".join(confirm_shown.entry_limits(entry)) or "always"
    ends = "" if entry.expires_at is None else f", until {confirm_shown.moment(entry.expires_at)}"
    told = f"Let through from now on: {visible(entry.action)} ({limits}{ends})."
    shown.console().print(Text(told))
    click.echo(f"Take it back: journeyman confirm whitelist remove {visible(entry.id)}")


@whitelist.command(
    epilog="""\b
Examples:
  journeyman confirm whitelist remove 8c1d2e3f"""
)
@click.argument("id_", metavar="ID")
@asked.json_option
@click.pass_context
def remove(ctx: click.Context, *, id_: str, as_json: bool) -> None:
    """Take an entry back: people are asked again."""
    entry = confirm_given.approver(ctx).revoke(id_)
    if as_json:
        asked.print_json(entry)
    else:
        click.echo(f"Removed: people are asked again about {visible(entry.action)}.")
