"""The end of a card's time. Nobody's silence is a yes: what was not decided by then is expired, and
expired is its own word beside denied and cancelled.
"""

from msgspec.structs import replace

from journeyman.records.confirmation import Confirmation
from journeyman.store.ledger import Ledger

SERVICE = "service"
"""The actor of what the service does by itself."""


def settle_if_due(ledger: Ledger, card: Confirmation) -> Confirmation:
    """The card, expired if its time is over. Called before anything is decided on it, so that a
    late word finds it expired also when the sweeper did not come by yet.
    """
    if card.status != "pending" or ledger.now < card.expires_at:
        return card
    expired = replace(card, status="expired", settled_at=card.expires_at, settled_by=SERVICE)
    ledger.save(expired)
    ledger.note("expired", SERVICE, card.id, action=card.action, digest=card.digest)
    return expired


def expire_due(ledger: Ledger) -> int:
    """Expire what is due, some at a time; how many there were."""
    due = ledger.due()
    for card in due:
        settle_if_due(ledger, card)
    return len(due)
