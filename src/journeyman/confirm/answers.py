"""What the operations on confirmations answer with. A refusal is `records.Refusal`."""

from typing import Any

from msgspec import Struct

from journeyman.records.confirmation import Channel, Choice, Confirmation, Credential


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


class Verified(Struct, frozen=True, kw_only=True):
    """What checking the audit's chain found. `broken_at` is the first entry that does not hold."""

    ok: bool
    entries: int
    head: str
    broken_at: int | None = None
    problem: str = ""
    anchor: str = ""
    """What the chain was held against outside the table, as `seq:digest`; empty when nothing."""


class ActionStats(Struct, frozen=True, kw_only=True):
    """How people decide on one action."""

    action: str
    asked: int
    approved: int
    denied: int
    expired: int
    median_decision_s: float | None


class Stats(Struct, frozen=True, kw_only=True):
    """How people decide: approving nearly all, and fast, means that too much is asked."""

    days: int
    asked: int
    approved: int
    denied: int
    expired: int
    auto_approved: int
    median_decision_s: float | None
    actions: tuple[ActionStats, ...] = ()
