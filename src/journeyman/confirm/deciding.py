"""A person's word on a card: who may say it, on what, and when it settles the matter. The first
that settles it wins; whoever comes later is told who that was.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from journeyman.confirm.answers import Ballot
from journeyman.confirm.digest import same_json
from journeyman.confirm.expiring import settle_if_due
from journeyman.confirm.masking import audited
from journeyman.confirm.policy import Policy, Rule, check_details, edits_allowed
from journeyman.confirm.second_factor import check_code
from journeyman.confirm.submitting import digest_of_card
from journeyman.records.confirmation import (
    AuditKind,
    Confirmation,
    Credential,
    Refusal,
    Vote,
)
from journeyman.records.errors import WrongInput
from journeyman.store.ledger import Ledger

_MOST_WRONG_CODES = 5
_CODES_WITHIN_S = 600.0
"""A code has six digits: whoever may try often enough finds one."""


def actor_of(credential: Credential) -> str:
    """How the audit names who did something."""
    kind = "agent" if credential.kind == "agent" else "approver"
    return f"{kind}:{credential.name}"


def may_decide(credential: Credential) -> bool:
    """An agent's credential never may, nor a link that only opens one card."""
    return credential.kind in ("approver", "session") and not credential.view_only


def decide(
    ledger: Ledger, policy: Policy, id_: str, ballot: Ballot, by: Credential
) -> Confirmation | Refusal:
    """Take a person's word, or say why not. Either is written down."""
    card = ledger.find(id_)
    if card is not None:
        card = settle_if_due(ledger, card)
        if card.status == "pending":
            card = by_todays_rule(policy, card)
    refusal = _objection(ledger, policy, card, ballot, by)
    if refusal is not None or card is None:
        refusal = refusal or unknown(id_)
        ledger.note(
            "refused",
            actor_of(by),
            "" if card is None else card.id,
            code=refusal.code,
            choice=ballot.choice,
            channel=ballot.channel,
        )
        return refusal
    if ballot.choice == "deny":
        return _denied(ledger, card, ballot, by)
    if ballot.edited is not None and not same_json(ballot.edited, card.approved_details):
        card = _edited(ledger, card, ballot.edited, by)
    return _approved(ledger, policy, card, ballot, by)


def by_todays_rule(policy: Policy, card: Confirmation) -> Confirmation:
    """The card with what the policy asks for now, where that is more than when it was submitted."""
    rule = policy.rule_for(card.action)
    stricter = rule.tier == "critical" and card.tier == "ask"
    if not stricter and rule.quorum <= card.quorum:
        return card
    return replace(
        card,
        quorum=max(card.quorum, rule.quorum),
        tier=rule.tier if stricter else card.tier,
        rule=rule.why if stricter else card.rule,
    )


def unknown(id_: str) -> Refusal:
    return Refusal(
        code="unknown",
        message=f"There is no confirmation {id_!r}. See which there are: journeyman confirm list",
    )


_DONE = {"redeemed": "approved and used", "auto_approved": "let through"}


def settled(card: Confirmation) -> Refusal:
    """Why a card that is settled cannot be decided."""
    if card.status == "expired":
        return Refusal(
            code="expired",
            message="Nobody decided in time, so the answer is no. The agent has to ask again.",
            about={"status": card.status, "expired_at": card.expires_at},
        )
    return Refusal(
        code="already_settled",
        message=f"This was {_DONE.get(card.status, card.status)} already, by {card.settled_by}.",
        about={
            "status": card.status,
            "settled_by": card.settled_by,
            "settled_at": card.settled_at,
        },
    )


def _objection(
    ledger: Ledger, policy: Policy, card: Confirmation | None, ballot: Ballot, by: Credential
) -> Refusal | None:
    if not may_decide(by):
        return Refusal(
            code="not_allowed",
            message="Only an approver can decide. An agent's token, or a link that opens one "
            "card, never can.",
        )
    if ledger.find_credential("approver", by.name) is None:
        return Refusal(code="not_allowed", message=f"{by.name} is not an approver any more.")
    if card is None:
        return None
    if card.status != "pending":
        return settled(card)
    rule = policy.rule_for(card.action)
    objections = _objections_to_both(card, ballot)
    if ballot.choice == "approve":
        objections = _chained(objections, _objections_to_yes(ledger, rule, card, ballot, by))
    return next(objections, None)


def _chained(*ways: Iterator[Refusal]) -> Iterator[Refusal]:
    for way in ways:
        yield from way


def _objections_to_both(card: Confirmation, ballot: Ballot) -> Iterator[Refusal]:
    if ballot.digest and ballot.digest != card.digest:
        yield Refusal(
            code="digest_differs",
            message="What you were shown is not what is stored now. Look at the card again.",
            about={"digest": card.digest},
        )


def _objections_to_yes(
    ledger: Ledger, rule: Rule, card: Confirmation, ballot: Ballot, by: Credential
) -> Iterator[Refusal]:
    if not ballot.digest:
        yield Refusal(
            code="bad_request",
            message="An approval needs the digest of what you were shown. The card has it.",
        )
    if rule.tier == "forbidden":
        yield Refusal(
            code="forbidden_action",
            message=f"The policy forbids {card.action} now: {rule.why}. Nobody can approve it.",
        )
    if ballot.channel not in rule.channels:
        ways = ", ".join(rule.channels)
        yield Refusal(
            code="channel_not_allowed",
            message=f"{card.action} can be approved only by: {ways}.",
        )
    if not rule.self_approval and by.name in _asked_by(ledger, card):
        yield Refusal(
            code="own_request",
            message="This is your own request, or your agent's. Another person has to approve it.",
        )
    if ballot.channel == "page" and card.tier == "critical" and ballot.typed != card.short_id:
        yield Refusal(
            code="bad_request",
            message=f"{card.action} is critical: type its short id, {card.short_id}, to approve.",
        )
    if ballot.edited is not None and (why := _edit_objection(rule, card, ballot.edited)):
        yield Refusal(code="edit_not_allowed", message=why)
    elif _has_approved(card, ballot, by):
        yield Refusal(
            code="already_voted",
            message=f"You approved this already; it needs {card.quorum} people.",
            about={"approvals": card.approvals, "quorum": card.quorum},
        )
    if rule.second_factor:
        yield from _code_objection(ledger, ballot, by)


def _asked_by(ledger: Ledger, card: Confirmation) -> set[str]:
    """The people behind a request: whose agent it is or was, and whom it names."""
    known = ledger.find_credential("agent", card.requester)
    owner = known.credential.owner if known is not None else ""
    return {name for name in (owner, card.owner, card.claimed, card.requester) if name}


def _has_approved(card: Confirmation, ballot: Ballot, by: Credential) -> bool:
    """Whether a person said yes before to what would run now: also when an edit leaves everything
    as it is, or leads back to it. People count once.
    """
    digest = card.digest if ballot.edited is None else digest_of_card(card, ballot.edited)
    return any(
        vote.approver == by.name and vote.choice == "approve" and vote.digest == digest
        for vote in card.votes
    )


def _edit_objection(rule: Rule, card: Confirmation, edited: dict[str, Any]) -> str:
    try:
        digest_of_card(card, edited)
    except WrongInput as error:
        return str(error)
    for name in rule.file_params:
        if not same_json(edited.get(name), card.approved_details.get(name)):
            return f"{name!r} names a file whose content is bound to the request. Deny it instead."
    return edits_allowed(rule, card.approved_details, edited) or check_details(rule, edited)


def _code_objection(ledger: Ledger, ballot: Ballot, by: Credential) -> Iterator[Refusal]:
    known = ledger.find_credential("approver", by.name)
    if known is None or not known.totp_secret:
        yield Refusal(
            code="second_factor",
            message=f"This needs a one-time code, and {by.name} has no device for codes. Add one: "
            f"journeyman confirm approver totp {by.name}",
        )
        return
    wrong = [at for at in known.credential.wrong_codes_at if at > ledger.now - _CODES_WITHIN_S]
    if len(wrong) >= _MOST_WRONG_CODES:
        yield Refusal(
            code="second_factor",
            message="Too many wrong codes were given. Wait ten minutes, then use a new one.",
        )
        return
    step = check_code(known.totp_secret, ballot.code, ledger.now, known.totp_step)
    if step is None:
        if ballot.code:
            tried = replace(known.credential, wrong_codes_at=(*wrong, ledger.now))
            ledger.save_credential(tried)
        yield Refusal(
            code="second_factor",
            message="This needs a one-time code from your device; the one given is missing, "
            "wrong, or was used.",
        )
        return
    ledger.use_totp_step(known.credential.id, step)


def _denied(ledger: Ledger, card: Confirmation, ballot: Ballot, by: Credential) -> Confirmation:
    card = replace(
        card,
        status="denied",
        settled_at=ledger.now,
        settled_by=by.name,
        reason=ballot.reason,
        votes=(*card.votes, _vote(ledger, card, ballot, by)),
    )
    ledger.save(card)
    _note(ledger, "denied", card, ballot, by)
    return card


def _edited(
    ledger: Ledger, card: Confirmation, edited: dict[str, Any], by: Credential
) -> Confirmation:
    """The card with other details. Who approved the earlier ones did not approve these."""
    digest = digest_of_card(card, edited)
    ledger.note(
        "edited",
        actor_of(by),
        card.id,
        digest_before=card.digest,
        digest=digest,
        details_before=audited(card.approved_details),
        details=audited(edited),
    )
    return replace(card, edited=edited, digest=digest)


def _approved(
    ledger: Ledger, policy: Policy, card: Confirmation, ballot: Ballot, by: Credential
) -> Confirmation:
    # Who left before the others decided has no say in it any more.
    votes = [one for one in card.votes if ledger.find_credential("approver", one.approver)]
    card = replace(card, votes=(*votes, _vote(ledger, card, ballot, by)))
    if card.approvals < card.quorum:
        ledger.save(card)
        _note(ledger, "voted", card, ballot, by)
        return card
    card = replace(
        card,
        status="approved",
        settled_at=ledger.now,
        settled_by=by.name,
        reason=ballot.reason,
        redeem_by=ledger.now + policy.redeem_within_s,
    )
    ledger.save(card)
    _note(ledger, "approved", card, ballot, by)
    return card


def _vote(ledger: Ledger, card: Confirmation, ballot: Ballot, by: Credential) -> Vote:
    return Vote(
        approver=by.name,
        choice=ballot.choice,
        at=ledger.now,
        digest=card.digest,
        reason=ballot.reason,
        channel=ballot.channel,
    )


def _note(
    ledger: Ledger, kind: AuditKind, card: Confirmation, ballot: Ballot, by: Credential
) -> None:
    ledger.note(
        kind,
        actor_of(by),
        card.id,
        action=card.action,
        digest=card.digest,
        details=audited(card.approved_details),
        reason=ballot.reason,
        channel=ballot.channel,
        approvals=card.approvals,
        quorum=card.quorum,
    )
