"""A person's word on a card: who may say it, on what, and when it settles the matter."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from journeyman.confirm.credentials import actor_of, check_code, objection_to
from journeyman.confirm.digest import digest_of, same_json
from journeyman.confirm.masking import audited
from journeyman.confirm.policy import Policy, RuleInForce, check_details, edits_allowed
from journeyman.confirm.requests import checked_card, settled, unknown
from journeyman.confirm.schemas import ActionStats, Ballot, Stats
from journeyman.records.confirmation import (
    AuditKind,
    Confirmation,
    Credential,
    Refusal,
    Vote,
)
from journeyman.records.errors import WrongInput
from journeyman.store.confirmations import Ledger

_MOST_WRONG_CODES = 5
_CODES_WITHIN_S = 600.0
"""A code has six digits: whoever may try often enough finds one."""


def decide(
    ledger: Ledger, policy: Policy, id_: str, ballot: Ballot, by: Credential
) -> Confirmation | Refusal:
    """Take a person's word, or say why not. Either is written down."""
    card, refusal = checked_card(ledger, id_)
    refusal = objection_to(ledger, by, "decide") or refusal
    if refusal is None and card is not None:
        card = by_todays_rule(policy, card) if card.status == "pending" else card
        rule = policy.rule_for(card.action)
        refusal = next(_objections(ledger, rule, card, ballot, by), None)
    said: dict[str, Any] = {"choice": ballot.choice, "channel": ballot.channel}
    if refusal is not None or card is None:
        which = "" if card is None else card.id
        return ledger.refused(actor_of(by), refusal or unknown(id_), which, **said)
    kind: AuditKind = "denied"
    votes = card.votes
    if ballot.choice == "approve":
        if ballot.edited is not None and not same_json(ballot.edited, card.approved_details):
            card = _edited(ledger, card, ballot.edited, by)
        # Who left before the others decided has no say in it any more.
        votes = tuple(one for one in votes if ledger.find_credential("approver", one.approver))
    vote = Vote(approver=by.name, at=ledger.now, digest=card.digest, reason=ballot.reason, **said)
    card = replace(card, votes=(*votes, vote))
    if ballot.choice == "approve":
        kind = "approved" if card.approvals >= card.quorum else "voted"
    if kind == "approved":
        card = replace(card, redeem_by=ledger.now + policy.redeem_within_s)
    if kind != "voted":
        by_whom = {"settled_at": ledger.now, "settled_by": by.name, "reason": ballot.reason}
        card = replace(card, status=kind, **by_whom)
    about = {name: getattr(card, name) for name in ("action", "digest", "approvals", "quorum")}
    about |= {"reason": ballot.reason, "channel": ballot.channel}
    ledger.record(kind, actor_of(by), card, details=audited(card.approved_details), **about)
    return card


def by_todays_rule(policy: Policy, card: Confirmation) -> Confirmation:
    """The card with what the policy asks for now, where that is more than when it was submitted."""
    rule = policy.rule_for(card.action)
    if rule.tier == "critical" and card.tier == "ask":
        card = replace(card, tier=rule.tier, rule=rule.why)
    return replace(card, quorum=max(card.quorum, rule.quorum))


def _objections(
    ledger: Ledger, rule: RuleInForce, card: Confirmation, ballot: Ballot, by: Credential
) -> Iterator[Refusal]:
    """What speaks against it; against a no, nothing but time and a card that changed."""
    if card.status != "pending":
        yield settled(card)
    if ballot.digest and ballot.digest != card.digest:
        why = "What you were shown is not what is stored now. Look at the card again."
        yield Refusal("digest_differs", why, {"digest": card.digest})
    if ballot.choice == "deny":
        return
    if not ballot.digest:
        why = "An approval needs the digest of what you were shown. The card has it."
        yield Refusal("bad_request", why)
    if rule.tier == "forbidden":
        why = f"The policy forbids {card.action} now: {rule.why}. Nobody can approve it."
        yield Refusal("forbidden_action", why)
    if ballot.channel not in rule.channels:
        ways = ", ".join(rule.channels)
        yield Refusal("channel_not_allowed", f"{card.action} can be approved only by: {ways}.")
    # The people behind a request: whose agent it is or was, and whom it names.
    behind = (ledger.owner_of(card.requester), card.owner, card.claimed, card.requester)
    if not rule.self_approval and by.name in behind:
        why = "This is your own request, or your agent's. Another person has to approve it."
        yield Refusal("own_request", why)
    if ballot.channel == "page" and card.tier == "critical" and ballot.typed != card.short_id:
        why = f"{card.action} is critical: type its short id, {card.short_id}, to approve."
        yield Refusal("bad_request", why)
    edited = ballot.edited
    if edited is not None and (why := _edit_objection(rule, card, edited)):
        yield Refusal("edit_not_allowed", why)
    # Who said yes before to what would run now, also after an edit back to it.
    digest = card.digest if edited is None else digest_of(card, edited)
    if any(
        (one.approver, one.choice, one.digest) == (by.name, "approve", digest) for one in card.votes
    ):
        why = f"You approved this already; it needs {card.quorum} people."
        counted = {"approvals": card.approvals, "quorum": card.quorum}
        yield Refusal("already_voted", why, counted)
    if rule.second_factor and (why := _code_objection(ledger, ballot, by)):
        yield Refusal("second_factor", why)


def _edit_objection(rule: RuleInForce, card: Confirmation, edited: dict[str, Any]) -> str:
    try:
        digest_of(card, edited)
    except WrongInput as error:
        return str(error)
    return edits_allowed(rule, card.approved_details, edited) or check_details(rule, edited)


def _code_objection(ledger: Ledger, ballot: Ballot, by: Credential) -> str:
    known = ledger.find_credential("approver", by.name)
    secret, last_step = ("", 0) if known is None else ledger.totp_of(known)
    if known is None or not secret:
        return (
            f"This needs a one-time code, and {by.name} has no device for codes. Add one: "
            f"journeyman confirm approver totp {by.name}"
        )
    wrong = [at for at in known.wrong_codes_at if at > ledger.now - _CODES_WITHIN_S]
    if len(wrong) >= _MOST_WRONG_CODES:
        return "Too many wrong codes were given. Wait ten minutes, then use a new one."
    step = check_code(secret, ballot.code, ledger.now, last_step)
    if step is not None:
        ledger.save(known, totp_step=step)
        return ""
    if ballot.code:
        ledger.save(replace(known, wrong_codes_at=(*wrong, ledger.now)))
    return "This needs a one-time code from your device; yours is missing, wrong, or was used."


def _edited(
    ledger: Ledger, before: Confirmation, edited: dict[str, Any], by: Credential
) -> Confirmation:
    """The card with other details. Who approved the earlier ones did not approve these."""
    card = replace(before, edited=edited, digest=digest_of(before, edited))
    about: dict[str, Any] = {"digest_before": before.digest, "digest": card.digest}
    about |= {"details_before": audited(before.approved_details), "details": audited(edited)}
    ledger.record("edited", actor_of(by), card, **about)
    return card


def stats_of(cards: Sequence[Confirmation], *, days: int) -> Stats:
    """How people decide, over all cards and by action, the most asked first."""
    asked = [
        card
        for card in cards
        if card.settled_by != "policy" and not card.settled_by.startswith("whitelist:")
    ]
    actions = Counter(sorted(card.action for card in asked))
    by_action = tuple(
        ActionStats(action=name, **_counts([card for card in asked if card.action == name]))
        for name, _ in actions.most_common()
    )
    passed_by = len(cards) - len(asked)
    return Stats(days=days, auto_approved=passed_by, actions=by_action, **_counts(asked))


def _counts(cards: Sequence[Confirmation]) -> dict[str, Any]:
    found = Counter(card.status for card in cards)
    decided = [
        card.settled_at - card.created_at
        for card in cards
        if card.settled_at is not None and card.status in ("approved", "redeemed", "denied")
    ]
    return {
        "asked": len(cards),
        "approved": found["approved"] + found["redeemed"],
        "denied": found["denied"],
        "expired": found["expired"],
        "median_decision_s": median(decided) if decided else None,
    }
