"""Makes what the server shows out of records. A card's view says what the policy allows with it
now; a settled card is encoded once for all who wait for it.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from journeyman.confirm.answers import Accepted, Granted, LimitState, Stats
from journeyman.confirm.deciding import by_todays_rule
from journeyman.confirm.masking import masked, masked_text
from journeyman.confirm.policy import Policy
from journeyman.confirm.server.shapes import (
    AuditView,
    CardView,
    EntryView,
    GrantView,
    LimitView,
    PolicyView,
    StatsView,
    SubmittedView,
    Urls,
    VoteView,
)
from journeyman.records.confirmation import SETTLED, AuditEntry, Confirmation, WhitelistEntry


def _when(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _maybe(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


_encode = msgspec.json.Encoder().encode


class Views:
    """Makes the views. A settled card is encoded once for all who wait for it."""

    def __init__(self, policy: Callable[[], Policy], *, agents_url: str, page_url: str) -> None:
        self._policy = policy
        self._agents_url = agents_url
        self._page_url = page_url
        self._last: Confirmation | None = None
        self._last_encoded = b""

    def card_bytes(self, card: Confirmation) -> bytes:
        """A card as JSON."""
        if card is self._last:
            return self._last_encoded
        encoded = _encode(self.card(card))
        if card.status in SETTLED:  # a pending one counts down
            self._last, self._last_encoded = card, encoded
        return encoded

    def card(self, card: Confirmation) -> CardView:
        return CardView(**self._card_fields(card))

    def submitted(self, accepted: Accepted) -> SubmittedView:
        card = accepted.confirmation
        own = f"{self._agents_url}/confirm/{card.id}"
        return SubmittedView(
            **self._card_fields(card),
            shared=accepted.shared,
            replayed=accepted.replayed,
            limit=limit_view(accepted.limit),
            urls=Urls(
                self_=own,
                wait=f"{own}?wait=25",
                events=f"{own}/events",
                cancel=f"{own}/cancel",
                redeem=f"{own}/redeem",
                page=self._page_of(card),
            ),
        )

    def _page_of(self, card: Confirmation) -> str:
        return f"{self._page_url}/#/card/{card.id}"

    def looked_at(self, card: Confirmation) -> bytes:
        """A card for who has only a link to it: whoever read the notice could have that."""
        shown = replace(
            card,
            details=masked(card.details),
            edited=None if card.edited is None else masked(card.edited),
            description=masked_text(card.description, card.details),
        )
        return _encode(self.card(shown))

    def _card_fields(self, card: Confirmation) -> dict[str, Any]:
        policy = self._policy()
        rule = policy.rule_for(card.action)
        pending = card.status == "pending"
        if pending:
            card = by_todays_rule(policy, card)
        return {
            "id": card.id,
            "short_id": card.short_id,
            "status": card.status,
            "action": card.action,
            "tier": card.tier,
            "rule": card.rule,
            "quorum": card.quorum,
            "approvals": card.approvals,
            "requester": card.requester,
            "claimed": card.claimed,
            "session_key": card.session_key,
            "description": card.description,
            "details": card.details,
            "edited": card.edited,
            "approved_details": card.approved_details,
            "context": card.context,
            "nonce": card.nonce,
            "digest": card.digest,
            "submitted_digest": card.submitted_digest,
            "created_at": _when(card.created_at),
            "expires_at": _when(card.expires_at),
            "expires_in_s": round(max(0.0, card.expires_at - time.time()), 3) if pending else 0.0,
            "settled_at": _maybe(card.settled_at),
            "settled_by": card.settled_by,
            "reason": card.reason,
            "votes": tuple(
                VoteView(
                    approver=vote.approver,
                    choice=vote.choice,
                    at=_when(vote.at),
                    digest=vote.digest,
                    reason=vote.reason,
                    channel=vote.channel,
                )
                for vote in card.votes
            ),
            "submissions": card.submissions,
            "redeemed_at": _maybe(card.redeemed_at),
            "redeem_by": _maybe(card.redeem_by),
            "notice": card.notice,
            "editable": rule.edits,
            "second_factor": bool(rule.second_factor),
            "page_url": self._page_of(card),
        }


def limit_view(limit: LimitState) -> LimitView:
    return LimitView(limit=limit.limit, remaining=limit.remaining, reset_at=_when(limit.reset_at))


def grant_view(granted: Granted) -> GrantView:
    card = granted.confirmation
    return GrantView(
        grant=granted.grant,
        id=card.id,
        digest=card.digest,
        details=card.approved_details,
        redeemed_at=_maybe(card.redeemed_at),
    )


_ENTRY_TIMES = ("added_at", "expires_at", "revoked_at", "last_used_at")


def entry_view(entry: WhitelistEntry) -> EntryView:
    fields = msgspec.structs.asdict(entry)
    return EntryView(**fields | {name: _maybe(fields[name]) for name in _ENTRY_TIMES})


def audit_view(entry: AuditEntry) -> AuditView:
    return AuditView(**msgspec.structs.asdict(entry) | {"at": _when(entry.at)})


def policy_view(policy: Policy) -> PolicyView:
    return msgspec.convert({**policy.describe(), "digest": policy.digest}, PolicyView)


def stats_view(stats: Stats) -> StatsView:
    decided = stats.approved + stats.denied
    rate = stats.approved / decided if decided else None
    return StatsView(**msgspec.structs.asdict(stats), approval_rate=rate)
