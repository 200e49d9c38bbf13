"""A request is taken, expires, is cancelled, or its approval is redeemed: one transaction each."""

import secrets
from typing import Any

from msgspec.structs import replace

from journeyman.confirm.credentials import actor_of, may_decide
from journeyman.confirm.digest import digest_of, file_digests, fingerprint_of
from journeyman.confirm.masking import audited
from journeyman.confirm.policy import Policy, check_details, spellings_of
from journeyman.confirm.schemas import Accepted, Granted, LimitState
from journeyman.confirm.whitelist import entry_for
from journeyman.records.confirmation import (
    Confirmation,
    ConfirmationId,
    Credential,
    Notice,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.records.errors import WrongInput
from journeyman.store.audit import WINDOW_S
from journeyman.store.confirmations import Ledger

_SAID = ("action", "tier", "digest", "session_key", "expires_at")
_AS_ASKED = ("action", "description", "details", "requester", "claimed", "session_key")


def checked_card(ledger: Ledger, id_: str) -> tuple[Confirmation | None, Refusal | None]:
    """A card as it stands now, and why nothing may be done with it: what is stored is not what the
    audit says. One whose time is over is expired here, also when the sweeper did not come by yet.
    """
    card = ledger.find(id_)
    if card is None:
        return None, unknown(id_)
    fault = ledger.fault(card)
    if not fault and not is_bound(card, card.approved_details):
        fault = "its digest is not that of its parameters"
    if not fault:
        is_due = card.status == "pending" and ledger.now >= card.expires_at
        return _expired(ledger, card) if is_due else card, None
    return card, Refusal(
        "changed",
        f"What is stored is not what the audit says: {fault}. Somebody changed the database, so "
        "nothing is done. Look at: journeyman confirm audit verify",
    )


def is_bound(card: Confirmation, details: dict[str, Any]) -> bool:
    """Whether a card's digest is that of these details."""
    try:
        return digest_of(card, details) == card.digest
    except WrongInput:
        return False


def unknown(id_: str) -> Refusal:
    return Refusal(
        "unknown", f"There is no confirmation {id_!r}. See which there are: journeyman confirm list"
    )


_DONE = {"redeemed": "approved and used", "auto_approved": "let through"}


def settled(card: Confirmation) -> Refusal:
    """Why a card that is settled cannot be decided."""
    if card.status == "expired":
        return Refusal(
            "expired",
            "Nobody decided in time, so the answer is no. The agent has to ask again.",
            about={"status": card.status, "expired_at": card.expires_at},
        )
    return Refusal(
        "already_settled",
        f"This was {_DONE.get(card.status, card.status)} already, by {card.settled_by}.",
        about={name: getattr(card, name) for name in ("status", "settled_by", "settled_at")},
    )


def prepare(submission: Submission, policy: Policy, *, notifies: bool = True) -> Confirmation:
    """The card of a submission, as far as it can be made before the transaction. `notifies` says
    whether there are channels to tell people. Raises WrongInput when the details have no canonical
    form, name files that cannot be bound, or are not as the rule's schema says.
    """
    rule, id_ = policy.rule_for(submission.action), secrets.token_hex(16)
    if wrong := check_details(rule, submission.details):
        raise WrongInput(wrong)
    files = file_digests(submission.details, rule.file_params)
    card = Confirmation(
        **{name: getattr(submission, name) for name in _AS_ASKED},
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
        notice=Notice(status="waiting" if notifies else "none"),
    )
    digest = digest_of(card, card.details)
    return replace(card, submitted_digest=digest, digest=digest)


def submit(
    ledger: Ledger, policy: Policy, asked: Submission, card: Confirmation
) -> Accepted | Refusal:
    """Take a submission with its prepared card, or say why not. Either is written down."""
    fingerprint = fingerprint_of(card)
    answer = _answer(ledger, policy, asked, card, fingerprint)
    if isinstance(answer, Refusal):
        id_ = str(answer.about.get("id", ""))
        about = {"action": asked.action, "fingerprint": fingerprint}
        return ledger.refused(f"agent:{asked.requester}", answer, id_, **about)
    if asked.idempotency_key and not answer.replayed:
        ledger.add_key(asked.requester, asked.idempotency_key, answer.confirmation.id)
    return answer


def _answer(
    ledger: Ledger, policy: Policy, asked: Submission, prepared: Confirmation, fingerprint: str
) -> Accepted | Refusal:
    """The limit comes before every way of being let through."""
    rule, actor = policy.rule_for(asked.action), f"agent:{asked.requester}"
    # For the limits, too, another spelling of a name is the same name.
    counted_as = spellings_of(asked.action).squashed
    recent = ledger.times(asked.requester, counted_as)
    limit = policy.rate_limit_of(rule)
    if asked.idempotency_key and (told := ledger.find_key(asked.requester, asked.idempotency_key)):
        card, refusal = checked_card(ledger, told)
        if card is None or fingerprint_of(card) != fingerprint:
            return Refusal(
                "key_reused",
                "This idempotency key was used for another request. Use a new key for a new "
                "request, or send the same body.",
                about={"id": told},
            )
        if refusal is not None:
            return refusal
        ledger.note("replayed", actor, card.id)
        return Accepted(confirmation=card, replayed=True, limit=_state(ledger, recent, limit))
    if rule.tier == "forbidden":
        why = f"The policy forbids {asked.action}: {rule.why}. Nobody can approve it."
        return Refusal("forbidden_action", why)
    if len(recent) >= limit:
        return _over_limit(recent, limit, f"for {asked.action} ")
    state = _state(ledger, [*recent, ledger.now], limit)
    if (alike := ledger.waiting_alike(fingerprint)) is not None:
        card, refusal = checked_card(ledger, alike.id)
        if card is not None and refusal is None and card.status == "pending":
            # One card for identical requests: a person is asked once.
            card = replace(card, submissions=card.submissions + 1)
            about: dict[str, Any] = {"submissions": card.submissions, "counted_as": counted_as}
            ledger.record("shared", actor, card, **about)
            return Accepted(confirmation=card, shared=True, limit=state)
    owner = ledger.owner_of(asked.requester)
    entries = ledger.whitelisted(asked.action)
    if owner and not rule.self_approval:  # nobody's own agent is let through by theirs
        entries = [entry for entry in entries if entry.added_by != owner]
    entry = entry_for(policy, asked, entries, ledger.now)
    asks = entry is None and rule.tier != "routine"
    cards = ledger.times(asked.requester)
    if asks and len(cards) >= policy.requester_limit:
        return _over_limit(cards, policy.requester_limit, "")
    card = replace(
        prepared,
        owner=owner,
        created_at=ledger.now,
        expires_at=ledger.now + asked.timeout_s,
        notice=prepared.notice if asks else Notice(),
    )
    # Without the details: the digest binds them, the card has them, and the decision's entry shows
    # them. Finding the secrets in them would take longer than all the rest.
    said = {name: getattr(card, name) for name in _SAID}
    said |= {"fingerprint": fingerprint, "counted_as": counted_as, "asks": asks}
    ledger.record("submitted", actor, card, **said)
    if not asks:
        card = _let_through(ledger, policy, card, entry)
    return Accepted(confirmation=card, limit=state)


def _let_through(
    ledger: Ledger, policy: Policy, card: Confirmation, entry: WhitelistEntry | None
) -> Confirmation:
    by, reason = "policy", card.rule
    if entry is not None:
        by, reason = f"whitelist:{entry.id}", f"whitelist entry {entry.id}"
        ledger.save(replace(entry, uses=entry.uses + 1, last_used_at=ledger.now))
    until = ledger.now + policy.redeem_within_s
    card = replace(card, status="auto_approved", settled_at=ledger.now, redeem_by=until)
    card = replace(card, settled_by=by, reason=reason)
    shown = audited(card.details)
    ledger.record("auto_approved", by, card, digest=card.digest, details=shown, reason=reason)
    return card


def _state(ledger: Ledger, recent: list[float], limit: int) -> LimitState:
    first = recent[0] if recent else ledger.now
    return LimitState(limit=limit, remaining=max(0, limit - len(recent)), reset_at=first + WINDOW_S)


def _over_limit(recent: list[float], limit: int, of: str) -> Refusal:
    return Refusal(
        "over_limit",
        f"No more than {limit} requests {of}are taken in an hour, and so many were "
        "made. The action must not be done; ask again later.",
        about={"limit": limit, "remaining": 0, "reset_at": recent[0] + WINDOW_S},
    )


def expire_due(ledger: Ledger) -> tuple[int, float | None]:
    """Expire some of what is due: how many there were, and when the next one is due."""
    due = ledger.due()
    for card in due:
        _expired(ledger, card, vouched=not ledger.fault(card, of_chain=False))
    return len(due), ledger.next_expiry()


def _expired(ledger: Ledger, card: Confirmation, *, vouched: bool = True) -> Confirmation:
    card = replace(card, status="expired", settled_at=card.expires_at, settled_by="service")
    ledger.record("expired", "service", card, vouched=vouched, action=card.action)
    return card


def redeem(
    ledger: Ledger,
    policy: Policy,
    id_: str,
    by: Credential,
    *,
    digest: str,
    details: dict[str, Any] | None = None,
    drift: str = "",
) -> Granted | Refusal:
    """Use an approval up: the grant is the entry that says so. `details` are what is about to run,
    where the caller tells; `drift` says what changed outside since the request, if anything did.
    """
    card, refusal = checked_card(ledger, id_)
    actor = actor_of(by)
    if card is None or by.kind != "agent" or card.requester != by.name:
        return ledger.refused(actor, unknown(id_))
    refusal = refusal or _objection(ledger, card, digest, details, drift)
    if refusal is None and policy.rule_for(card.action).tier == "forbidden":
        why = f"The policy forbids {card.action} by now. The action must not be done."
        refusal = Refusal("forbidden_action", why)
    if refusal is not None:
        return ledger.refused(actor, refusal, card.id)
    card = replace(card, status="redeemed", redeemed_at=ledger.now)
    entry = ledger.record("redeemed", actor, card, action=card.action, digest=card.digest)
    return Granted(confirmation=card, grant=f"{entry.seq}:{entry.digest}")


def _objection(
    ledger: Ledger, card: Confirmation, digest: str, details: dict[str, Any] | None, drift: str
) -> Refusal | None:
    if card.status == "expired":
        return settled(card)
    if card.status == "redeemed":
        why = "This approval was used already; it holds for one time. Ask again."
        return Refusal("already_redeemed", why, {"redeemed_at": card.redeemed_at})
    if card.status not in ("approved", "auto_approved"):
        why = f"This is {card.status}, not approved. The action must not be done."
        return Refusal("not_approved", why, {"status": card.status})
    if card.redeem_by is not None and ledger.now >= card.redeem_by:
        why = "This approval was not used in time and holds no longer. Ask again."
        return Refusal("lapsed", why, {"redeem_by": card.redeem_by})
    if drift or digest != card.digest or not (details is None or is_bound(card, details)):
        why = f"What is to run is not what was approved{drift and f': {drift}'}. "
        return Refusal("changed", f"{why}Ask again for what it is now.", {"digest": card.digest})
    return None


def cancel(ledger: Ledger, id_: str, by: Credential, reason: str = "") -> Confirmation | Refusal:
    """Withdraw a request that waits, or, by an approver, an approval that was not used yet."""
    card, refusal = checked_card(ledger, id_)
    actor = actor_of(by)
    if card is None or not (may_decide(by) or (by.kind == "agent" and card.requester == by.name)):
        return ledger.refused(actor, unknown(id_))
    unused = may_decide(by) and card.status in ("approved", "auto_approved")
    if refusal is None and card.status != "pending" and not unused:
        refusal = settled(card)
    if refusal is not None:
        return ledger.refused(actor, refusal, card.id)
    card = replace(card, status="cancelled", settled_at=ledger.now, settled_by=actor, reason=reason)
    ledger.record("cancelled", actor, card, action=card.action, reason=reason)
    return card
