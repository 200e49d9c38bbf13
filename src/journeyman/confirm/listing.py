"""Changing the whitelist. Every change is written down with who made it; an action that can never
be bypassed cannot be put on it.
"""

import secrets

from msgspec.structs import replace

from journeyman.confirm.deciding import actor_of, may_decide
from journeyman.confirm.policy import Policy
from journeyman.confirm.whitelist import check_entry
from journeyman.records.confirmation import Credential, Refusal, WhitelistEntry
from journeyman.store.ledger import Ledger


def add_entry(
    ledger: Ledger, policy: Policy, entry: WhitelistEntry, by: Credential
) -> WhitelistEntry | Refusal:
    """Put an entry on the whitelist, in the name of who adds it."""
    entry = replace(
        entry,
        id=secrets.token_hex(6),
        added_by=by.name,
        added_at=ledger.now,
        uses=0,
        last_used_at=None,
        revoked_at=None,
        revoked_by="",
    )
    refusal = None
    if not _may_change(ledger, by):
        refusal = _only_approvers()
    elif why := check_entry(entry, policy):
        refusal = Refusal(code="bad_request", message=why)
    if refusal is not None:
        ledger.note("refused", actor_of(by), code=refusal.code, whitelist=entry.action)
        return refusal
    ledger.add_entry(entry)
    ledger.note("whitelist_added", actor_of(by), entry=entry)
    return entry


def revoke_entry(ledger: Ledger, id_: str, by: Credential) -> WhitelistEntry | Refusal:
    """Take an entry off the whitelist."""
    found = ledger.find_entry(id_)
    if not _may_change(ledger, by):
        ledger.note("refused", actor_of(by), code="not_allowed", whitelist=id_)
        return _only_approvers()
    if found is None or found.revoked_at is not None:
        ledger.note("refused", actor_of(by), code="unknown", whitelist=id_)
        return Refusal(
            code="unknown",
            message=f"The whitelist has no entry {id_!r}. "
            "See which there are: journeyman confirm whitelist list",
        )
    gone = replace(found, revoked_at=ledger.now, revoked_by=by.name)
    ledger.save_entry(gone)
    ledger.note("whitelist_revoked", actor_of(by), entry=gone)
    return gone


def _may_change(ledger: Ledger, by: Credential) -> bool:
    """Whether it is an approver, and still one."""
    return may_decide(by) and ledger.find_credential("approver", by.name) is not None


def _only_approvers() -> Refusal:
    return Refusal(code="not_allowed", message="Only an approver can change the whitelist.")
