"""The requests that clients make of the confirmation service, each made and none sent: the methods
of both clients are made from these.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.confirm.answers import Verified
from journeyman.confirm.received import Card, Grant, Health, ListedEntry, ListedEvent
from journeyman.confirm.shown_text import visible
from journeyman.confirm.wire import Call, plain
from journeyman.records.confirmation import ConfirmationStatus, Constraint
from journeyman.records.errors import WrongInput

Details = Mapping[str, Any]

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class _Cards(Struct):
    confirmations: list[Card]


class _Entries(Struct):
    whitelist: list[ListedEntry]


class _Events(Struct):
    audit: list[ListedEvent]


_card = msgspec.json.Decoder(Card).decode
_cards = msgspec.json.Decoder(_Cards).decode
_entry = msgspec.json.Decoder(ListedEntry).decode
_entries = msgspec.json.Decoder(_Entries).decode
_events = msgspec.json.Decoder(_Events).decode


def request(
    action: str,
    description: str,
    details: Details | None = None,
    *,
    session_key: str = "",
    timeout_s: int = 300,
    idempotency_key: str = "",
    requester: str = "",
) -> Call[Card]:
    """Ask for an action to be confirmed. `requester` is what the agent calls itself; who it is, the
    service knows from its token. The same `idempotency_key` asks only once.
    """
    body = {"action": action, "description": description, "details": plain(details or {})}
    more = {
        "session_key": session_key,
        "idempotency_key": idempotency_key,
        "requester": requester,
    }
    return Call(
        doing=f"asking for a confirmation of {visible(action)}",
        method="POST",
        path="/confirm",
        read=_card,
        body=body | {"timeout_seconds": timeout_s} | _given(more),
    )


def get(id_: str, *, wait_s: float = 0.0) -> Call[Card]:
    """A card, at once, or as soon as it is decided within `wait_s` seconds (60 at most)."""
    return Call(
        doing=f"looking at the confirmation {visible(id_)}",
        method="GET",
        path=_path(id_),
        read=_card,
        query={"wait": f"{wait_s:g}"} if wait_s else {},
        wait_s=wait_s,
    )


def list_(
    *, status: ConfirmationStatus | None = None, limit: int = 50, before: str = ""
) -> Call[list[Card]]:
    """Cards, newest first: for an approver all, for an agent its own."""
    return Call(
        doing="listing confirmations",
        method="GET",
        path="/confirmations",
        read=lambda content: _cards(content).confirmations,
        query=_given({"status": status or "", "limit": str(limit), "before": before}),
    )


def cancel(id_: str, *, reason: str = "") -> Call[Card]:
    """Take a request back."""
    return Call(
        doing=f"cancelling the confirmation {visible(id_)}",
        method="POST",
        path=_path(id_, "cancel"),
        read=_card,
        body=_given({"reason": reason}),
    )


def redeem(id_: str, digest: str, details: Details) -> Call[Grant]:
    """Take the grant of an approved request, which can be done once."""
    return Call(
        doing=f"redeeming the confirmation {visible(id_)}",
        method="POST",
        path=_path(id_, "redeem"),
        read=msgspec.json.Decoder(Grant).decode,
        body={"digest": digest, "details": plain(details)},
    )


def approve(
    id_: str,
    digest: str,
    *,
    reason: str = "",
    details: Details | None = None,
    code: str = "",
    typed: str = "",
) -> Call[Card]:
    """Approve what `digest` stands for; with `details`, approve it changed to them."""
    body = {"digest": digest, "reason": reason, "code": code, "typed": typed}
    changed = {} if details is None else {"details": plain(details)}
    return Call(
        doing=f"approving the confirmation {visible(id_)}",
        method="POST",
        path=_path(id_, "approve"),
        read=_card,
        body=_given(body) | changed,
    )


def deny(id_: str, *, reason: str = "", digest: str = "") -> Call[Card]:
    """Say no."""
    return Call(
        doing=f"denying the confirmation {visible(id_)}",
        method="POST",
        path=_path(id_, "deny"),
        read=_card,
        body=_given({"reason": reason, "digest": digest}),
    )


def whitelist() -> Call[list[ListedEntry]]:
    """What is let through without asking."""
    return Call(
        doing="reading the whitelist",
        method="GET",
        path="/whitelist",
        read=lambda content: _entries(content).whitelist,
    )


def add_to_whitelist(
    action: str,
    *,
    session_key: str = "",
    requester: str = "",
    constraints: Mapping[str, Constraint] | None = None,
    other_parameters: bool = False,
    expires_in_s: int | None = None,
    reason: str = "",
) -> Call[ListedEntry]:
    """Let an action through from now on, as far as the rest says."""
    texts = {"session_key": session_key, "requester": requester, "reason": reason}
    body: dict[str, Any] = {"action": action, "other_parameters": other_parameters}
    if constraints:
        body["constraints"] = dict(constraints)
    if expires_in_s is not None:
        body["expires_in_seconds"] = expires_in_s
    return Call(
        doing=f"adding {visible(action)} to the whitelist",
        method="POST",
        path="/whitelist",
        read=_entry,
        body=body | _given(texts),
    )


def revoke(entry_id: str) -> Call[ListedEntry]:
    """Take an entry off the whitelist."""
    return Call(
        doing=f"taking {visible(entry_id)} off the whitelist",
        method="DELETE",
        path=f"/whitelist/{_checked(entry_id)}",
        read=_entry,
        body={},
    )


def audit(
    limit: int = 50, *, before: int | None = None, confirmation: str = ""
) -> Call[list[ListedEvent]]:
    """The newest entries of the audit log, or of one confirmation's part of it."""
    query = {"limit": str(limit), "before": "" if before is None else str(before)}
    return Call(
        doing="reading the audit log",
        method="GET",
        path="/audit",
        read=lambda content: _events(content).audit,
        query=_given(query | {"confirmation": confirmation}),
    )


def verify_audit() -> Call[Verified]:
    """Have the service check the chain of its audit log."""
    return Call(
        doing="checking the audit log",
        method="GET",
        path="/audit/verify",
        read=msgspec.json.Decoder(Verified).decode,
        wait_s=60.0,
    )


def health() -> Call[Health]:
    """Whether the service is there."""
    return Call(
        doing="looking for the service",
        method="GET",
        path="/health",
        read=msgspec.json.Decoder(Health).decode,
    )


def _path(id_: str, *more: str) -> str:
    return "/".join(("/confirm", _checked(id_), *more))


def _checked(id_: str) -> str:
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        raise WrongInput(
            f"{visible(str(id_))!r} is not an id. `journeyman confirm list` shows the ids."
        )
    return id_


def _given(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
