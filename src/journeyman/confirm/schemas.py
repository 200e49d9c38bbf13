"""Schemas of the confirmation service: what its operations take and return, and what it exchanges
with clients over HTTP, for both sides. Times are seconds in records and ISO 8601 over HTTP;
`to_schema` converts them.
"""

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from journeyman.records.confirmation import (
    CardFields,
    Channel,
    Confirmation,
    ConfirmationId,
    ConfirmationStatus,
    Constraint,
    Credential,
    EntryFields,
    EventFields,
    VoteChoice,
    VoteFields,
)
from journeyman.text.display import visible

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Short = Annotated[str, Meta(max_length=200)]
Reason = Annotated[str, Meta(max_length=2_000)]
Digest = Annotated[str, Meta(max_length=100)]
Secret = Annotated[str, Meta(min_length=1, max_length=4_000)]

NumberText = Annotated[str, Meta(pattern=r"^\d{1,9}$")]
"""A whole number as text, as some programs send it."""

Moment = Annotated[datetime, Meta(tz=True)]

SHORTEST_TIMEOUT_S, LONGEST_TIMEOUT_S = 30, 3_600
"""How long a request waits for people at least and at most."""

Schema = TypeVar("Schema")


def to_schema(record: object, kind: type[Schema]) -> Schema:
    """Convert a record to the schema that clients receive."""
    return msgspec.convert(record, kind, from_attributes=True, strict=False)


# Results of the operations of the service. A refusal is `records.Refusal`.


class Accepted(Struct, frozen=True, kw_only=True):
    """An accepted submission: a new card, one that joins an identical waiting card (`shared`), or a
    repetition of the same request (`replayed`).
    """

    confirmation: Confirmation
    shared: bool = False
    replayed: bool = False

    @property
    def is_new(self) -> bool:
        """Whether people have to be notified."""
        return self.confirmation.status == "pending" and not (self.shared or self.replayed)


class Granted(Struct, frozen=True, kw_only=True):
    """The single-use permission to do what was approved, recorded in the audit."""

    confirmation: Confirmation
    grant: str


class LoggedIn(Struct, frozen=True, kw_only=True):
    """A browser session: the half of its secret for the cookie, and the half that the page stores
    and sends with every request.
    """

    credential: Credential
    secret: str
    csrf: str

    def __repr__(self) -> str:
        """Omit the secrets, which must not be logged."""
        return f"LoggedIn(name={self.credential.name!r})"


# Requests to the service. Unknown fields are ignored, so a request cannot approve itself. Null in
# an optional field means that it is left out.


class NewConfirmation(Struct, frozen=True, kw_only=True):
    """An action that an agent requests."""

    action: Name
    description: Annotated[str, Meta(min_length=1, max_length=20_000)]
    details: dict[str, Any] = {}
    requester: Short = ""
    session_key: Short = ""
    timeout_seconds: int | NumberText = 300
    idempotency_key: Short = ""

    @property
    def timeout_s(self) -> int:
        """The time that people have to decide, within the limits."""
        return min(max(int(self.timeout_seconds), SHORTEST_TIMEOUT_S), LONGEST_TIMEOUT_S)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the service does otherwise than requested."""
        if self.timeout_s == int(self.timeout_seconds):
            return ()
        return (
            f"timeout_seconds is {self.timeout_seconds}, and must be from {SHORTEST_TIMEOUT_S} to "
            f"{LONGEST_TIMEOUT_S:,}: people have {self.timeout_s:,} seconds to decide.",
        )


class Cancellation(Struct, frozen=True, kw_only=True):
    """Cancels a request."""

    reason: Reason = ""


class Redemption(Struct, frozen=True, kw_only=True):
    """Uses an approval, once. `details` are what is about to run, to be compared with it."""

    digest: Digest
    details: dict[str, Any] | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """Approves what the digest identifies, or denies it. `edited`, called `details` over HTTP, are
    the parameters if the person changed them, and `typed` is the short id where it must be typed.
    """

    digest: Digest = ""
    reason: Reason = ""
    edited: dict[str, Any] | None = field(default=None, name="details")
    typed: Short = ""


class Ballot(Decision, frozen=True, kw_only=True):
    """A person's decision as received."""

    choice: VoteChoice
    channel: Channel = "api"


class NewWhitelistEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action to approve without asking."""

    action: Name
    session_key: Short = ""
    requester: Short = ""
    constraints: dict[str, Constraint] = {}
    other_parameters: bool = False
    expires_in_seconds: Annotated[int, Meta(ge=1, le=10 * 366 * 86_400)] | None = None
    reason: Reason = ""


class LoginRequest(Struct, frozen=True, kw_only=True):
    """A person's name and key."""

    name: Name
    key: Secret


class LinkRequest(Struct, frozen=True, kw_only=True):
    """A one-time link, or the part after its `#`."""

    link: Secret


# Responses of the service.


class CastVote(VoteFields[Moment], frozen=True, kw_only=True):
    """One person's decision."""


class Card(CardFields[Moment], frozen=True, kw_only=True):
    """A confirmation, with what the policy allows for it now."""

    votes: tuple[CastVote, ...] = ()
    approvals: int = 0
    approved_details: dict[str, Any]
    expires_in_s: float = 0.0
    editable: bool | tuple[str, ...] = False
    page_url: str = ""
    resolved_by: str = ""
    """The same as `settled_by`, and the next as `settled_at`: earlier programs read these."""
    resolved_at: Moment | None = None
    timeout_seconds: int = 0
    """How long people have to decide, from the request on."""

    @property
    def is_approved(self) -> bool:
        """Whether it can be redeemed: approved, and not redeemed before."""
        return self.status in ("approved", "auto_approved")

    @property
    def outcome(self) -> str:
        """The outcome, as a sentence that is safe to show."""
        by = f" by {visible(self.settled_by)}" if self.settled_by else ""
        reason = f": {visible(self.reason.rstrip('.'))}" if self.reason else ""
        return _OUTCOMES[self.status].format(by=by, reason=reason)


_OUTCOMES: dict[ConfirmationStatus, str] = {
    "pending": "No one has decided yet.",
    "approved": "Approved{by}{reason}.",
    "auto_approved": "Approved without asking{reason}.",
    "denied": "Denied{by}{reason}. Do not do it.",
    "expired": "No one decided in time, which means no. Do not do it.",
    "cancelled": "Cancelled{by}{reason}. Do not do it.",
    "redeemed": "Approved{by} and already used: an approval is valid once.",
}


class SubmittedCard(Card, frozen=True, kw_only=True):
    """A confirmation that was just requested. `shared`: an identical request was already waiting;
    `replayed`: this very request was received before; `warnings`: what differs from the request.
    """

    shared: bool = False
    replayed: bool = False
    warnings: tuple[str, ...] = ()


class Cards(Struct, frozen=True, kw_only=True):
    """Confirmations, newest first."""

    confirmations: list[Card]


class Grant(Struct, frozen=True, kw_only=True):
    """The permission to do once what was approved: exactly `details`."""

    grant: str
    id: ConfirmationId
    digest: str
    details: dict[str, Any]
    redeemed_at: Moment | None = None

    def __repr__(self) -> str:
        """Omit the grant itself, which must not be logged."""
        return f"Grant(id={self.id!r}, digest={self.digest!r})"


class ListedEntry(EntryFields[Moment], frozen=True, kw_only=True):
    """An entry of the whitelist."""


class Whitelist(Struct, frozen=True, kw_only=True):
    """What is approved without asking."""

    whitelist: list[ListedEntry]


class ListedEvent(EventFields[Moment], frozen=True, kw_only=True):
    """An entry of the audit log. `timestamp` is the same as `at`, for earlier programs."""

    digest: str
    timestamp: Moment | None = None


class AuditPage(Struct, frozen=True, kw_only=True):
    """Part of the audit log, newest first. `entries` is the same list, for earlier programs."""

    audit: list[ListedEvent]
    entries: list[ListedEvent]
    count: int


class Verified(Struct, frozen=True, kw_only=True):
    """The result of verifying the audit. `broken_at` is the first invalid entry."""

    ok: bool
    entries: int
    head: str
    broken_at: int | None = None
    problem: str = ""
    anchor: str = ""
    """The anchored head that the chain was compared with, as `seq:digest`; empty without one."""


class Health(Struct, frozen=True, kw_only=True):
    """The service is running, and its database can be written to. `home` tells the services of
    different homes apart. `pending_count` is the same as `pending`, for earlier programs.
    """

    status: str
    version: str = ""
    home: str = ""
    pending: int | None = None
    pending_count: int | None = None
    timestamp: Moment | None = None


class Person(Struct, frozen=True, kw_only=True):
    """Who is logged in."""

    name: str


class Session(Person, frozen=True, kw_only=True):
    """A new session, with the half of its secret that the page stores and sends as the header
    X-CSRF-Token. It is sent only once.
    """

    csrf: str


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong. Some codes add fields: who settled it and when, or the state of a limit."""

    code: str
    message: str
    field: str | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """The body of every error response."""

    error: Problem
