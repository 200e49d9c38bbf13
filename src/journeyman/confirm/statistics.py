"""How people decide, from the cards alone. Approving nearly everything within seconds means that
too much is asked: people stop reading.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from journeyman.confirm.answers import ActionStats, Stats
from journeyman.records.confirmation import Confirmation, ConfirmationStatus


def stats_of(cards: Iterable[Confirmation], *, days: int) -> Stats:
    """Counts over all cards and by action, the most asked first."""
    asked, auto = [], 0
    by_action: defaultdict[str, list[Confirmation]] = defaultdict(list)
    for card in cards:
        if card.settled_by == "policy" or card.settled_by.startswith("whitelist:"):
            auto += 1
            continue
        asked.append(card)
        by_action[card.action].append(card)
    actions = tuple(
        ActionStats(
            action=action,
            asked=len(mine),
            approved=_approved(mine),
            denied=_count(mine, "denied"),
            expired=_count(mine, "expired"),
            median_decision_s=_median_s(mine),
        )
        for action, mine in sorted(by_action.items(), key=lambda one: (-len(one[1]), one[0]))
    )
    return Stats(
        days=days,
        asked=len(asked),
        approved=_approved(asked),
        denied=_count(asked, "denied"),
        expired=_count(asked, "expired"),
        auto_approved=auto,
        median_decision_s=_median_s(asked),
        actions=actions,
    )


def _count(cards: Sequence[Confirmation], status: ConfirmationStatus) -> int:
    return sum(card.status == status for card in cards)


def _approved(cards: Sequence[Confirmation]) -> int:
    return _count(cards, "approved") + _count(cards, "redeemed")


def _median_s(cards: Sequence[Confirmation]) -> float | None:
    """How long people take to decide, as far as they do."""
    decided = [
        card.settled_at - card.created_at
        for card in cards
        if card.settled_at is not None and card.status in ("approved", "redeemed", "denied")
    ]
    return median(decided) if decided else None
