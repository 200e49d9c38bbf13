"""Redeeming approvals and cancelling requests."""

import asyncio
from pathlib import Path

from tests.confirm_core import Core, confirm_core, refused_as, viewing_of

from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.schemas import Granted
from journeyman.records.confirmation import Confirmation, Refusal


def test_unapproved_requests_cannot_be_redeemed_and_attempts_are_audited(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with confirm_core(tmp_path) as core:
            ann, builder = core.approver("ann"), core.agent("builder")
            denied, cancelled, waits = [await core.ask(details={"n": n}) for n in range(3)]
            await core.decide(denied, ann, "deny")
            await core.service.cancel(cancelled.id, builder, "not needed")
            for card in (denied, cancelled, waits):
                answer = await core.redeem(card)
                assert isinstance(answer, Refusal)
                assert answer.code == "not_approved"
                assert answer.about["status"] == (await core.now(card)).status
            assert refused_as(await core.service.redeem("0" * 32, builder, "d")) == "unknown"
            assert len(core.audit("refused")) == 4
            await check_cancelling_settled(core, denied)

    async def check_cancelling_settled(core: Core, settled: Confirmation) -> None:
        builder = core.agent("builder")
        assert refused_as(await core.service.cancel(settled.id, builder)) == "already_settled"
        assert refused_as(await core.service.cancel("nothing", builder)) == "unknown"

    asyncio.run(run())


def test_only_the_requester_or_an_approver_can_cancel(tmp_path: Path) -> None:
    async def run() -> None:
        async with confirm_core(tmp_path) as core:
            card = await core.ask()
            with core.store.confirmations.writing(core.clock()) as ledger:
                viewing = viewing_of(ledger, card.id)
            other = core.agent("other")
            for by in (viewing, other):
                assert refused_as(await core.service.cancel(card.id, by)) == "unknown"
            done = await core.service.cancel(card.id, core.approver("ann"), "no")
            assert isinstance(done, Confirmation)
            assert (done.status, done.settled_by) == ("cancelled", "approver:ann")

    asyncio.run(run())


def test_file_must_be_unchanged_since_the_request(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("true\n")
    rule = Rule(action="run", tier="ask", file_params=("script",))
    policies = [Policy(rules=(rule,))]

    async def run() -> None:
        async with confirm_core(tmp_path, policy=lambda: policies[-1]) as core:
            core.agent("builder")
            ann, details = core.approver("ann"), {"script": str(script)}
            script.write_text("true\n")
            card = await core.ask(action="run", details=details)
            script.write_text("false\n")  # before the approval, unseen by the approver
            await core.approve(card, ann)
            assert refused_as(await core.redeem(card)) == "changed"
            script.write_text("true\n")
            # Removing the file from the policy does not lift the check.
            policies.append(Policy())
            core.service.policy = policies[-1]
            assert refused_as(await core.redeem(card)) == "changed"
            policies.append(policies[0])
            core.service.policy = policies[-1]
            assert isinstance(await core.redeem(card), Granted)

    asyncio.run(run())
