"""Taking a request: told again, over the limit, forbidden, alike to one that waits, let through by
the whitelist, or a new card. The limit comes before every way of being let through.
"""

import secrets
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from journeyman.confirm.answers import Accepted, LimitState
from journeyman.confirm.digest import digest_of, fingerprint_of
from journeyman.confirm.expiring import settle_if_due
from journeyman.confirm.masking import audited
from journeyman.confirm.policy import Policy, Rule, check_details, spellings_of
from journeyman.confirm.whitelist import needs_person
from journeyman.records.confirmation import (
    Confirmation,
    ConfirmationId,
    Notice,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.store.asked import Counted, Seen, Wanted
from journeyman.store.ledger import WINDOW_S, Ledger

_SHORT = 6


class Prepared(Struct, frozen=True, kw_only=True):
    """A submission with what can be worked out before the transaction."""

    submission: Submission
    rule: Rule
    context: dict[str, Any]
    id: ConfirmationId
    nonce: str
    digest: str
    fingerprint: str
    wrong: str
    """What is wrong with the details by the rule's schema; empty when nothing is."""
    wanted: Wanted
    notifies: bool
    """Whether there are channels through which people will be told."""


def prepare(
    submission: Submission, policy: Policy, context: dict[str, Any], *, notifies: bool = True
) -> Prepared:
    """Raises WrongInput when the details have no canonical form."""
    rule = policy.rule_for(submission.action)
    nonce, bound = secrets.token_hex(16), _bound(submission, context)
    digest, fingerprint = digest_of(**bound, nonce=nonce), fingerprint_of(**bound)
    # Another spelling of a name is the same name, here as in the rules.
    counted_as = spellings_of(submission.action).squashed
    return Prepared(
        submission=submission,
        rule=rule,
        context=context,
        id=ConfirmationId(secrets.token_hex(16)),
        nonce=nonce,
        digest=digest,
        fingerprint=fingerprint,
        wanted=Wanted(submission.requester, counted_as, fingerprint),
        wrong=check_details(rule, submission.details),
        notifies=notifies,
    )


def submit(ledger: Ledger, policy: Policy, prepared: Prepared) -> Accepted | Refusal:
    """Take a submission or say why not. Either is written down."""
    asked, rule = prepared.submission, prepared.rule
    seen = ledger.asked.seen(prepared.wanted)
    counted = seen.of_action
    limit = policy.rate_limit_of(rule)
    if asked.idempotency_key:
        told = ledger.asked.told(asked.requester, asked.idempotency_key)
        if told is not None:
            return _told_again(ledger, prepared, told, _state(counted, limit, ledger.now))
    if rule.tier == "forbidden":
        return _refused(
            ledger,
            prepared,
            Refusal(
                code="forbidden_action",
                message=f"The policy forbids {asked.action}: {rule.why}. Nobody can approve it.",
            ),
        )
    if prepared.wrong:
        return _refused(ledger, prepared, Refusal(code="bad_request", message=prepared.wrong))
    if counted.recent >= limit:
        return _over_limit(ledger, prepared, counted, limit, f"for {asked.action} ")
    state = _state(counted, limit, ledger.now, more=1)
    alike = None if seen.alike is None else ledger.find(seen.alike)
    if alike is not None and settle_if_due(ledger, alike).status == "pending":
        return _shared(ledger, prepared, alike, seen, state)
    _, entry = needs_person(policy, asked, _entries(ledger, rule, asked), ledger.now)
    asks = entry is None and rule.tier != "routine"
    if asks and seen.cards.recent >= policy.requester_limit:
        return _over_limit(ledger, prepared, seen.cards, policy.requester_limit, "")
    card = _new_card(ledger, policy, prepared, entry)
    ledger.add(card, prepared.fingerprint)
    _count(ledger, prepared, card, seen, is_new=asks)
    # Without the details: the digest binds them, the card has them, and the decision's entry shows
    # them. Finding the secrets in them would take longer than all the rest.
    about = {
        "action": card.action,
        "tier": card.tier,
        "digest": card.digest,
        "session_key": card.session_key,
        "expires_at": card.expires_at,
    }
    ledger.note("submitted", f"agent:{asked.requester}", card.id, **about)
    if card.status == "auto_approved":
        if entry is not None:
            ledger.save_entry(replace(entry, uses=entry.uses + 1, last_used_at=ledger.now))
        ledger.note(
            "auto_approved",
            card.settled_by,
            card.id,
            digest=card.digest,
            details=audited(card.details),
            reason=card.reason,
        )
    return Accepted(confirmation=card, limit=state)


def _entries(ledger: Ledger, rule: Rule, asked: Submission) -> list[WhitelistEntry]:
    """The entries that may cover a submission: nobody's own agent is let through by their entry,
    where they could not approve it either.
    """
    entries = ledger.whitelisted(asked.action)
    if not entries or rule.self_approval:
        return list(entries)
    owner = ledger.owner_of(asked.requester)
    return [entry for entry in entries if not owner or entry.added_by != owner]


def _bound(asked: Submission, context: dict[str, Any]) -> dict[str, Any]:
    """What a digest covers, but for the nonce."""
    return {
        "action": asked.action,
        "description": asked.description,
        "details": asked.details,
        "requester": asked.requester,
        "session_key": asked.session_key,
        "context": context,
    }


def digest_of_card(card: Confirmation, details: dict[str, Any]) -> str:
    """The digest that a card has with these details."""
    return digest_of(
        action=card.action,
        description=card.description,
        details=details,
        requester=card.requester,
        session_key=card.session_key,
        context=card.context,
        nonce=card.nonce,
    )


def _new_card(
    ledger: Ledger, policy: Policy, prepared: Prepared, entry: WhitelistEntry | None
) -> Confirmation:
    asked, rule = prepared.submission, prepared.rule
    card = Confirmation(
        id=prepared.id,
        short_id=prepared.id[:_SHORT],
        action=asked.action,
        tier=rule.tier,
        rule=rule.why,
        description=asked.description,
        details=asked.details,
        context=prepared.context,
        requester=asked.requester,
        owner=ledger.owner_of(asked.requester),
        claimed=asked.claimed,
        session_key=asked.session_key,
        nonce=prepared.nonce,
        submitted_digest=prepared.digest,
        digest=prepared.digest,
        created_at=ledger.now,
        expires_at=ledger.now + asked.timeout_s,
        quorum=rule.quorum,
        notice=Notice(status="waiting" if prepared.notifies else "none"),
    )
    if entry is None and rule.tier != "routine":
        return card
    reason = f"whitelist entry {entry.id}" if entry is not None else rule.why
    return replace(
        card,
        status="auto_approved",
        settled_at=ledger.now,
        settled_by="policy" if entry is None else f"whitelist:{entry.id}",
        reason=reason,
        redeem_by=ledger.now + policy.redeem_within_s,
        notice=Notice(),
    )


def _told_again(
    ledger: Ledger, prepared: Prepared, told: tuple[str, str], state: LimitState
) -> Accepted | Refusal:
    fingerprint, id_ = told
    card = ledger.find(id_)
    if card is None or fingerprint != prepared.fingerprint:
        return _refused(
            ledger,
            prepared,
            Refusal(
                code="key_reused",
                message="This idempotency key was used for another request. Use a new key for a "
                "new request, or send the same body.",
                about={"id": id_},
            ),
        )
    card = settle_if_due(ledger, card)
    ledger.note("replayed", f"agent:{card.requester}", card.id)
    return Accepted(confirmation=card, replayed=True, limit=state)


def _shared(
    ledger: Ledger, prepared: Prepared, card: Confirmation, seen: Seen, state: LimitState
) -> Accepted:
    """One card for identical requests: a person is asked once."""
    card = replace(card, submissions=card.submissions + 1)
    ledger.save(card)
    _count(ledger, prepared, card, seen, is_new=False)
    ledger.note("shared", f"agent:{card.requester}", card.id, submissions=card.submissions)
    return Accepted(confirmation=card, shared=True, limit=state)


def _count(
    ledger: Ledger, prepared: Prepared, card: Confirmation, seen: Seen, *, is_new: bool
) -> None:
    ledger.asked.count(
        seen,
        wanted=prepared.wanted,
        key=prepared.submission.idempotency_key,
        card=card.id,
        is_new=is_new,
    )


def _state(counted: Counted, limit: int, now: float, more: int = 0) -> LimitState:
    first = now if counted.first_at is None else counted.first_at
    remaining = max(0, limit - counted.recent - more)
    return LimitState(limit=limit, remaining=remaining, reset_at=first + WINDOW_S)


def _over_limit(
    ledger: Ledger, prepared: Prepared, counted: Counted, limit: int, of: str
) -> Refusal:
    state = _state(counted, limit, ledger.now)
    return _refused(
        ledger,
        prepared,
        Refusal(
            code="over_limit",
            message=f"No more than {limit} requests {of}are taken in an hour, and so many were "
            "made. The action must not be done; ask again later.",
            about={"limit": limit, "remaining": 0, "reset_at": state.reset_at},
        ),
    )


def _refused(ledger: Ledger, prepared: Prepared, refusal: Refusal) -> Refusal:
    asked = prepared.submission
    ledger.note(
        "refused",
        f"agent:{asked.requester}",
        str(refusal.about.get("id", "")),
        code=refusal.code,
        action=asked.action,
        fingerprint=prepared.fingerprint,
    )
    return refusal
