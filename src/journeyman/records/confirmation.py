"""Confirmations: actions that wait for a person's approval, and everything recorded about them."""

from typing import Any, Generic, Literal, NewType, TypeVar, get_args

from msgspec import Struct, field

ConfirmationId = NewType("ConfirmationId", str)

Tier = Literal["routine", "ask", "critical", "forbidden"]
"""What an action needs; `TIERS` says what each means."""


class TierTraits(Struct, frozen=True, kw_only=True):
    """What a tier implies. A person decides unless the action `is_automatic` or `is_forbidden`. A
    whitelist entry can replace the person if it `can_be_whitelisted`. If it `is_strict`, approving
    takes the channels for critical actions, and the short id typed on the page.
    """

    is_automatic: bool = False
    is_forbidden: bool = False
    can_be_whitelisted: bool = False
    is_strict: bool = False


TIERS: dict[Tier, TierTraits] = {
    "routine": TierTraits(is_automatic=True),
    "ask": TierTraits(can_be_whitelisted=True),
    "critical": TierTraits(is_strict=True),
    "forbidden": TierTraits(is_forbidden=True),
}
"""To add a tier: a name in `Tier`, a row here, and its words in confirm/page/words.js."""

ConfirmationStatus = Literal[
    "pending", "approved", "denied", "expired", "cancelled", "auto_approved", "redeemed"
]
SETTLED: frozenset[ConfirmationStatus] = frozenset(get_args(ConfirmationStatus)) - {"pending"}

Channel = Literal["page", "api", "telegram"]
"""How a person's decision arrived."""

VoteChoice = Literal["approve", "deny"]

Time = TypeVar("Time")
"""Seconds in records; ISO dates in the same data over HTTP."""


class Submission(Struct, frozen=True, kw_only=True):
    """An agent's request. `requester` is the name of its token, `claimed` its own description."""

    action: str
    description: str
    details: dict[str, Any] = {}
    requester: str
    claimed: str = ""
    session_key: str = ""
    timeout_s: int = 300
    idempotency_key: str = ""


class VoteFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """One person's decision on one digest."""

    approver: str
    choice: VoteChoice
    at: Time
    digest: str
    reason: str = ""
    channel: Channel = "api"


class Vote(VoteFields[float], frozen=True, kw_only=True):
    """A vote as stored."""


class Notice(Struct, frozen=True, kw_only=True):
    """Whether people were notified. `failed`: every channel was tried and none worked."""

    status: Literal["none", "waiting", "sent", "failed"] = "none"
    channel: str = ""
    error: str = ""


class CardFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """A request and its state. `digest` covers what would run now: after an edit, the edited
    details.
    """

    id: ConfirmationId
    short_id: str
    action: str
    tier: Tier
    rule: str
    """The policy rule that set the tier, in words."""
    description: str
    details: dict[str, Any]
    edited: dict[str, Any] | None = None
    context: dict[str, Any] = {}
    """What the service itself bound to the request: the digests of the files it names."""
    requester: str
    claimed: str = ""
    session_key: str = ""
    nonce: str
    submitted_digest: str
    digest: str
    status: ConfirmationStatus = "pending"
    created_at: Time
    expires_at: Time
    settled_at: Time | None = None
    settled_by: str = ""
    reason: str = ""
    quorum: int = 1
    submissions: int = 1
    """How many identical requests share this confirmation."""
    redeemed_at: Time | None = None
    redeem_by: Time | None = None
    notice: Notice = field(default_factory=Notice)


class Confirmation(CardFields[float], frozen=True, kw_only=True):
    """A confirmation as stored."""

    owner: str = ""
    """The approver who owned the requesting agent at the time of the request, if any."""
    votes: tuple[Vote, ...] = ()

    @property
    def approved_details(self) -> dict[str, Any]:
        """The details to run if it is approved."""
        return self.details if self.edited is None else self.edited

    @property
    def approvals(self) -> int:
        """How many people approved the current digest."""
        yes = (vote for vote in self.votes if vote.choice == "approve")
        return len({vote.approver for vote in yes if vote.digest == self.digest})


class Constraint(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The condition on one parameter for a whitelist entry to cover it."""

    equals: Any = None
    one_of: tuple[Any, ...] | None = None
    at_least: float | None = None
    at_most: float | None = None


class EntryFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """An action that runs without a person's approval, within the limits of the entry."""

    id: str
    action: str
    session_key: str = ""
    """Only this session; empty: every session."""
    requester: str = ""
    """Only this agent; empty: every agent."""
    constraints: dict[str, Constraint] = {}
    other_parameters: bool = False
    """Whether further parameters, without a constraint, are allowed. An entry without any
    constraint covers all parameters."""
    added_by: str
    added_at: Time
    reason: str = ""
    expires_at: Time | None = None
    revoked_at: Time | None = None
    revoked_by: str = ""
    uses: int = 0
    last_used_at: Time | None = None


class WhitelistEntry(EntryFields[float], frozen=True, kw_only=True):
    """A whitelist entry as stored."""


CredentialKind = Literal["agent", "approver", "session", "link"]


class Credential(Struct, frozen=True, kw_only=True):
    """Access for an agent (a token), an approver (an account), an approver's browser session, or a
    link that opens one. The secret itself is stored nowhere; the store has its digest.
    """

    id: str
    kind: CredentialKind
    name: str
    """The name of the agent or of the approver."""
    owner: str = ""
    """For an agent: the approver who owns it, and who cannot approve its requests."""
    telegram_id: int | None = None
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None


AuditKind = Literal[
    "submitted", "shared", "replayed", "auto_approved", "notified", "notice_failed", "viewed",
    "voted", "edited", "approved", "denied", "expired", "cancelled", "redeemed", "refused",
    "whitelist_added", "whitelist_revoked", "policy_changed", "credential_made",
    "credential_revoked", "logged_in", "logged_out", "link_made", "started",
    "stopped", "anchor_reset", "exported",
]  # fmt: skip


class EventFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """An audit entry; `previous` is the digest of the entry before it."""

    seq: int
    at: Time
    kind: AuditKind
    actor: str
    confirmation: str = ""
    about: dict[str, Any] = {}
    previous: str


class WrittenEntry(EventFields[float], frozen=True, kw_only=True):
    """An audit entry with the fields of its written text."""


class AuditEntry(WrittenEntry, frozen=True, kw_only=True):
    """A link of the audit chain: `digest` covers every other field."""

    digest: str


RefusalCode = Literal[
    "bad_request", "unauthenticated", "not_allowed", "own_request", "unknown",
    "already_settled", "expired", "lapsed", "digest_differs", "changed", "not_approved",
    "already_redeemed", "key_reused", "over_limit", "forbidden_action", "edit_not_allowed",
    "channel_not_allowed", "already_voted",
]  # fmt: skip


class Refusal(Struct, frozen=True):
    """Why a request was refused: a value, not an error, and itself audited."""

    code: RefusalCode
    message: str
    about: dict[str, Any] = {}
