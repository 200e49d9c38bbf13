"""How confirmations look in the terminal. Everything on a card was written by somebody else: what
could hide in it is shown as an escape, and nothing is cut from the card that is decided on.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.confirm.received import Card, ListedEntry, ListedEvent
from journeyman.confirm.shown_text import hidden_characters, visible
from journeyman.records.confirmation import Constraint

STYLES = {
    "pending": "yellow",
    "approved": "green",
    "auto_approved": "green",
    "redeemed": "green",
    "denied": "red",
    "expired": "red",
    "cancelled": "red",
    "critical": "bold red",
    "forbidden": "bold red",
}


def show_card(console: Console, card: Card) -> None:
    """A card, whole: first what would run, then what the agent says of it."""
    for line in _card_lines(card):
        # Not broken into lines here: the terminal does that, and loses nothing.
        console.print(line, soft_wrap=True)


def _card_lines(card: Card) -> Iterator[Text]:
    head = Text(f"{visible(card.short_id)}  ", style="bold")
    head.append(visible(card.action)).append("  ")
    head.append(card.status, style=f"not bold {STYLES.get(card.status, '')}")
    yield head
    yield _field("id", card.id)
    yield _field("tier", f"{card.tier}: {card.rule}", STYLES.get(card.tier, ""))
    claimed = f', which calls itself "{card.claimed}"' if card.claimed else ""
    yield _field("asked by", f"{card.requester}{claimed}")
    if card.session_key:
        yield _field("session", card.session_key)
    yield _field("asked at", moment(card.created_at))
    yield _field("ends at", f"{moment(card.expires_at)}{_left(card)}")
    if card.quorum > 1 or card.votes:
        yield _field("approvals", f"{card.approvals} of {card.quorum}")
    yield from _votes(card)
    if card.status != "pending":
        yield _field("outcome", card.outcome, escape=False)
    if card.notice.status == "failed":
        yield _field("notice", f"nobody could be told: {card.notice.error}", "yellow")
    yield from _parameters(card)
    if card.context:
        yield Text("bound to it", style="bold")
        yield from _object(card.context)
    yield Text("the agent says (its own words, not checked)", style="bold")
    for line in card.description.split("\n"):
        yield Text(f"  | {visible(line)}", style="dim")
    if hidden := _hidden(card):
        warned = f"{shown.many(hidden, 'hidden character')}, shown as escapes like \\u{{202e}}"
        yield Text(f"warning: {warned}", style="bold yellow")
    yield _field("digest", card.digest)


def _parameters(card: Card) -> Iterator[Text]:
    yield Text("parameters", style="bold")
    yield from _object(card.details)
    if card.edited is not None:
        yield Text("changed by a person to", style="bold")
        yield from _object(card.edited)


def _votes(card: Card) -> Iterator[Text]:
    for vote in card.votes:
        old = "" if vote.digest == card.digest else " (before the parameters were changed)"
        why = f": {vote.reason}" if vote.reason else ""
        yield _field("", f"{vote.choice} by {vote.approver} over {vote.channel}{why}{old}")


def _object(value: Mapping[str, Any]) -> Iterator[Text]:
    for line in parameter_lines(value):
        yield Text(f"  {line}")


def parameter_lines(value: Mapping[str, Any]) -> Iterator[str]:
    """Parameters as JSON, every character visible. Only what the layout breaks is a new line: JSON
    has the line breaks of texts as escapes.
    """
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    yield from (visible(line) for line in text.split("\n"))


def _hidden(card: Card) -> int:
    document = msgspec.json.encode((card.details, card.edited, card.context)).decode()
    texts = (document, card.action, card.description, card.session_key, card.claimed)
    return sum(map(hidden_characters, texts))


def _field(name: str, value: str, style: str = "", *, escape: bool = True) -> Text:
    told = visible(value) if escape else value
    return Text(f"  {name:<10}", style="dim").append(told, style=style or "not dim")


def _left(card: Card) -> str:
    if card.status != "pending":
        return ""
    minutes, seconds = divmod(round(card.expires_in_s), 60)
    return f" ({minutes}:{seconds:02} min left)"


def cards_table(cards: Iterable[Card], width: int) -> Table:
    """Cards in lines: enough to find one again."""
    made = shown.table("id", "asked at", "status", "action", "by", "agent says")
    for card in cards:
        made.add_row(
            Text(visible(card.short_id), no_wrap=True),
            Text(moment(card.created_at), no_wrap=True),
            Text(card.status, style=STYLES.get(card.status, ""), no_wrap=True),
            brief(card.action, 30),
            brief(card.requester, 20),
            brief(card.description, max(20, width - 80)),
        )
    return made


def whitelist_table(entries: Iterable[ListedEntry]) -> Table:
    made = shown.table("id", "action", "only", "added by", "ends at", "uses", numbers=("uses",))
    for entry in entries:
        made.add_row(
            Text(visible(entry.id), no_wrap=True),
            Text(visible(entry.action)),
            Text("; ".join(entry_limits(entry)) or "always"),
            Text(visible(entry.added_by)),
            Text("never" if entry.expires_at is None else moment(entry.expires_at)),
            shown.count(entry.uses),
        )
    return made


def entry_limits(entry: ListedEntry) -> Iterator[str]:
    """What an entry of the whitelist is limited to."""
    if entry.session_key:
        yield visible(f"session {entry.session_key}")
    if entry.requester:
        yield visible(f"agent {entry.requester}")
    for name, constraint in entry.constraints.items():
        yield visible(_constraint(name, constraint))
    if entry.constraints and entry.other_parameters:
        yield "other parameters as they like"


def _constraint(name: str, constraint: Constraint) -> str:
    said = []
    if constraint.equals is not None:
        said.append(f"{name}={_json(constraint.equals)}")
    if constraint.one_of is not None:
        said.append(f"{name} in {_json(constraint.one_of)}")
    if constraint.at_least is not None:
        said.append(f"{name}>={constraint.at_least:g}")
    if constraint.at_most is not None:
        said.append(f"{name}<={constraint.at_most:g}")
    return ", ".join(said)


def audit_table(events: Iterable[ListedEvent], width: int) -> Table:
    """What happened; the facts of it where there is room."""
    facts = ("about",) if width >= _WIDE else ()
    made = shown.table("seq", "when", "what", "who", "card", *facts, numbers=("seq",))
    for event in events:
        cells = [
            Text(moment(event.at), no_wrap=True),
            Text(event.kind, no_wrap=True),
            brief(event.actor, 24),
            brief(event.confirmation[:6], 6),
        ]
        if facts:
            cells.append(brief(_about(event), width - 80))
        made.add_row(shown.count(event.seq), *cells)
    return made


_WIDE = 100


def _about(event: ListedEvent) -> str:
    """The short facts of an entry; the long ones are in its JSON."""
    facts = {name: value for name, value in event.about.items() if name not in _LONG and value}
    return ", ".join(
        f"{name} {value if isinstance(value, str) else _json(value)}"
        for name, value in facts.items()
    )


_LONG = ("digest", "details", "entry", "policy")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def brief(text: str, limit: int) -> Text:
    """A text on one line, cut to a length, nothing in it hidden."""
    told = visible(" ".join(text.split()))
    return Text(told if len(told) <= limit else f"{told[: limit - 1]}…")


def moment(at: datetime) -> str:
    return shown.moment(at.timestamp())
