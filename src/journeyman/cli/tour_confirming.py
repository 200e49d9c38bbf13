"""The part of the tour in which a risky action waits for a person: a real service, a real client,
and what becomes of everything that an agent might try.
"""

import io
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.journeyman import Journeyman
from journeyman.records.errors import ConfirmationRefused, MissingPart

ACTION = "transfer_funds"
DETAILS = {"to": "ACME", "amount": 4200}
CHANGED = {**DETAILS, "amount": 9000}


def show_confirming(console: Console, folder: Path) -> None:
    """What happens, line by line."""
    lines = Table.grid(padding=(0, 2))
    try:
        for who, what, is_good in confirming(folder):
            lines.add_row(Text(who, style="bold"), Text(what, style="" if is_good else "red"))
    except MissingPart as missing:
        console.print(Text(str(missing)))
    console.print(lines)


def told_confirming(folder: Path) -> list[dict[str, str]]:
    """The same as data."""
    try:
        return [{"who": who, "what": what} for who, what, _ in confirming(folder)]
    except MissingPart as missing:
        return [{"missing": str(missing)}]


def confirming(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Who does what, what comes of it, and whether it was let through."""
    environ = {
        "HOME": str(folder),
        "JOURNEYMAN_CONFIRM_PORT": "0",
        "JOURNEYMAN_CONFIRM_PAGE_PORT": "0",
    }
    home = folder / "confirm"
    with Journeyman(home=home, environ=environ) as journeyman:
        desk = journeyman.confirmations
        _, token = desk.add_agent("bookkeeper")
        _, key = desk.add_approver("ana")
        with desk.served(terminal=io.StringIO()) as started:
            ways = environ | {"JOURNEYMAN_CONFIRM_URL": started.agents_url}
            with Journeyman(home=home, environ=ways) as asking:
                yield from _story(asking, token, key)
        found = desk.verify_audit()
        holds = "every link holds" if found.ok else found.problem
        yield "audit", f"{found.entries} entries, each bound to the one before: {holds}", found.ok


def _story(journeyman: Journeyman, token: str, key: str) -> Iterator[tuple[str, str, bool]]:
    with journeyman.approver_client(token) as agent, journeyman.approver_client(key) as ana:
        card = agent.request(ACTION, "Pay the invoice for March.", DETAILS)
        asked = f"asks for {ACTION} to {DETAILS['to']}, {DETAILS['amount']}"
        yield "agent", f"{asked}: {card.status} ({shown.plain(card.rule)})", True
        try:
            agent.approve(card.id, card.digest)
        except ConfirmationRefused as no:
            yield "agent", f"approves it itself: {shown.plain(str(no))}", False
        card = ana.approve(card.id, card.digest, reason="the invoice is right")
        yield "ana", f"approves exactly that, by its digest {card.digest[:19]}…", True
        try:
            agent.redeem(card, CHANGED)
        except ConfirmationRefused as no:
            yield "agent", f"takes {CHANGED['amount']} instead: {shown.plain(str(no))}", False
        agent.redeem(card, DETAILS)
        yield "agent", f"takes {DETAILS['amount']}, as approved: granted, once", True
        try:
            agent.redeem(card, DETAILS)
        except ConfirmationRefused as no:
            yield "agent", f"takes it again: {shown.plain(str(no))}", False
