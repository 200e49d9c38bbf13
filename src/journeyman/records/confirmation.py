"""A confirmation: an action that waits for a person, what was decided, and the words for both."""

from typing import Any, Generic, Literal, NewType, TypeVar, get_args

from msgspec import Struct, field

ConfirmationId = NewType("ConfirmationId", str)

Tier = Literal["routine", "ask", "critical", "forbidden"]
"""What an action needs: nobody's word, a person's, a person's whatever any whitelist says, or it
is never done."""

ConfirmationStatus = Literal[
    "pending", "approved", "denied", "expired", "cancelled", "auto_approved", "redeemed"
]
SETTLED: frozenset[ConfirmationStatus] = frozenset(get_args(ConfirmationStatus)) - {"pending"}

Channel = Literal["page", "api", "telegram"]
"""By what way a person decided."""

Choice = Literal["approve", "deny"]

Time = TypeVar("Time")
"""Seconds in records; over HTTP, where the same is told, an ISO date."""


class Submission(Struct, frozen=True, kw_only=True):
    """What an agent asks for. `requester` is its token's name, `claimed` what it says of itself."""

    action: str
    description: str
    details: dict[str, Any] = {}
    requester: str
    claimed: str = ""
    session_key: str = ""
    timeout_s: int = 300
    idempotency_key: str = ""


class VoteFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """One person's word on one digest."""

    approver: str
    choice: Choice
    at: Time
    digest: str
    reason: str = ""
    channel: Channel = "api"


class Vote(VoteFields[float], frozen=True, kw_only=True):
    """A vote as it is kept."""


class Notice(Struct, frozen=True, kw_only=True):
    """Whether people were told. `failed` means that every way was tried and none worked."""

    status: Literal["none", "waiting", "sent", "failed"] = "none"
    channel: str = ""
    error: str = ""


class CardFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """What was asked for, and what became of it. `digest` covers what would run now: after an edit,
    the edited details.
    """

    id: ConfirmationId
    short_id: str
    action: str
    tier: Tier
    rule: str
    """The policy's rule that set the tier, in words."""
    description: str
    details: dict[str, Any]
    edited: dict[str, Any] | None = None
    context: dict[str, Any] = {}
    """What the service itself bound to the request: the digests of files it names."""
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
    """How many identical requests share this card."""
    redeemed_at: Time | None = None
    redeem_by: Time | None = None
    notice: Notice = field(default_factory=Notice)


class Confirmation(CardFields[float], frozen=True, kw_only=True):
    """One card as it is kept."""

    owner: str = ""
    """The approver whose agent it was when it asked, if there is one."""
    votes: tuple[Vote, ...] = ()

    @property
    def approved_details(self) -> dict[str, Any]:
        """What runs if it runs."""
        return self.details if self.edited is None else self.edited

    @property
    def approvals(self) -> int:
        """How many people said yes to what the digest stands for now."""
        yes = (vote for vote in self.votes if vote.choice == "approve")
        return len({vote.approver for vote in yes if vote.digest == self.digest})


class Constraint(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one parameter must be for a whitelist entry to cover it."""

    equals: Any = None
    one_of: tuple[Any, ...] | None = None
    at_least: float | None = None
    at_most: float | None = None


class EntryFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """An action that is let through without a person, as far as the entry says."""

    id: str
    action: str
    session_key: str = ""
    """Only in this session; empty: in every session."""
    requester: str = ""
    """Only for this agent; empty: for every agent."""
    constraints: dict[str, Constraint] = {}
    other_parameters: bool = False
    """Whether parameters without a constraint may be there too. Without any constraint the entry
    covers all parameters."""
    added_by: str
    added_at: Time
    reason: str = ""
    expires_at: Time | None = None
    revoked_at: Time | None = None
    revoked_by: str = ""
    uses: int = 0
    last_used_at: Time | None = None


class WhitelistEntry(EntryFields[float], frozen=True, kw_only=True):
    """An entry as it is kept."""


CredentialKind = Literal["agent", "approver", "session"]


class Credential(Struct, frozen=True, kw_only=True):
    """Who may do what: an agent's token, an approver's account, or an approver's time in the
    browser. The secret itself is nowhere; its digest is in the store.
    """

    id: str
    kind: CredentialKind
    name: str
    """The agent's name, or the approver's."""
    owner: str = ""
    """Of an agent: the approver whose agent it is, who cannot approve what it asks for."""
    telegram_id: int | None = None
    has_totp: bool = False
    wrong_codes_at: tuple[float, ...] = ()
    """When wrong one-time codes were given lately."""
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    view_only: str = ""
    """Of a session opened by a link: the one confirmation that it may look at."""


AuditKind = Literal[
    "submitted", "shared", "replayed", "auto_approved", "notified", "notice_failed", "viewed",
    "voted", "edited", "approved", "denied", "expired", "cancelled", "redeemed", "refused",
    "whitelist_added", "whitelist_revoked", "policy_changed", "credential_made",
    "credential_revoked", "logged_in", "logged_out", "link_made", "link_opened", "started",
    "stopped", "anchor_reset", "exported", "migrated",
]  # fmt: skip


class EventFields(Struct, Generic[Time], frozen=True, kw_only=True):
    """An entry of the audit; `previous` is the digest before."""

    seq: int
    at: Time
    kind: AuditKind
    actor: str
    confirmation: str = ""
    about: dict[str, Any] = {}
    previous: str


class WrittenEntry(EventFields[float], frozen=True, kw_only=True):
    """An entry as its text is written."""


class AuditEntry(WrittenEntry, frozen=True, kw_only=True):
    """One link of the chain: `digest` covers every other field."""

    digest: str


RefusalCode = Literal[
    "bad_request", "unauthenticated", "not_allowed", "own_request", "second_factor", "unknown",
    "already_settled", "expired", "lapsed", "digest_differs", "changed", "not_approved",
    "already_redeemed", "key_reused", "over_limit", "forbidden_action", "edit_not_allowed",
    "channel_not_allowed", "already_voted",
]  # fmt: skip


class Refusal(Struct, frozen=True):
    """Why something was not done: a value, not an error, and itself written down."""

    code: RefusalCode
    message: str
    about: dict[str, Any] = {}
