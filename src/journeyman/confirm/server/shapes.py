"""What the server shows, as data: a confirmation, the whitelist, the audit log and the rest, with
times in ISO 8601. The OpenAPI document is made of these; they are filled in `views`.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct

from journeyman.confirm.answers import ActionStats
from journeyman.records.confirmation import (
    AuditKind,
    Channel,
    Choice,
    ConfirmationStatus,
    Constraint,
    Notice,
    Tier,
)


class VoteView(Struct, frozen=True, kw_only=True):
    """One person's word."""

    approver: str
    choice: Choice
    at: datetime
    digest: str
    reason: str
    channel: Channel


class LimitView(Struct, frozen=True, kw_only=True):
    """How many more requests for this action are taken, and when there is room again."""

    limit: int
    remaining: int
    reset_at: datetime


class Urls(Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where to go on from here."""

    self_: str
    wait: str
    events: str
    cancel: str
    redeem: str
    page: str


class CardView(Struct, frozen=True, kw_only=True):
    """A confirmation."""

    id: str
    short_id: str
    status: ConfirmationStatus
    action: str
    tier: Tier
    rule: str
    quorum: int
    approvals: int
    requester: str
    claimed: str
    session_key: str
    description: str
    details: dict[str, Any]
    edited: dict[str, Any] | None
    approved_details: dict[str, Any]
    context: dict[str, Any]
    nonce: str
    digest: str
    submitted_digest: str
    created_at: datetime
    expires_at: datetime
    expires_in_s: float
    settled_at: datetime | None
    settled_by: str
    reason: str
    votes: tuple[VoteView, ...]
    submissions: int
    redeemed_at: datetime | None
    redeem_by: datetime | None
    notice: Notice
    editable: bool | tuple[str, ...]
    second_factor: bool
    page_url: str


class SubmittedView(CardView, frozen=True, kw_only=True):
    """A confirmation that was just asked for. `shared`: another identical request was there
    already; `replayed`: this very request was.
    """

    shared: bool
    replayed: bool
    limit: LimitView
    urls: Urls


class CardsView(Struct, frozen=True, kw_only=True):
    """Confirmations, newest first."""

    confirmations: list[CardView]


class GrantView(Struct, frozen=True, kw_only=True):
    """The right to do once what was approved: exactly `details`."""

    grant: str
    id: str
    digest: str
    details: dict[str, Any]
    redeemed_at: datetime | None


class EntryView(Struct, frozen=True, kw_only=True):
    """An entry of the whitelist."""

    id: str
    action: str
    session_key: str
    requester: str
    constraints: dict[str, Constraint]
    other_parameters: bool
    added_by: str
    added_at: datetime
    reason: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str
    uses: int
    last_used_at: datetime | None


class WhitelistView(Struct, frozen=True, kw_only=True):
    """What is let through without asking."""

    whitelist: list[EntryView]


class AuditView(Struct, frozen=True, kw_only=True):
    """One link of the audit's chain."""

    seq: int
    at: datetime
    kind: AuditKind
    actor: str
    confirmation: str
    about: dict[str, Any]
    previous: str
    digest: str


class AuditPage(Struct, frozen=True, kw_only=True):
    """Part of the audit log, newest first."""

    audit: list[AuditView]


class StatsView(Struct, frozen=True, kw_only=True):
    """How people decide."""

    days: int
    asked: int
    approved: int
    denied: int
    expired: int
    auto_approved: int
    approval_rate: float | None
    median_decision_s: float | None
    actions: tuple[ActionStats, ...]


class RuleView(Struct, frozen=True, kw_only=True):
    """What the actions that fit a pattern need; null where the policy's own value holds."""

    action: str
    tier: Tier
    quorum: int
    edits: bool | tuple[str, ...]
    rate_limit: int | None
    channels: tuple[Channel, ...]
    self_approval: bool | None
    second_factor: bool | None
    file_params: tuple[str, ...]
    schema: dict[str, Any] | None
    reason: str


class PolicyView(Struct, frozen=True, kw_only=True):
    """The policy in force."""

    digest: str
    never_bypass: tuple[str, ...]
    rate_limit: int
    requester_limit: int
    redeem_within_s: int
    self_approval: bool
    second_factor: bool
    rules: tuple[RuleView, ...]


class HealthView(Struct, frozen=True, kw_only=True):
    """The service is there."""

    status: str
    version: str
    pending: int


class MeView(Struct, frozen=True, kw_only=True):
    """Who is logged in. `view_only` is the one confirmation that a link's session may look at."""

    name: str
    has_totp: bool
    view_only: str


class LoggedInView(MeView, frozen=True, kw_only=True):
    """The same, told once, with the half of the session's secret that the page keeps and sends as
    the header X-CSRF-Token.
    """

    csrf: str
