"""Submitting requests: refusals and their order, rate limits, and shared confirmations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.confirm_core import refused_as
from tests.databases import database

from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.requests import prepare, submit
from journeyman.confirm.schemas import Accepted
from journeyman.records.confirmation import Refusal, Submission
from journeyman.store.confirmations import Confirmations
from journeyman.store.store import Store

NOW = 1_800_000_000.0
POLICY = Policy(
    rules=(
        Rule(action="never", tier="forbidden"),
        Rule(action="quorate", tier="ask", quorum=3),
    ),
    rate_limit=2,
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confirmations]:
    home: Path = tmp_path_factory.mktemp("home")
    with Store(database(home)) as store:
        yield store.confirmations


def ask(known: Confirmations, requester: str, now: float = NOW, **more: Any) -> Accepted | Refusal:
    given = {"action": f"mail_{requester}", "description": "d", "requester": requester, **more}
    asked = Submission(**given)
    prepared = prepare(asked, POLICY)
    with known.writing(now) as ledger:
        return submit(ledger, POLICY, asked, prepared)


def accepted(known: Confirmations, requester: str, now: float = NOW, **more: Any) -> Accepted:
    answer = ask(known, requester, now, **more)
    assert isinstance(answer, Accepted), answer
    return answer


def test_limit_counts_requests_that_share_a_confirmation(known: Confirmations) -> None:
    assert [accepted(known, "a").shared for _ in range(2)] == [False, True]
    assert refused_as(ask(known, "a")) == "over_limit"
    assert refused_as(ask(known, "another", action="mail_a")) == "over_limit"  # all together


def test_replayed_request_does_not_count(known: Confirmations) -> None:
    accepted(known, "b", idempotency_key="k")
    again = [accepted(known, "b", idempotency_key="k") for _ in range(5)]
    assert all(one.replayed for one in again)
    assert again[-1].confirmation.submissions == 1


def test_expired_confirmation_is_not_shared(known: Confirmations) -> None:
    """This holds even before the sweep has marked it as expired."""
    first = accepted(known, "c", timeout_s=30, idempotency_key="k").confirmation
    late = accepted(known, "c", now=NOW + 30, timeout_s=30)
    assert (late.shared, late.confirmation.id == first.id) == (False, False)
    replayed = accepted(known, "c", now=NOW + 30, idempotency_key="k").confirmation
    assert (replayed.id, replayed.status) == (first.id, "expired")


def test_refused_requests_do_not_count(known: Confirmations) -> None:
    for _ in range(5):
        assert refused_as(ask(known, "d", action="never")) == "forbidden_action"


def test_new_confirmation_follows_its_rule(known: Confirmations) -> None:
    card = accepted(known, "e", action="quorate", timeout_s=45).confirmation
    assert (card.quorum, card.tier, card.status) == (3, "ask", "pending")
    assert card.expires_at - card.created_at == 45
    assert card.notice.status == "waiting"
    assert card.id.startswith(card.short_id)
    assert "rule 2" in card.rule
