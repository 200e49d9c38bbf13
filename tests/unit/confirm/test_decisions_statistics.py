"""Statistics of decisions."""

from typing import Any

from tests.unit.notify.fake_services import card

from journeyman.confirm.service import stats_of


def decided(status: str, seconds: float, **more: Any) -> Any:
    at = card().created_at
    return card(status=status, settled_at=at + seconds, **{"settled_by": "ann", **more})


def test_automatic_approvals_are_counted_separately() -> None:
    stats = stats_of(
        [
            decided("approved", 2.0),
            decided("redeemed", 4.0),
            decided("denied", 9.0, action="pay"),
            decided("expired", 300.0, settled_by="service"),
            decided("cancelled", 1.0, settled_by="agent:ci"),
            decided("auto_approved", 0.0, settled_by="policy"),
            decided("redeemed", 0.0, settled_by="whitelist:e1"),
            card(),
        ],
        days=30,
    )
    assert (stats.asked, stats.approved, stats.denied, stats.expired) == (6, 2, 1, 1)
    assert (stats.auto_approved, stats.median_decision_s) == (2, 4.0)
    assert [(one.action, one.asked, one.median_decision_s) for one in stats.actions] == [
        ("deploy_production", 5, 3.0),
        ("pay", 1, 9.0),
    ]
