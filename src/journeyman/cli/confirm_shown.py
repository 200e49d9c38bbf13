"""How confirmations look in the terminal. Everything on a card was written by somebody else: what
could hide in it is shown as an escape, and nothing is cut from the card that is decided on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import shown
from journeyman.cli.shown import Column
from journeyman.confirm.schemas import (
    Card,
    CastVote,
    ListedEntry,
    ListedEvent,
    SubmittedCard,
    Verified,
)
from journeyman.confirm.shown_text import hidden_characters, visible
from journeyman.records.confirmation import Constraint

_WIDE = 100
_LONG = ("digest", "details", "entry", "policy")

STYLES = {
    "pending": "yellow",
    **dict.fromkeys(("approved", "auto_approved", "redeemed"), "green"),
    **dict.fromkeys(("denied", "expired", "cancelled"), "red"),
    **dict.fromkeys(("critical", "forbidden"), "bold red"),
}


def styled(word: str, prefix: str = "") -> Text:
    """A status or a tier in its colour."""
    return Text(word, style=f"{prefix} {STYLES.get(word, '')}".strip(), no_wrap=True)


def show_card(console: Console, card: Card) -> None:
    """A card, whole: first what would run, then what the agent says of it."""
    head = Text(f"{visible(card.short_id)}  {visible(card.action)}  ", style="bold")
    console.print(head.append_text(styled(card.status, "not bold")), soft_wrap=True)
    is_pending, failed = card.status == "pending", card.notice.status == "failed"
    claimed = f', which calls itself "{card.claimed}"' if card.claimed else ""
    minutes, seconds = divmod(round(card.expires_in_s), 60)
    left = f" ({minutes}:{seconds:02} min left)" if is_pending else ""
    notice = f"nobody could be told: {card.notice.error}" if failed else ""
    approvals = f"{card.approvals} of {card.quorum}" if card.quorum > 1 or card.votes else ""
    facts: dict[str, str | Text] = {
        "id": visible(card.id),
        "tier": Text(visible(f"{card.tier}: {card.rule}"), style=STYLES.get(card.tier, "")),
        "asked by": visible(f"{card.requester}{claimed}"),
        "session": visible(card.session_key),
        "asked at": moment(card.created_at),
        "ends at": f"{moment(card.expires_at)}{left}",
        "approvals": "\n".join((approvals, *(_vote(card, vote) for vote in card.votes))),
        "outcome": "" if is_pending else card.outcome,
        "notice": Text(visible(notice), style="yellow"),
    }
    _show_facts(console, facts)
    changed = (("changed by a person to", card.edited), ("bound to it", card.context or None))
    for title, value in (("parameters", card.details), *changed):
        if value is not None:
            show_parameters(console, Text(title, style="bold"), value)
    console.print(Text("the agent says (its own words, not checked)", style="bold"))
    for line in card.description.split("\n"):
        console.print(Text(f"  | {visible(line)}", style="dim"), soft_wrap=True)
    document = _json((card.details, card.edited, card.context))
    texts = (document, card.action, card.description, card.session_key, card.claimed)
    if hidden := sum(map(hidden_characters, texts)):
        warned = f"{shown.many(hidden, 'hidden character')}, shown as escapes like \\u{{202e}}"
        console.print(Text(f"warning: {warned}", style="bold yellow"), soft_wrap=True)
    _show_facts(console, {"digest": visible(card.digest)})


def _vote(card: Card, vote: CastVote) -> str:
    old = "" if vote.digest == card.digest else " (before the parameters were changed)"
    why = f": {vote.reason}" if vote.reason else ""
    return visible(f"{vote.choice} by {vote.approver} over {vote.channel}{why}{old}")


def _show_facts(console: Console, facts: Mapping[str, str | Text]) -> None:
    # Not broken into lines here: the terminal does that, and loses nothing.
    shown.facts(console, {f"  {name}": value for name, value in facts.items()}, width=12)


def show_parameters(console: Console, said: str | Text, details: Mapping[str, Any]) -> None:
    """Parameters as JSON, every character visible, below what is said of them. Only what the layout
    breaks is a new line: JSON has the line breaks of texts as escapes.
    """
    console.print(said)
    text = msgspec.json.format(msgspec.json.encode(details), indent=2).decode()
    for line in text.split("\n"):
        console.print(Text(f"  {visible(line)}"), soft_wrap=True)


def show_vote(console: Console, card: Card) -> None:
    name = visible(card.short_id)
    told = f"{name} {visible(card.action)}: {card.outcome}"
    if card.status == "pending":
        still = f"{card.approvals} of {card.quorum} people have approved it."
        told = f"Your approval of {name} counts. {still}"
    console.print(Text(told), soft_wrap=True)


def show_asked(console: Console, card: Card) -> None:
    head = Text(f"{visible(card.short_id)}  ").append_text(styled(card.status))
    console.print(head.append(f"  {visible(card.action)}"))
    facts = {"id": card.id, "ends": moment(card.expires_at), "decide": visible(card.page_url)}
    shown.facts(console, facts, width=8)
    if isinstance(card, SubmittedCard) and card.shared:
        console.print("An identical request waits already; both have one card.")
    if card.notice.status == "failed":
        console.print(Text(f"Nobody could be told: {visible(card.notice.error)}", style="yellow"))


def show_decided(console: Console, card: Card) -> None:
    console.print(Text(card.outcome, style=STYLES[card.status]))
    if card.edited is not None:
        said = "A person changed the parameters; approved are only these:"
        show_parameters(console, said, card.edited)
        console.print("What was asked for was not approved: ask again with these, or use --edits.")
    elif card.status == "pending":
        console.print(Text(f"Go on waiting: journeyman confirm wait {visible(card.short_id)}"))


def show_grant(console: Console, found: Mapping[str, Any], *, always: bool = False) -> None:
    """What may be done now; `always` with its parameters."""
    card: Card = found["confirmation"]
    console.print(Text(card.outcome, style="green"))
    said = "Do it with exactly these parameters:" if always else ""
    if card.edited is not None:
        said = "A person changed the parameters; do it with these:"
    if said:
        show_parameters(console, said, found["grant"].details)


def show_cards(console: Console, cards: Sequence[Card]) -> None:
    room = max(20, console.width - 80)
    columns = (
        Column("id", lambda card: visible(card.short_id), no_wrap=True),
        Column("asked at", lambda card: moment(card.created_at), no_wrap=True),
        Column("status", lambda card: styled(card.status)),
        Column("action", lambda card: brief(card.action, 30)),
        Column("by", lambda card: brief(card.requester, 20)),
        Column("agent says", lambda card: brief(card.description, room)),
    )
    status = click.get_current_context().params.get("status")
    nothing = f"There is none that is {status}." if status else "Nobody has asked yet."
    shown.listed(console, cards, columns, nothing)


def show_whitelist(console: Console, entries: Sequence[ListedEntry]) -> None:
    columns = (
        Column("id", lambda entry: visible(entry.id), no_wrap=True),
        Column("action", lambda entry: visible(entry.action)),
        Column("only", _limits),
        Column("added by", lambda entry: visible(entry.added_by)),
        Column("ends at", lambda entry: moment(entry.expires_at) if entry.expires_at else "never"),
        Column("uses", lambda entry: entry.uses, number=True),
    )
    shown.listed(console, entries, columns, "Nothing is let through without asking.")


def show_added(console: Console, entry: ListedEntry) -> None:
    ends = "" if entry.expires_at is None else f", until {moment(entry.expires_at)}"
    told = f"Let through from now on: {visible(entry.action)} ({_limits(entry)}{ends})."
    console.print(Text(told))
    console.print(Text(f"Take it back: journeyman confirm whitelist remove {visible(entry.id)}"))


def _limits(entry: ListedEntry) -> str:
    said = [f"session {entry.session_key}"] if entry.session_key else []
    said += [f"agent {entry.requester}"] if entry.requester else []
    said += [_constraint(name, one) for name, one in entry.constraints.items()]
    if entry.constraints and entry.other_parameters:
        said.append("other parameters as they like")
    return "; ".join(map(visible, said)) or "always"


def _constraint(name: str, constraint: Constraint) -> str:
    signs = {"equals": "=", "one_of": " in ", "at_least": ">=", "at_most": "<="}
    values = {sign: getattr(constraint, field) for field, sign in signs.items()}
    return ", ".join(
        f"{name}{sign}{f'{value:g}' if sign in ('>=', '<=') else _json(value)}"
        for sign, value in values.items()
        if value is not None
    )


def show_audit(console: Console, events: Sequence[ListedEvent]) -> None:
    columns = (
        Column("seq", lambda event: event.seq, number=True),
        Column("when", lambda event: moment(event.at), no_wrap=True),
        Column("what", lambda event: event.kind, no_wrap=True),
        Column("who", lambda event: brief(event.actor, 24)),
        Column("card", lambda event: brief(event.confirmation[:6], 6)),
        Column("about", lambda event: brief(_about(event), console.width - 80), needs=_WIDE),
    )
    shown.listed(console, events, columns, "Nothing has happened yet.")


def show_verified(console: Console, found: Verified) -> None:
    where = "" if found.broken_at is None else f" at entry {found.broken_at}"
    told = f"The chain is broken{where}: {visible(found.problem)}"
    if found.ok:
        held = f", held against {visible(found.anchor)}" if found.anchor else ""
        told = f"The chain holds: {shown.counted(found.entries, 'entry', 'entries')}{held}."
    console.print(Text(told, style="green" if found.ok else "red"), soft_wrap=True)
    if found.ok and found.head:
        console.print(Text(f"head {visible(found.head)}"), soft_wrap=True)


def _about(event: ListedEvent) -> str:
    """The short facts of an entry; the long ones are in its JSON."""
    facts = {name: value for name, value in event.about.items() if name not in _LONG and value}
    return ", ".join(
        f"{name} {value if isinstance(value, str) else _json(value)}"
        for name, value in facts.items()
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def brief(text: str, limit: int) -> Text:
    """A text on one line, cut to a length, nothing in it hidden."""
    told = visible(" ".join(text.split()))
    return Text(told if len(told) <= limit else f"{told[: limit - 1]}…")


def moment(at: datetime) -> str:
    return shown.moment(at.timestamp())
