"""After the decision: an approval is used once, for exactly what was approved, or withdrawn by who
asked for it.
"""

from typing import Any

from msgspec.structs import replace

from journeyman.confirm.deciding import actor_of, may_decide, settled, unknown
from journeyman.confirm.expiring import settle_if_due
from journeyman.confirm.policy import Policy
from journeyman.confirm.submitting import digest_of_card
from journeyman.records.confirmation import Confirmation, Credential, Refusal
from journeyman.records.errors import WrongInput
from journeyman.store.ledger import Ledger


def redeem(
    ledger: Ledger,
    policy: Policy,
    id_: str,
    by: Credential,
    *,
    digest: str,
    details: dict[str, Any] | None = None,
    drift: str = "",
) -> Confirmation | Refusal:
    """Use an approval up. `details` are what is about to run, where the caller tells; `drift` says
    what changed outside since the request, if anything did.
    """
    card = ledger.find(id_)
    if card is None or by.kind != "agent" or card.requester != by.name:
        return _noted(ledger, by, "", unknown(id_))
    card = settle_if_due(ledger, card)
    refusal = _objection(card, ledger.now, digest, details, drift)
    if refusal is None and policy.rule_for(card.action).tier == "forbidden":
        refusal = Refusal(
            code="forbidden_action",
            message=f"The policy forbids {card.action} by now. The action must not be done.",
        )
    if refusal is None and not ledger.is_approval_noted(card):
        refusal = Refusal(
            code="not_approved",
            message="The audit knows of no approval of this. Somebody changed the database: "
            "journeyman confirm audit verify",
        )
    if refusal is not None:
        return _noted(ledger, by, card.id, refusal)
    card = replace(card, status="redeemed", redeemed_at=ledger.now)
    ledger.save(card)
    ledger.note("redeemed", actor_of(by), card.id, action=card.action, digest=card.digest)
    return card


def cancel(ledger: Ledger, id_: str, by: Credential, reason: str = "") -> Confirmation | Refusal:
    """Withdraw a request that waits: who asked for it may, and an approver, who may also take back
    an approval that was not used yet.
    """
    card = ledger.find(id_)
    if card is None or not (may_decide(by) or (by.kind == "agent" and card.requester == by.name)):
        return _noted(ledger, by, "", unknown(id_))
    card = settle_if_due(ledger, card)
    unused = may_decide(by) and card.status in ("approved", "auto_approved")
    if card.status != "pending" and not unused:
        return _noted(ledger, by, card.id, settled(card))
    card = replace(
        card, status="cancelled", settled_at=ledger.now, settled_by=actor_of(by), reason=reason
    )
    ledger.save(card)
    ledger.note("cancelled", actor_of(by), card.id, action=card.action, reason=reason)
    return card


def _objection(
    card: Confirmation, now: float, digest: str, details: dict[str, Any] | None, drift: str
) -> Refusal | None:
    if card.status == "expired":
        return settled(card)
    if card.status == "redeemed":
        return Refusal(
            code="already_redeemed",
            message="This approval was used already; it holds for one time. Ask again.",
            about={"redeemed_at": card.redeemed_at},
        )
    if card.status not in ("approved", "auto_approved"):
        return Refusal(
            code="not_approved",
            message=f"This is {card.status}, not approved. The action must not be done.",
            about={"status": card.status},
        )
    if card.redeem_by is not None and now >= card.redeem_by:
        return Refusal(
            code="lapsed",
            message="This approval was not used in time and holds no longer. Ask again.",
            about={"redeem_by": card.redeem_by},
        )
    if drift or digest != card.digest or _differs(card, details):
        return Refusal(
            code="changed",
            message=f"What is to run is not what was approved{drift and f': {drift}'}. "
            "Ask again for what it is now.",
            about={"digest": card.digest},
        )
    return None


def _differs(card: Confirmation, details: dict[str, Any] | None) -> bool:
    if details is None:
        return False
    try:
        return digest_of_card(card, details) != card.digest
    except WrongInput:
        return True


def _noted(ledger: Ledger, by: Credential, id_: str, refusal: Refusal) -> Refusal:
    ledger.note("refused", actor_of(by), id_, code=refusal.code)
    return refusal
