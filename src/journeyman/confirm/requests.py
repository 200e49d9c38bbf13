"""The life of a request: submitted, expired, cancelled, or redeemed; one transaction each."""

import secrets
from typing import Any

from msgspec.structs import replace

from journeyman.confirm.audit import audited_details
from journeyman.confirm.credentials import actor_of, may_decide
from journeyman.confirm.digest import digest_of, file_digests, fingerprint_of
from journeyman.confirm.policy import Policy, spellings_of
from journeyman.confirm.schemas import Accepted, Granted
from journeyman.confirm.whitelist import entry_for
from journeyman.records.confirmation import (
    TIERS,
    Confirmation,
    ConfirmationId,
    Credential,
    Notice,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.records.errors import WrongInput
from journeyman.records.host import HOSTS
from journeyman.store.audit import WINDOW_S
from journeyman.store.ledger import Ledger

_AUDITED_FIELDS = ("action", "tier", "digest", "session_key", "expires_at")
_SUBMITTED_FIELDS = ("action", "description", "details", "requester", "claimed", "session_key")


def checked_card(ledger: Ledger, id_: str) -> tuple[Confirmation | None, Refusal | None]:
    """Return a card in its current state, and a refusal if it does not match the audit and must not
    be used. An overdue card is expired here, even before the upkeep does it.
    """
    card = ledger.find(id_)
    if card is None:
        return None, unknown(id_)
    fault = ledger.fault(card)
    if not fault and not is_bound(card, card.approved_details):
        fault = "its digest is not that of its parameters"
    if not fault:
        is_due = card.status == "pending" and ledger.now >= card.expires_at
        return _expire(ledger, card) if is_due else card, None
    return card, Refusal(
        "changed",
        f"The stored confirmation does not match the audit: {fault}. The database was changed from "
        "outside, so nothing is done. Check it with: journeyman confirm audit verify",
    )


def is_bound(card: Confirmation, details: dict[str, Any]) -> bool:
    """Return whether a card's digest is that of these details."""
    try:
        return digest_of(card, details) == card.digest
    except WrongInput:
        return False


def unknown(id_: str) -> Refusal:
    return Refusal(
        "unknown", f"There is no confirmation {id_!r}. List them with: journeyman confirm list"
    )


_STATUS_PHRASES = {
    "redeemed": "approved and used",
    "auto_approved": "approved without asking",
}


def settled_refusal(card: Confirmation) -> Refusal:
    """Return why a settled card cannot be decided."""
    if card.status == "expired":
        return Refusal(
            "expired",
            "No one decided in time, so the answer is no. The agent has to ask again.",
            about={"status": card.status, "expired_at": card.expires_at},
        )
    return Refusal(
        "already_settled",
        f"This was already {_STATUS_PHRASES.get(card.status, card.status)} by {card.settled_by}.",
        about={name: getattr(card, name) for name in ("status", "settled_by", "settled_at")},
    )


def prepare(submission: Submission, policy: Policy, *, has_channels: bool = True) -> Confirmation:
    """Return the card of a submission, without what only the transaction knows. `has_channels` says
    whether people can be notified. Raise WrongInput if the details have no canonical form, or name
    files that cannot be bound.
    """
    rule, id_ = policy.rule_for(submission.action), secrets.token_hex(16)
    files = file_digests(submission.details, rule.file_params)
    card = Confirmation(
        **{name: getattr(submission, name) for name in _SUBMITTED_FIELDS},
        id=ConfirmationId(id_),
        short_id=id_[:6],
        tier=rule.tier,
        rule=rule.why,
        context={"files": files} if rule.file_params else {},
        nonce=secrets.token_hex(16),
        submitted_digest="",
        digest="",
        created_at=0.0,
        expires_at=0.0,
        quorum=rule.quorum,
        notice=Notice(status="waiting" if has_channels else "none"),
    )
    digest = digest_of(card, card.details)
    return replace(card, submitted_digest=digest, digest=digest)


def submit(
    ledger: Ledger, policy: Policy, submission: Submission, card: Confirmation
) -> Accepted | Refusal:
    """Accept a submission with its prepared card, or refuse it. Both are recorded."""
    fingerprint = fingerprint_of(card)
    answer = _accept(ledger, policy, submission, card, fingerprint)
    if isinstance(answer, Refusal):
        id_ = str(answer.about.get("id", ""))
        about = {"action": submission.action, "fingerprint": fingerprint}
        return ledger.refused(f"agent:{submission.requester}", answer, id_, **about)
    if submission.idempotency_key and not answer.replayed:
        ledger.add_key(submission.requester, submission.idempotency_key, answer.confirmation.id)
    return answer


def _accept(
    ledger: Ledger,
    policy: Policy,
    submission: Submission,
    prepared: Confirmation,
    fingerprint: str,
) -> Accepted | Refusal:
    """Decide on a submission. What is approved without asking has its own limit, and so has what
    people are asked, but not what the gate of a host asks: it holds the session of a person.
    """
    rule, actor = policy.rule_for(submission.action), f"agent:{submission.requester}"
    owner = ledger.owner_of(submission.requester)
    entries = ledger.whitelisted(submission.action)
    if owner and not rule.self_approval:  # an owner's entry must not approve their own agent
        entries = [entry for entry in entries if entry.added_by != owner]
    entry = entry_for(policy, submission, entries, ledger.now)
    twin = _waiting_twin(ledger, fingerprint)
    asks_person = twin is not None or (entry is None and not TIERS[rule.tier].is_automatic)
    # Another spelling of an action counts towards the same limit.
    counted_as = spellings_of(submission.action).squashed
    # People are asked by all agents together.
    key = ("", counted_as, "asked") if asks_person else (submission.requester, counted_as)
    recent = ledger.times(*key)
    limit = policy.rate_limit_of(rule) if asks_person else policy.automatic_limit_of(rule)
    replay = _replay(ledger, submission, fingerprint, actor)
    if replay is not None:
        return replay
    if TIERS[rule.tier].is_forbidden:
        message = f"The policy forbids {submission.action}: {rule.why}. It cannot be approved."
        return Refusal("forbidden_action", message)
    is_host = asks_person and submission.requester.partition("@")[0] in HOSTS
    if len(recent) >= limit and not (is_host and rule.rate_limit is None):
        return _over_limit(recent, limit, f"for {submission.action} ")
    if twin is not None:
        # Identical requests share one card, so that a person is asked once.
        card = replace(twin, submissions=twin.submissions + 1)
        about: dict[str, Any] = {"submissions": card.submissions, "counted_as": counted_as}
        ledger.record("shared", actor, card, **about)
        return Accepted(confirmation=card, shared=True)
    asked_times = ledger.times(submission.requester)
    if asks_person and not is_host and len(asked_times) >= policy.requester_limit:
        return _over_limit(asked_times, policy.requester_limit, "")
    card = replace(
        prepared,
        owner=owner,
        created_at=ledger.now,
        expires_at=ledger.now + submission.timeout_s,
        notice=prepared.notice if asks_person else Notice(),
    )
    # Without the details: the digest binds them, the card has them, and the entry of the decision
    # shows them. Masking their secrets would take longer than everything else here.
    audited = {name: getattr(card, name) for name in _AUDITED_FIELDS}
    audited |= {"fingerprint": fingerprint, "counted_as": counted_as, "asks": asks_person}
    ledger.record("submitted", actor, card, **audited)
    if not asks_person:
        card = _approve_automatically(ledger, policy, card, entry)
    return Accepted(confirmation=card)


def _waiting_twin(ledger: Ledger, fingerprint: str) -> Confirmation | None:
    """Return the waiting card of an identical request, if any."""
    found = ledger.waiting_alike(fingerprint)
    card, refusal = (None, None) if found is None else checked_card(ledger, found.id)
    is_waiting = card is not None and refusal is None and card.status == "pending"
    return card if is_waiting else None


def _replay(
    ledger: Ledger, submission: Submission, fingerprint: str, actor: str
) -> Accepted | Refusal | None:
    """Return the answer to a request that was sent before under its idempotency key, if any."""
    key = submission.idempotency_key
    if not key or not (earlier := ledger.find_key(submission.requester, key)):
        return None
    card, refusal = checked_card(ledger, earlier)
    if card is None or fingerprint_of(card) != fingerprint:
        return Refusal(
            "key_reused",
            "This idempotency key was used for another request. Use a new key for a new "
            "request, or send the same body.",
            about={"id": earlier},
        )
    if refusal is not None:
        return refusal
    ledger.note("replayed", actor, card.id)
    return Accepted(confirmation=card, replayed=True)


def _approve_automatically(
    ledger: Ledger, policy: Policy, card: Confirmation, entry: WhitelistEntry | None
) -> Confirmation:
    by, reason = "policy", card.rule
    if entry is not None:
        by, reason = f"whitelist:{entry.id}", f"whitelist entry {entry.id}"
        ledger.save(replace(entry, uses=entry.uses + 1, last_used_at=ledger.now))
    until = ledger.now + policy.redeem_within_s
    card = replace(card, status="auto_approved", settled_at=ledger.now, redeem_by=until)
    card = replace(card, settled_by=by, reason=reason)
    details = audited_details(card.details)
    ledger.record("auto_approved", by, card, digest=card.digest, details=details, reason=reason)
    return card


def _over_limit(recent: list[float], limit: int, scope: str) -> Refusal:
    requests = "request" if limit == 1 else "requests"
    return Refusal(
        "over_limit",
        f"The limit of {limit} {requests} {scope}per hour is reached. The action must not be done; "
        "ask again later.",
        about={"limit": limit, "remaining": 0, "reset_at": recent[0] + WINDOW_S},
    )


def expire_due(ledger: Ledger) -> tuple[int, float | None]:
    """Expire a batch of overdue cards; return their number, and when the next card is due."""
    due = ledger.due()
    for card in due:
        _expire(ledger, card, vouched=not ledger.fault(card, of_chain=False))
    return len(due), ledger.next_expiry()


def _expire(ledger: Ledger, card: Confirmation, *, vouched: bool = True) -> Confirmation:
    card = replace(card, status="expired", settled_at=card.expires_at, settled_by="service")
    ledger.record("expired", "service", card, vouched=vouched, action=card.action)
    return card


def redeem(
    ledger: Ledger,
    policy: Policy,
    id_: str,
    by: Credential,
    digest: str,
    *,
    details: dict[str, Any] | None = None,
    drift: str = "",
) -> Granted | Refusal:
    """Use up an approval; the grant is the audit entry that records it. `details` are what is about
    to run, if the caller states them; `drift` is what changed outside since the request, if
    anything.
    """
    card, refusal = checked_card(ledger, id_)
    actor = actor_of(by)
    if card is None or by.kind != "agent" or card.requester != by.name:
        return ledger.refused(actor, unknown(id_))
    refusal = refusal or _redeem_refusal(ledger, card, digest, details, drift)
    if refusal is None and TIERS[policy.rule_for(card.action).tier].is_forbidden:
        message = f"The policy now forbids {card.action}. The action must not be done."
        refusal = Refusal("forbidden_action", message)
    if refusal is not None:
        return ledger.refused(actor, refusal, card.id)
    card = replace(card, status="redeemed", redeemed_at=ledger.now)
    entry = ledger.record("redeemed", actor, card, action=card.action, digest=card.digest)
    return Granted(confirmation=card, grant=f"{entry.seq}:{entry.digest}")


def _redeem_refusal(
    ledger: Ledger, card: Confirmation, digest: str, details: dict[str, Any] | None, drift: str
) -> Refusal | None:
    if card.status == "expired":
        return settled_refusal(card)
    if card.status == "redeemed":
        message = "This approval was already used; it is valid once. Ask again."
        return Refusal("already_redeemed", message, {"redeemed_at": card.redeemed_at})
    if card.status not in ("approved", "auto_approved"):
        message = f"This confirmation is {card.status}, not approved. Do not perform the action."
        return Refusal("not_approved", message, {"status": card.status})
    if card.redeem_by is not None and ledger.now >= card.redeem_by:
        message = "This approval was not used in time and is no longer valid. Ask again."
        return Refusal("lapsed", message, {"redeem_by": card.redeem_by})
    if drift or digest != card.digest or not (details is None or is_bound(card, details)):
        message = f"What is about to run is not what was approved{drift and f': {drift}'}. "
        message += "Ask again with what would run now."
        return Refusal("changed", message, {"digest": card.digest})
    return None


def cancel(ledger: Ledger, id_: str, by: Credential, reason: str = "") -> Confirmation | Refusal:
    """Cancel a waiting request or, for an approver, an approval that was not used yet."""
    card, refusal = checked_card(ledger, id_)
    actor = actor_of(by)
    if card is None or not (may_decide(by) or (by.kind == "agent" and card.requester == by.name)):
        return ledger.refused(actor, unknown(id_))
    is_unused = may_decide(by) and card.status in ("approved", "auto_approved")
    if refusal is None and card.status != "pending" and not is_unused:
        refusal = settled_refusal(card)
    if refusal is not None:
        return ledger.refused(actor, refusal, card.id)
    card = replace(card, status="cancelled", settled_at=ledger.now, settled_by=actor, reason=reason)
    ledger.record("cancelled", actor, card, action=card.action, reason=reason)
    return card
