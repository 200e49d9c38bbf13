"""What clients of the confirmation service receive: a card as the service shows it, the right to
do what was approved, entries of the whitelist and of the audit log, and the answer to the everyday
question. How they come over the wire is `wire`'s business.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from journeyman.confirm.shown_text import visible
from journeyman.records.confirmation import (
    AuditKind,
    Channel,
    Choice,
    ConfirmationId,
    ConfirmationStatus,
    Constraint,
    Notice,
    Tier,
)


class CastVote(Struct, frozen=True, kw_only=True):
    """One person's word, as the service shows it."""

    approver: str
    choice: Choice
    at: datetime
    digest: str = ""
    reason: str = ""
    channel: Channel = "api"


class LimitLeft(Struct, frozen=True, kw_only=True):
    """How many more requests for this action are taken, and when there is room again."""

    limit: int
    remaining: int
    reset_at: datetime


class Card(Struct, frozen=True, kw_only=True):
    """A confirmation as the service shows it. What the digest is made of has to be there; the rest
    may be left out by an older service.
    """

    id: ConfirmationId
    short_id: str
    status: ConfirmationStatus
    action: str
    description: str
    details: dict[str, Any]
    edited: dict[str, Any] | None = None
    approved_details: dict[str, Any]
    context: dict[str, Any]
    requester: str
    session_key: str
    nonce: str
    digest: str
    submitted_digest: str = ""
    created_at: datetime
    expires_at: datetime
    expires_in_s: float
    tier: Tier = "ask"
    rule: str = ""
    quorum: int = 1
    approvals: int = 0
    claimed: str = ""
    settled_at: datetime | None = None
    settled_by: str = ""
    reason: str = ""
    votes: tuple[CastVote, ...] = ()
    submissions: int = 1
    redeemed_at: datetime | None = None
    redeem_by: datetime | None = None
    notice: Notice = field(default_factory=Notice)
    editable: bool | tuple[str, ...] = False
    second_factor: bool = False
    page_url: str = ""
    shared: bool = False
    limit: LimitLeft | None = None
    urls: dict[str, str] = {}

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


class ListedEntry(Struct, frozen=True, kw_only=True):
    """An entry of the whitelist, as the service shows it."""

    id: str
    action: str
    session_key: str = ""
    requester: str = ""
    constraints: dict[str, Constraint] = {}
    other_parameters: bool = False
    added_by: str
    added_at: datetime
    reason: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str = ""
    uses: int = 0
    last_used_at: datetime | None = None


class ListedEvent(Struct, frozen=True, kw_only=True):
    """An entry of the audit log, as the service shows it."""

    seq: int
    at: datetime
    kind: AuditKind
    actor: str
    confirmation: str = ""
    about: dict[str, Any] = {}
    previous: str
    digest: str


class Health(Struct, frozen=True, kw_only=True):
    """The service is there."""

    status: str
    version: str = ""
    pending: int | None = None


class Grant(Struct, frozen=True, kw_only=True):
    """The right to do once what was approved: exactly `details`."""

    grant: str
    id: ConfirmationId
    digest: str
    details: dict[str, Any]
    redeemed_at: datetime | None = None

    def __repr__(self) -> str:
        """Without the grant itself, which has no place in a log."""
        return f"Grant(id={self.id!r}, digest={self.digest!r})"


class Answer(Struct, frozen=True, kw_only=True):
    """Whether it may be done now. Only then is there a grant; `why` says why not."""

    approved: bool
    card: Card | None = None
    grant: Grant | None = None
    why: str = ""

    def __bool__(self) -> bool:
        return self.approved
