"""A person's decision on a card: who may make it, on what, and when it settles the card."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from journeyman.confirm.audit import audited_details
from journeyman.confirm.credentials import actor_of, approver_refusal
from journeyman.confirm.digest import digest_of, same_json
from journeyman.confirm.policy import EffectiveRule, Policy, edit_problem
from journeyman.confirm.requests import checked_card, settled_refusal, unknown
from journeyman.confirm.schemas import Ballot
from journeyman.records.confirmation import (
    TIERS,
    AuditKind,
    Confirmation,
    Credential,
    Refusal,
    Vote,
)
from journeyman.records.errors import WrongInput
from journeyman.store.ledger import Ledger


def decide(
    ledger: Ledger, policy: Policy, id_: str, ballot: Ballot, by: Credential
) -> Confirmation | Refusal:
    """Accept a person's decision, or refuse it. Both are recorded."""
    card, refusal = checked_card(ledger, id_)
    refusal = approver_refusal(ledger, by, "decide") or refusal
    if refusal is None and card is not None:
        card = with_current_rule(policy, card) if card.status == "pending" else card
        rule = policy.rule_for(card.action)
        refusal = next(_refusals(ledger, rule, card, ballot, by), None)
    vote_fields: dict[str, Any] = {"choice": ballot.choice, "channel": ballot.channel}
    if refusal is not None or card is None:
        known_id = "" if card is None else card.id
        return ledger.refused(actor_of(by), refusal or unknown(id_), known_id, **vote_fields)
    kind: AuditKind = "denied"
    votes = card.votes
    if ballot.choice == "approve":
        if ballot.edited is not None and not same_json(ballot.edited, card.approved_details):
            card = _edit(ledger, card, ballot.edited, by)
        # Votes of approvers who have been revoked since no longer count.
        votes = tuple(vote for vote in votes if ledger.find_credential("approver", vote.approver))
    vote_fields |= {"digest": card.digest, "reason": ballot.reason}
    vote = Vote(approver=by.name, at=ledger.now, **vote_fields)
    card = replace(card, votes=(*votes, vote))
    if ballot.choice == "approve":
        kind = "approved" if card.approvals >= card.quorum else "voted"
    if kind == "approved":
        card = replace(card, redeem_by=ledger.now + policy.redeem_within_s)
    if kind != "voted":
        settlement = {"settled_at": ledger.now, "settled_by": by.name, "reason": ballot.reason}
        card = replace(card, status=kind, **settlement)
    about = {name: getattr(card, name) for name in ("action", "digest", "approvals", "quorum")}
    about |= {"reason": ballot.reason, "channel": ballot.channel}
    ledger.record(kind, actor_of(by), card, details=audited_details(card.approved_details), **about)
    return card


def with_current_rule(policy: Policy, card: Confirmation) -> Confirmation:
    """Return the card with what the policy requires now, if that is more than at submission."""
    rule = policy.rule_for(card.action)
    if TIERS[rule.tier].is_strict and not TIERS[card.tier].is_strict:
        card = replace(card, tier=rule.tier, rule=rule.why)
    return replace(card, quorum=max(card.quorum, rule.quorum))


def _refusals(
    ledger: Ledger, rule: EffectiveRule, card: Confirmation, ballot: Ballot, by: Credential
) -> Iterator[Refusal]:
    """Yield the reasons to refuse a decision. A denial is refused only if the card is settled or
    was changed.
    """
    if card.status != "pending":
        yield settled_refusal(card)
    if ballot.digest and ballot.digest != card.digest:
        why = "The confirmation changed after it was shown to you. Look at it again."
        yield Refusal("digest_differs", why, {"digest": card.digest})
    if ballot.choice == "deny":
        return
    if not ballot.digest:
        why = "An approval needs the digest of what you were shown, which is in the confirmation."
        yield Refusal("bad_request", why)
    if TIERS[rule.tier].is_forbidden:
        why = f"The policy forbids {card.action} now: {rule.why}. It cannot be approved."
        yield Refusal("forbidden_action", why)
    if ballot.channel not in rule.channels:
        channels = ", ".join(rule.channels)
        yield Refusal("channel_not_allowed", f"{card.action} can be approved only by: {channels}.")
    # The people behind a request: the agent's owner now and then, and the names it states.
    originators = (ledger.owner_of(card.requester), card.owner, card.claimed, card.requester)
    if not rule.self_approval and by.name in originators:
        why = "This is your own request, or your agent's. Another person has to approve it."
        yield Refusal("own_request", why)
    if ballot.channel == "page" and TIERS[card.tier].is_strict and ballot.typed != card.short_id:
        why = f"{card.action} is {card.tier}: type its short id, {card.short_id}, to approve it."
        yield Refusal("bad_request", why)
    edited = ballot.edited
    if edited is not None and (why := _edit_problem(rule, card, edited)):
        yield Refusal("edit_not_allowed", why)
    # An earlier approval of what would run now counts, even if edits in between were reverted.
    digest = card.digest if edited is None else digest_of(card, edited)
    own_vote = (by.name, "approve", digest)
    if any((vote.approver, vote.choice, vote.digest) == own_vote for vote in card.votes):
        why = f"You already approved this; it needs {card.quorum} people."
        counts = {"approvals": card.approvals, "quorum": card.quorum}
        yield Refusal("already_voted", why, counts)


def _edit_problem(rule: EffectiveRule, card: Confirmation, edited: dict[str, Any]) -> str:
    try:
        digest_of(card, edited)
    except WrongInput as error:
        return str(error)
    return edit_problem(rule, card.approved_details, edited)


def _edit(
    ledger: Ledger, before: Confirmation, edited: dict[str, Any], by: Credential
) -> Confirmation:
    """Return the card with other details. Approvals of the earlier details do not cover these."""
    card = replace(before, edited=edited, digest=digest_of(before, edited))
    about: dict[str, Any] = {"digest_before": before.digest, "digest": card.digest}
    about["details_before"] = audited_details(before.approved_details)
    about["details"] = audited_details(edited)
    ledger.record("edited", actor_of(by), card, **about)
    return card
