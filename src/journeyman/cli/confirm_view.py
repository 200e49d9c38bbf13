"""Terminal output of confirmations. Their text is untrusted: hidden characters are shown as
escapes, and nothing is truncated on the card that a person decides on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.formatting import Column
from journeyman.confirm.schemas import (
    Card,
    CastVote,
    ListedEntry,
    ListedEvent,
    SubmittedCard,
    Verified,
)
from journeyman.records.confirmation import TIERS, Constraint
from journeyman.text.display import hidden_characters, visible

if TYPE_CHECKING:
    from journeyman.confirm.administration import Login

_STYLES: dict[str, str] = {
    "pending": "yellow",
    **dict.fromkeys(("approved", "auto_approved", "redeemed"), "green"),
    **dict.fromkeys(("denied", "expired", "cancelled"), "red"),
}


def _styled(status: str) -> Text:
    return Text(status, style=_STYLES.get(status, ""))


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(Text(visible(text), style=style), soft_wrap=True)


def show_card(console: Console, card: Card) -> None:
    """Show a card in full: first what would run, then the agent's own words."""
    title = Text(f"{visible(card.short_id)}  {visible(card.action)}  ", style="bold")
    console.print(title.append_text(_styled(card.status)), soft_wrap=True)
    is_pending, tier = card.status == "pending", TIERS[card.tier]
    is_grave = tier.is_strict or tier.is_forbidden
    claimed = f', which calls itself "{card.claimed}"' if card.claimed else ""
    minutes, seconds = divmod(round(card.expires_in_s), 60)
    left = f" ({minutes}:{seconds:02} min left)" if is_pending else ""
    approvals = f"{card.approvals} of {card.quorum}" if card.quorum > 1 or card.votes else ""
    fields: dict[str, str | Text] = {
        "  id": visible(card.id),
        "  tier": Text(visible(f"{card.tier}: {card.rule}"), style="bold red" if is_grave else ""),
        "  requester": visible(f"{card.requester}{claimed}"),
        "  session": visible(card.session_key),
        "  requested": _local_time(card.created_at),
        "  expires": f"{_local_time(card.expires_at)}{left}",
        "  approvals": "\n".join((approvals, *(_vote(card, vote) for vote in card.votes))),
        "  outcome": "" if is_pending else card.outcome,
        "  notice": _notice(card),
        "  digest": visible(card.digest),
    }
    formatting.print_fields(console, fields)
    for heading, value in (("parameters", card.details), ("changed by a person to", card.edited)):
        if value is not None:
            show_parameters(console, heading, value)
    for line in changed_lines(card.approved_details.get("arguments")):
        _print(console, f"  {line}", {"-": "red", "+": "green"}.get(line[:1], ""))
    _print(console, "the agent's own words (not verified)", "bold")
    for line in card.description.split("\n"):
        _print(console, f"  | {line}", "dim")
    texts = (card.action, card.description, card.session_key, card.claimed)
    document = _json((card.details, card.edited))
    if hidden := sum(map(hidden_characters, (document, *texts))):
        characters = formatting.pluralize(hidden, "hidden character")
        warning = f"warning: {characters}, shown as escapes like \\u{{202e}}"
        console.print(Text(warning, style="bold yellow"), soft_wrap=True)


def _notice(card: Card) -> Text:
    is_failed = card.notice.status == "failed"
    problem = f"No notice could be sent: {visible(card.notice.error)}" if is_failed else ""
    return Text(problem, style="yellow")


def changed_lines(arguments: object) -> list[str]:
    """Return the change of a file that a tool's arguments describe, as lines of a diff."""
    if not isinstance(arguments, dict):
        return []
    if isinstance(edits := arguments.get("edits"), list):
        return [line for edit in edits for line in changed_lines(edit)]
    old, new, patch = "", None, ""
    for name, text in arguments.items():
        if isinstance(text, str):
            old = text if name in ("old_string", "oldString") else old
            new = text if name in ("new_string", "newString", "new_source", "content") else new
            patch = text if "*** Begin Patch\n" in text else patch
    if patch or new is None:
        return patch.splitlines()
    before = old.split("\n") if old else []
    return [*unified_diff(before, new.split("\n"), lineterm="")][2:]


def _vote(card: Card, vote: CastVote) -> str:
    old = "" if vote.digest == card.digest else " (before the parameters were changed)"
    why = f": {vote.reason}" if vote.reason else ""
    return visible(f"{vote.choice} by {vote.approver} over {vote.channel}{why}{old}")


def show_parameters(console: Console, title: str, details: Mapping[str, Any]) -> None:
    """Show parameters as JSON below a title, with every character visible. Line breaks come only
    from the layout; those inside texts are escapes in JSON.
    """
    _print(console, title, "bold")
    text = msgspec.json.format(msgspec.json.encode(details), indent=2).decode()
    for line in text.split("\n"):
        _print(console, f"  {line}")


def show_vote(console: Console, card: Card) -> None:
    id_ = visible(card.short_id)
    message = f"{id_} {visible(card.action)}: {card.outcome}"
    if card.status == "pending":
        progress = f"{card.approvals} of {card.quorum} people have approved it."
        message = f"Your approval of {id_} was recorded. {progress}"
    console.print(Text(message), soft_wrap=True)


def show_requested(console: Console, card: Card) -> None:
    title = Text(f"{visible(card.short_id)}  ").append_text(_styled(card.status))
    console.print(title.append(f"  {visible(card.action)}"))
    fields: dict[str, str | Text] = {
        "id": card.id,
        "expires": _local_time(card.expires_at),
        "decide": visible(card.page_url),
        "notice": _notice(card),
    }
    formatting.print_fields(console, fields)
    if isinstance(card, SubmittedCard) and card.shared:
        console.print("An identical request is already waiting; both share one confirmation.")


def show_decided(console: Console, card: Card) -> None:
    console.print(Text(card.outcome, style=_STYLES[card.status]))
    if card.edited is not None:
        title = "A person changed the parameters. Only these were approved:"
        show_parameters(console, title, card.edited)
        console.print("The requested ones were not: request again with these, or use --edits.")
    elif card.status == "pending":
        _print(console, f"To continue waiting: journeyman confirm wait {card.short_id}")


def show_grant(console: Console, granted: Mapping[str, Any]) -> None:
    """Show what is now allowed, with exactly these parameters."""
    card: Card = granted["confirmation"]
    console.print(Text(card.outcome, style="green"))
    changed = "A person changed the parameters. " if card.edited is not None else ""
    title = f"{changed}Use exactly these parameters:"
    show_parameters(console, title, granted["grant"].details)


def show_cards(console: Console, cards: Sequence[Card]) -> None:
    columns = (
        Column("id", lambda card: card.short_id, no_wrap=True),
        Column("requested", lambda card: _local_time(card.created_at), no_wrap=True),
        Column("status", lambda card: _styled(card.status), no_wrap=True),
        Column("action", lambda card: card.action, max_width=20, **formatting.TRUNCATED),
        Column(
            "by",
            lambda card: card.requester,
            min_terminal_width=100,
            max_width=16,
            **formatting.TRUNCATED,
        ),
        Column(
            "description",
            lambda card: formatting.one_line(card.description, console.width),
            ratio=1,
            **formatting.TRUNCATED,
        ),
    )
    formatting.print_table(console, cards, columns, "There are no such confirmations.")


def show_whitelist(console: Console, entries: Sequence[ListedEntry]) -> None:
    columns = (
        Column("id", lambda entry: entry.id, no_wrap=True),
        Column("action", lambda entry: visible(entry.action)),
        Column("only", _limits),
        Column("added by", lambda entry: entry.added_by),
        Column("expires", lambda entry: _local_time(entry.expires_at) or "never"),
        Column("uses", lambda entry: entry.uses, numeric=True),
    )
    if_empty = "The whitelist is empty: no action is allowed without approval."
    formatting.print_table(console, entries, columns, if_empty)


def show_added(console: Console, entry: ListedEntry) -> None:
    until = "" if entry.expires_at is None else f", until {_local_time(entry.expires_at)}"
    message = f"Allowed without approval: {visible(entry.action)} ({_limits(entry)}{until})."
    console.print(Text(message))
    _print(console, f"To undo this: journeyman confirm whitelist remove {entry.id}")


def _limits(entry: ListedEntry) -> str:
    limits = [f"session {entry.session_key}"] if entry.session_key else []
    limits += [f"agent {entry.requester}"] if entry.requester else []
    limits += [_constraint(name, constraint) for name, constraint in entry.constraints.items()]
    if entry.constraints and entry.other_parameters:
        limits.append("any other parameters")
    return "; ".join(map(visible, limits)) or "always"


def _constraint(name: str, constraint: Constraint) -> str:
    signs = {"equals": "=", "one_of": " in ", "at_least": ">=", "at_most": "<="}
    stated = msgspec.to_builtins(constraint).items()
    return ", ".join(f"{name}{signs[field]}{_json(value)}" for field, value in stated)


def show_audit(console: Console, events: Sequence[ListedEvent]) -> None:
    columns = (
        Column("seq", lambda event: event.seq, numeric=True),
        Column("when", lambda event: _local_time(event.at), no_wrap=True),
        Column("event", lambda event: event.kind, no_wrap=True),
        Column("who", lambda event: formatting.one_line(event.actor, 24)),
        Column("id", lambda event: event.confirmation[:6]),
    )
    formatting.print_table(console, events, columns, "There are no events yet.")


def show_verified(console: Console, verified: Verified) -> None:
    if not verified.ok:
        where = "" if verified.broken_at is None else f" at entry {verified.broken_at}"
        _print(console, f"The chain is broken{where}: {verified.problem}", "red")
        return
    checked = f", checked against {verified.anchor}" if verified.anchor else ""
    entries = formatting.pluralize(verified.entries, "entry", "entries")
    _print(console, f"The chain is intact: {entries}{checked}.", "green")
    if verified.head:
        _print(console, f"head {verified.head}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _local_time(at: datetime | None) -> str:
    return "" if at is None else formatting.local_time(at.timestamp())


def show_first_login(login: "Login | None") -> None:
    """Show, once, how the first approver logs in; nothing if there are approvers already."""
    if login is not None:
        click.echo(
            f"\nThe approver {visible(login.name)} was created. Shown only once:\n"
            f"  key   {login.key}\n"
            f"  link  {login.link}\n"
            "The link logs in on the page once and expires soon; the key works at any time. Keep\n"
            "both away from agents. Give each agent a token: journeyman confirm token add NAME"
        )
