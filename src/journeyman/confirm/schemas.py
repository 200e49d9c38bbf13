"""What the confirmation service takes and returns, and what goes over HTTP between it and its
clients, for both sides. Times are ISO 8601 over HTTP and seconds in records; `shown` makes the one
from the other.
"""

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import (
    CardFields,
    Channel,
    Choice,
    Confirmation,
    ConfirmationId,
    ConfirmationStatus,
    Constraint,
    Credential,
    EntryFields,
    EventFields,
    VoteFields,
)

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Short = Annotated[str, Meta(max_length=200)]
Reason = Annotated[str, Meta(max_length=2_000)]
Digest = Annotated[str, Meta(max_length=100)]
Secret = Annotated[str, Meta(min_length=1, max_length=4_000)]

Moment = Annotated[datetime, Meta(tz=True)]

Schema = TypeVar("Schema")


def shown(record: object, kind: type[Schema]) -> Schema:
    """A record as clients see it."""
    return msgspec.convert(record, kind, from_attributes=True, strict=False)


# What the operations of the service return. A refusal is `records.Refusal`.


class LimitState(Struct, frozen=True, kw_only=True):
    """How much of a limit is left, and when the first place in it is free again."""

    limit: int
    remaining: int
    reset_at: float


class Accepted(Struct, frozen=True, kw_only=True):
    """A submission that was taken: as a new card, as one more waiter of a card (`shared`), or as
    the same one told again (`replayed`).
    """

    confirmation: Confirmation
    shared: bool = False
    replayed: bool = False
    limit: LimitState

    @property
    def is_new(self) -> bool:
        """Whether people have to be told."""
        return self.confirmation.status == "pending" and not (self.shared or self.replayed)


class Ballot(Struct, frozen=True, kw_only=True):
    """A person's word as it arrives. `digest` says what the person saw."""

    choice: Choice
    digest: str = ""
    reason: str = ""
    edited: dict[str, Any] | None = None
    code: str = ""
    typed: str = ""
    channel: Channel = "api"


class Granted(Struct, frozen=True, kw_only=True):
    """The single-use right to do what was approved, signed by the service."""

    confirmation: Confirmation
    grant: str


class LoggedIn(Struct, frozen=True, kw_only=True):
    """A session in the browser: the half of its secret for the cookie, and the half that the page
    keeps and sends with everything it asks for.
    """

    credential: Credential
    secret: str
    csrf: str

    def __repr__(self) -> str:
        """Without the secrets, which have no place in a log."""
        return f"LoggedIn(name={self.credential.name!r})"


# What is sent to the service. Unknown fields are passed over: nobody approves by saying so.


class NewConfirmation(Struct, frozen=True, kw_only=True):
    """An action that an agent asks for."""

    action: Name
    description: Annotated[str, Meta(min_length=1, max_length=20_000)]
    details: dict[str, Any] = {}
    requester: Short = ""
    session_key: Short = ""
    timeout_seconds: Annotated[int, Meta(ge=30, le=3600)] = 300
    idempotency_key: Short = ""


class Cancellation(Struct, frozen=True, kw_only=True):
    """Taking a request back."""

    reason: Reason = ""


class Redemption(Struct, frozen=True, kw_only=True):
    """Using an approval, once. `details` are what is about to run, to be held against it."""

    digest: Digest
    details: dict[str, Any] | None = None


class Approval(Struct, frozen=True, kw_only=True):
    """A yes to what the digest stands for; `details` where the person changed them."""

    digest: Digest
    reason: Reason = ""
    details: dict[str, Any] | None = None
    code: Short = ""
    typed: Short = ""


class Denial(Struct, frozen=True, kw_only=True):
    """A no. Without a digest it is a no whatever was shown."""

    reason: Reason = ""
    digest: Digest = ""


class NewWhitelistEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action that is to pass without a person."""

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
    """A one-time link, or what stands behind its `#`."""

    link: Secret


# What the service answers


class CastVote(VoteFields[Moment], frozen=True, kw_only=True):
    """One person's word."""


class Card(CardFields[Moment], frozen=True, kw_only=True):
    """A confirmation, with what the policy allows with it now."""

    votes: tuple[CastVote, ...] = ()
    approvals: int = 0
    approved_details: dict[str, Any]
    expires_in_s: float = 0.0
    editable: bool | tuple[str, ...] = False
    second_factor: bool = False
    page_url: str = ""

    @property
    def is_approved(self) -> bool:
        """Whether it may be redeemed: approved, and not redeemed before."""
        return self.status in ("approved", "auto_approved")

    @property
    def outcome(self) -> str:
        """What became of it, in a sentence that is safe to show."""
        by = f" by {visible(self.settled_by)}" if self.settled_by else ""
        why = f": {visible(self.reason.rstrip('.'))}" if self.reason else ""
        return _OUTCOMES[self.status].format(by=by, why=why)


_OUTCOMES: dict[ConfirmationStatus, str] = {
    "pending": "Nobody has decided yet.",
    "approved": "Approved{by}{why}.",
    "auto_approved": "Approved without asking{why}.",
    "denied": "Denied{by}{why}. Do not do it.",
    "expired": "Nobody decided in time, which means no. Do not do it.",
    "cancelled": "Cancelled{by}{why}. Do not do it.",
    "redeemed": "Approved{by}, and done already: an approval is good for one time.",
}


class LimitLeft(Struct, frozen=True, kw_only=True):
    """How many more requests for this action are taken, and when there is room again."""

    limit: int
    remaining: int
    reset_at: Moment


class SubmittedCard(Card, frozen=True, kw_only=True):
    """A confirmation that was just asked for. `shared`: another identical request was there
    already; `replayed`: this very request was.
    """

    shared: bool = False
    replayed: bool = False
    limit: LimitLeft | None = None
    urls: dict[str, str] = field(default_factory=dict)


class Cards(Struct, frozen=True, kw_only=True):
    """Confirmations, newest first."""

    confirmations: list[Card]


class Grant(Struct, frozen=True, kw_only=True):
    """The right to do once what was approved: exactly `details`."""

    grant: str
    id: ConfirmationId
    digest: str
    details: dict[str, Any]
    redeemed_at: Moment | None = None

    def __repr__(self) -> str:
        """Without the grant itself, which has no place in a log."""
        return f"Grant(id={self.id!r}, digest={self.digest!r})"


class ListedEntry(EntryFields[Moment], frozen=True, kw_only=True):
    """An entry of the whitelist."""


class Whitelist(Struct, frozen=True, kw_only=True):
    """What is let through without asking."""

    whitelist: list[ListedEntry]


class ListedEvent(EventFields[Moment], frozen=True, kw_only=True):
    """An entry of the audit log."""

    digest: str


class AuditPage(Struct, frozen=True, kw_only=True):
    """Part of the audit log, newest first."""

    audit: list[ListedEvent]


class Verified(Struct, frozen=True, kw_only=True):
    """What checking the audit's chain found. `broken_at` is the first entry that does not hold."""

    ok: bool
    entries: int
    head: str
    broken_at: int | None = None
    problem: str = ""
    anchor: str = ""
    """What the chain was held against outside the table, as `seq:digest`; empty when nothing."""


class Counts(Struct, frozen=True, kw_only=True):
    """What people decided, and how fast."""

    asked: int
    approved: int
    denied: int
    expired: int
    median_decision_s: float | None


class ActionStats(Counts, frozen=True, kw_only=True):
    """How people decide on one action."""

    action: str


class Stats(Counts, frozen=True, kw_only=True):
    """How people decide: approving nearly all, and fast, means that too much is asked."""

    days: int
    auto_approved: int
    approval_rate: float | None = None
    actions: tuple[ActionStats, ...] = ()


class Health(Struct, frozen=True, kw_only=True):
    """The service is there, and its database can be written to."""

    status: str
    version: str = ""
    pending: int | None = None


class Person(Struct, frozen=True, kw_only=True):
    """Who is logged in. `view_only` is the one confirmation that a link's session may look at."""

    name: str
    has_totp: bool
    view_only: str


class Session(Person, frozen=True, kw_only=True):
    """The same, told once, with the half of the session's secret that the page keeps and sends as
    the header X-CSRF-Token.
    """

    csrf: str


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong. Some codes say more beside it: who settled and when, or a limit's state."""

    code: str
    message: str
    field: str | None = None


class ErrorBody(Struct, frozen=True, kw_only=True):
    """Every answer that is not a yes."""

    error: Problem
