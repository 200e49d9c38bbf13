"""Taking a request: in which order what speaks against it is asked, and what is counted."""

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
from journeyman.records.errors import WrongInput
from journeyman.store.confirmations import Confirmations
from journeyman.store.store import Store

NOW = 1_800_000_000.0
POLICY = Policy(
    rules=(
        Rule(action="never", tier="forbidden"),
        Rule(action="typed", tier="ask", schema={"required": ["n"]}),
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
    given = {"action": "send_mail", "description": "d", "requester": requester, **more}
    asked = Submission(**given)
    prepared = prepare(asked, POLICY)
    with known.writing(now) as ledger:
        return submit(ledger, POLICY, asked, prepared)


def taken(known: Confirmations, requester: str, now: float = NOW, **more: Any) -> Accepted:
    answer = ask(known, requester, now, **more)
    assert isinstance(answer, Accepted), answer
    return answer


def test_the_limit_counts_also_what_shares_a_card(known: Confirmations) -> None:
    assert [taken(known, "a").shared for _ in range(2)] == [False, True]
    assert refused_as(ask(known, "a")) == "over_limit"


def test_what_is_told_again_counts_for_nothing(known: Confirmations) -> None:
    first = taken(known, "b", idempotency_key="k")
    again = [taken(known, "b", idempotency_key="k") for _ in range(5)]
    assert all(one.replayed for one in again)
    assert {one.limit.remaining for one in (first, *again)} == {1}
    assert again[-1].confirmation.submissions == 1


def test_a_card_whose_time_is_over_is_shared_with_nobody(known: Confirmations) -> None:
    """Also when the sweeper has not come by."""
    first = taken(known, "c", timeout_s=30, idempotency_key="k").confirmation
    late = taken(known, "c", now=NOW + 30, timeout_s=30)
    assert (late.shared, late.confirmation.id == first.id) == (False, False)
    told = taken(known, "c", now=NOW + 30, idempotency_key="k").confirmation
    assert (told.id, told.status) == (first.id, "expired")


def test_what_is_forbidden_or_does_not_fit_uses_up_no_limit(known: Confirmations) -> None:
    for _ in range(5):
        assert refused_as(ask(known, "d", action="never")) == "forbidden_action"
        with pytest.raises(WrongInput, match="required property"):
            ask(known, "d", action="typed")
    assert taken(known, "d", action="typed", details={"n": 1}).limit.remaining == 1


def test_a_new_card_has_what_the_rule_says(known: Confirmations) -> None:
    card = taken(known, "e", action="quorate", timeout_s=45).confirmation
    assert (card.quorum, card.tier, card.status) == (3, "ask", "pending")
    assert card.expires_at - card.created_at == 45
    assert card.notice.status == "waiting"
    assert card.id.startswith(card.short_id)
    assert "rule 3" in card.rule
