"""Decisions: when they are refused, and what they record."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.confirm_core import refused_as
from tests.databases import database

from journeyman.confirm import credentials
from journeyman.confirm.decisions import decide
from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.requests import prepare, submit
from journeyman.confirm.schemas import Accepted, Ballot
from journeyman.records.confirmation import Confirmation, Credential, Refusal, Submission
from journeyman.store.confirmations import Confirmations
from journeyman.store.store import Store

NOW = 1_800_000_000.0
POLICY = Policy(rate_limit=1_000, requester_limit=1_000)


class Desk:
    """An approver, and confirmations to decide on."""

    def __init__(self, known: Confirmations) -> None:
        self.known = known
        with known.writing(NOW) as ledger:
            self.ann = credentials.add_approver(ledger, "ann", by="test")[0]
            credentials.add_agent(ledger, "builder", by="test")

    def card(self, action: str, policy: Policy = POLICY, **more: Any) -> Confirmation:
        given = {"action": action, "description": "d", "requester": "builder", **more}
        asked = Submission(**given)
        prepared = prepare(asked, policy)
        with self.known.writing(NOW) as ledger:
            answer = submit(ledger, policy, asked, prepared)
        assert isinstance(answer, Accepted), answer
        return answer.confirmation

    def decide(
        self,
        card: Confirmation,
        choice: Any = "approve",
        *,
        by: Credential | None = None,
        policy: Policy = POLICY,
        **more: Any,
    ) -> Confirmation | Refusal:
        ballot = Ballot(choice=choice, **{"digest": card.digest, **more})
        with self.known.writing(NOW + 1) as ledger:
            return decide(ledger, policy, card.id, ballot, by or self.ann)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("home")
    with Store(database(home)) as store:
        yield Desk(store.confirmations)


def test_current_policy_applies_to_earlier_requests(desk: Desk) -> None:
    card = desk.card("tighten")
    now = Policy(rules=(Rule(action="tighten", tier="forbidden"),))
    assert refused_as(desk.decide(card, policy=now)) == "forbidden_action"
    now = Policy(rules=(Rule(action="tighten", tier="critical"),))
    assert refused_as(desk.decide(card, policy=now, channel="telegram")) == "channel_not_allowed"
    denied = desk.decide(card, "deny", policy=Policy(rules=now.rules))
    assert isinstance(denied, Confirmation)


def test_denial_needs_no_digest_but_a_wrong_one_is_refused(desk: Desk) -> None:
    card = desk.card("say_no")
    assert refused_as(desk.decide(card, "deny", digest="sha256:0")) == "digest_differs"
    done = desk.decide(card, "deny", digest="", reason="why")
    assert isinstance(done, Confirmation)
    assert (done.status, done.reason, done.votes[0].choice) == ("denied", "why", "deny")


def test_unknown_confirmation_is_refused(desk: Desk) -> None:
    missing = desk.decide(
        Confirmation(
            id="0" * 32,  # type: ignore[arg-type]
            short_id="000000",
            action="a",
            tier="ask",
            rule="",
            description="",
            details={},
            requester="",
            nonce="",
            submitted_digest="",
            digest="d",
            created_at=0,
            expires_at=0,
        )
    )
    assert refused_as(missing) == "unknown"


def test_edit_without_a_digest_is_refused(desk: Desk) -> None:
    policy = Policy(rules=(Rule(action="any_edit", tier="ask", edits=True),), rate_limit=9)
    card = desk.card("any_edit", policy, details={"n": 1})
    bad = desk.decide(card, policy=policy, edited={"n": float("inf")})
    assert refused_as(bad) == "edit_not_allowed"
    same = desk.decide(card, policy=policy, edited={"n": 1.0})
    assert isinstance(same, Confirmation)
    assert (same.edited, same.digest) == (None, card.digest), "1.0 equals 1, so nothing was edited"
