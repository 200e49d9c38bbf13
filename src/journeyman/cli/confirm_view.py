"""Terminal output of confirmations. Their text is untrusted: hidden characters are shown as
escapes, and nothing is truncated on the card that a person decides on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from typing import Any

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
from journeyman.text import truncation
from journeyman.text.display import hidden_characters, visible

STYLES: dict[str, str] = {
    "pending": "yellow",
    **dict.fromkeys(("approved", "auto_approved", "redeemed"), "green"),
    **dict.fromkeys(("denied", "expired", "cancelled"), "red"),
    **{tier: "bold red" for tier, traits in TIERS.items() if traits.is_strict},
    **{tier: "bold red" for tier, traits in TIERS.items() if traits.is_forbidden},
}


def styled(word: str, prefix: str = "") -> Text:
    """Return a status or tier in its colour."""
    return Text(word, style=f"{prefix} {STYLES.get(word, '')}".strip(), no_wrap=True)


def show_card(console: Console, card: Card) -> None:
    """Show a card in full: first what would run, then the agent's own words."""
    title = Text(f"{visible(card.short_id)}  {visible(card.action)}  ", style="bold")
    console.print(title.append_text(styled(card.status, "not bold")), soft_wrap=True)
    is_pending, failed = card.status == "pending", card.notice.status == "failed"
    claimed = f', which calls itself "{card.claimed}"' if card.claimed else ""
    minutes, seconds = divmod(round(card.expires_in_s), 60)
    left = f" ({minutes}:{seconds:02} min left)" if is_pending else ""
    notice = f"no notice could be sent: {card.notice.error}" if failed else ""
    approvals = f"{card.approvals} of {card.quorum}" if card.quorum > 1 or card.votes else ""
    fields: dict[str, str | Text] = {
        "id": visible(card.id),
        "tier": Text(visible(f"{card.tier}: {card.rule}"), style=STYLES.get(card.tier, "")),
        "requester": visible(f"{card.requester}{claimed}"),
        "session": visible(card.session_key),
        "requested": local_time(card.created_at),
        "expires": f"{local_time(card.expires_at)}{left}",
        "approvals": "\n".join((approvals, *(_vote(card, vote) for vote in card.votes))),
        "outcome": "" if is_pending else card.outcome,
        "notice": Text(visible(notice), style="yellow"),
    }
    _show_fields(console, fields)
    for heading, value in (("parameters", card.details), ("changed by a person to", card.edited)):
        if value is not None:
            show_parameters(console, Text(heading, style="bold"), value)
    for line in changed_lines(card.approved_details.get("arguments")):
        style = {"-": "red", "+": "green"}.get(line[:1], "")
        console.print(Text(f"  {visible(line)}", style=style), soft_wrap=True)
    console.print(Text("the agent's own words (not verified)", style="bold"))
    for line in card.description.split("\n"):
        console.print(Text(f"  | {visible(line)}", style="dim"), soft_wrap=True)
    document = _json((card.details, card.edited))
    texts = (document, card.action, card.description, card.session_key, card.claimed)
    if hidden := sum(map(hidden_characters, texts)):
        hidden_text = (
            f"{formatting.pluralize(hidden, 'hidden character')}, shown as escapes like \\u{{202e}}"
        )
        console.print(Text(f"warning: {hidden_text}", style="bold yellow"), soft_wrap=True)
    _show_fields(console, {"digest": visible(card.digest)})


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


def _show_fields(console: Console, fields: Mapping[str, str | Text]) -> None:
    # The terminal wraps the lines, which loses nothing.
    formatting.print_fields(
        console, {f"  {name}": value for name, value in fields.items()}, width=12
    )


def show_parameters(console: Console, title: str | Text, details: Mapping[str, Any]) -> None:
    """Show parameters as JSON below a title, with every character visible. Line breaks come only
    from the layout; those inside texts are escapes in JSON.
    """
    console.print(title)
    text = msgspec.json.format(msgspec.json.encode(details), indent=2).decode()
    for line in text.split("\n"):
        console.print(Text(f"  {visible(line)}"), soft_wrap=True)


def show_vote(console: Console, card: Card) -> None:
    id_ = visible(card.short_id)
    message = f"{id_} {visible(card.action)}: {card.outcome}"
    if card.status == "pending":
        progress = f"{card.approvals} of {card.quorum} people have approved it."
        message = f"Your approval of {id_} was recorded. {progress}"
    console.print(Text(message), soft_wrap=True)


def show_requested(console: Console, card: Card) -> None:
    title = Text(f"{visible(card.short_id)}  ").append_text(styled(card.status))
    console.print(title.append(f"  {visible(card.action)}"))
    fields = {
        "id": card.id,
        "expires": local_time(card.expires_at),
        "decide": visible(card.page_url),
    }
    formatting.print_fields(console, fields, width=9)
    if isinstance(card, SubmittedCard) and card.shared:
        console.print("An identical request is already waiting; both share one confirmation.")
    if card.notice.status == "failed":
        console.print(
            Text(f"No notice could be sent: {visible(card.notice.error)}", style="yellow")
        )


def show_decided(console: Console, card: Card) -> None:
    console.print(Text(card.outcome, style=STYLES[card.status]))
    if card.edited is not None:
        title = "A person changed the parameters. Only these were approved:"
        show_parameters(console, title, card.edited)
        console.print("The requested ones were not: request again with these, or use --edits.")
    elif card.status == "pending":
        console.print(
            Text(f"To continue waiting: journeyman confirm wait {visible(card.short_id)}")
        )


def show_grant(console: Console, granted: Mapping[str, Any], *, always: bool = False) -> None:
    """Show what is now allowed; the parameters are shown if they were changed, or `always`."""
    card: Card = granted["confirmation"]
    console.print(Text(card.outcome, style="green"))
    title = "Use exactly these parameters:" if always else ""
    if card.edited is not None:
        title = "A person changed the parameters. Use these:"
    if title:
        show_parameters(console, title, granted["grant"].details)


def show_cards(console: Console, cards: Sequence[Card]) -> None:
    room = max(20, console.width - 80)
    columns = (
        Column("id", lambda card: visible(card.short_id), no_wrap=True),
        Column("requested", lambda card: local_time(card.created_at), no_wrap=True),
        Column("status", lambda card: styled(card.status)),
        Column("action", lambda card: truncate(card.action, 30)),
        Column("by", lambda card: truncate(card.requester, 20)),
        Column("description", lambda card: truncate(card.description, room)),
    )
    formatting.print_table(console, cards, columns, "There are no such confirmations.")


def show_whitelist(console: Console, entries: Sequence[ListedEntry]) -> None:
    columns = (
        Column("id", lambda entry: visible(entry.id), no_wrap=True),
        Column("action", lambda entry: visible(entry.action)),
        Column("only", _limits),
        Column("added by", lambda entry: visible(entry.added_by)),
        Column(
            "expires", lambda entry: local_time(entry.expires_at) if entry.expires_at else "never"
        ),
        Column("uses", lambda entry: entry.uses, numeric=True),
    )
    formatting.print_table(
        console, entries, columns, "The whitelist is empty: no action is allowed without approval."
    )


def show_added(console: Console, entry: ListedEntry) -> None:
    until = "" if entry.expires_at is None else f", until {local_time(entry.expires_at)}"
    message = f"Allowed without approval: {visible(entry.action)} ({_limits(entry)}{until})."
    console.print(Text(message))
    console.print(Text(f"To undo this: journeyman confirm whitelist remove {visible(entry.id)}"))


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
        Column("when", lambda event: local_time(event.at), no_wrap=True),
        Column("event", lambda event: event.kind, no_wrap=True),
        Column("who", lambda event: truncate(event.actor, 24)),
        Column("id", lambda event: truncate(event.confirmation[:6], 6)),
    )
    formatting.print_table(console, events, columns, "There are no events yet.")


def show_verified(console: Console, verified: Verified) -> None:
    where = "" if verified.broken_at is None else f" at entry {verified.broken_at}"
    message = f"The chain is broken{where}: {visible(verified.problem)}"
    if verified.ok:
        checked = f", checked against {visible(verified.anchor)}" if verified.anchor else ""
        entries = formatting.pluralize(verified.entries, "entry", "entries")
        message = f"The chain is intact: {entries}{checked}."
    console.print(Text(message, style="green" if verified.ok else "red"), soft_wrap=True)
    if verified.ok and verified.head:
        console.print(Text(f"head {visible(verified.head)}"), soft_wrap=True)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def truncate(text: str, limit: int) -> Text:
    """Return text on one line, truncated, with hidden characters visible."""
    return Text(truncation.one_line(visible(text), limit))


def local_time(at: datetime) -> str:
    return formatting.local_time(at.timestamp())
