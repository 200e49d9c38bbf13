"""Attempts to bypass approvers, each of which must fail."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.confirm_core import EVERYTHING, Core, confirm_core, refused_as

from journeyman.agent.dispatch import Dispatch
from journeyman.agent.tools.tool import Invocation, Result, Tool, worked
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.confirm import credentials
from journeyman.confirm.policy import Policy, Rule
from journeyman.gate.decision import ApprovalRequest
from journeyman.gate.gate import Gate
from journeyman.records import Provenance, ToolCall
from journeyman.records.confirmation import Refusal, WhitelistEntry
from journeyman.records.errors import AuditBroken

Work = Callable[[Core], Awaitable[None]]


def run(home: Path, work: Work, policy: Policy | Callable[[], Policy] = EVERYTHING) -> None:
    async def running() -> None:
        async with confirm_core(home, policy=policy) as core:
            await work(core)

    asyncio.run(running())


def policy_of(*rules: Rule, **more: Any) -> Policy:
    return Policy(rules=rules, rate_limit=1000, requester_limit=1000, **more)


def entry(action: str, by: str, requester: str = "") -> WhitelistEntry:
    return WhitelistEntry(id="", action=action, requester=requester, added_by=by, added_at=0.0)


def change(core: Core, statement: str) -> None:
    with sa.create_engine(core.store.url).begin() as connection:
        connection.exec_driver_sql(statement)


def test_tampered_audit_chain_is_not_extended(tmp_path: Path) -> None:
    async def work(core: Core) -> None:
        await core.ask()
        change(core, "UPDATE audit SET digest = 'z' || substr(digest, 2) WHERE seq = 3")
        with pytest.raises(AuditBroken):
            await core.ask(details={"n": 2})
        assert not (await core.service.verify_audit()).ok

    with pytest.raises(AuditBroken):  # the stop cannot be recorded either
        run(tmp_path, work)


def test_approval_forged_in_the_database_cannot_be_redeemed(tmp_path: Path) -> None:
    async def work(core: Core) -> None:
        card = await core.ask()
        body = 'replace(body, \'"status":"pending"\', \'"status":"approved"\')'
        change(core, f"UPDATE confirmations SET status = 'approved', body = {body}")
        assert (await core.now(card)).status == "approved"
        assert refused_as(await core.redeem(card)) == "changed"

    run(tmp_path, work)


def test_whitelist_entry_does_not_cover_the_approvers_own_agent(tmp_path: Path) -> None:
    async def work(core: Core) -> None:
        ann, bob = core.approver("ann"), core.approver("bob")
        core.agent("annbot", owner="ann")
        await core.service.add_to_whitelist(entry("pay", "ann"), ann)
        assert (await core.ask(action="pay", requester="annbot")).status == "pending"
        assert (await core.ask(action="pay", requester="other")).status == "auto_approved"
        await core.service.add_to_whitelist(entry("pay", "bob"), bob)
        again = await core.ask(action="pay", requester="annbot", details={"n": 2})
        assert again.status == "auto_approved"

    run(tmp_path, work)


def test_stricter_policy_applies_to_earlier_requests(tmp_path: Path) -> None:
    now = {"policy": EVERYTHING}

    async def work(core: Core) -> None:
        ann, bob = core.approver("ann"), core.approver("bob")
        waiting = await core.ask(action="pay")
        used = await core.ask(action="wire")
        await core.approve(used, ann)
        now["policy"] = policy_of(
            Rule(action="pay", tier="ask", quorum=2), Rule(action="wire", tier="forbidden")
        )
        core.service.policy = now["policy"]
        assert (await core.approve(waiting, ann)).status == "pending"
        assert (await core.approve(waiting, bob)).status == "approved"
        assert refused_as(await core.redeem(used)) == "forbidden_action"

    run(tmp_path, work, lambda: now["policy"])


def test_unused_approval_can_be_cancelled_by_an_approver(tmp_path: Path) -> None:
    async def work(core: Core) -> None:
        card = await core.ask()
        ann = core.approver("ann")
        await core.approve(card, ann)
        assert isinstance(await core.service.cancel(card.id, core.agent()), Refusal)
        await core.service.cancel(card.id, ann, "on second thoughts")
        assert refused_as(await core.redeem(card)) == "not_approved"

    run(tmp_path, work)


def test_vote_of_a_revoked_approver_does_not_count(tmp_path: Path) -> None:
    async def work(core: Core) -> None:
        ann, bob, cleo = core.approver("ann"), core.approver("bob"), core.approver("cleo")
        card = await core.ask(action="pay")
        await core.approve(card, ann)
        with core.store.confirmations.writing(core.clock()) as ledger:
            credentials.revoke(ledger, "approver", "ann", "test")
        assert (await core.approve(card, bob)).status == "pending"
        assert refused_as(await core.decide(card, ann)) == "not_allowed"
        assert (await core.approve(card, cleo)).status == "approved"

    run(tmp_path, work, policy_of(Rule(action="pay", tier="ask", quorum=2)))


def test_other_spellings_share_the_rate_limit(tmp_path: Path) -> None:
    async def work(core: Core) -> None:
        for number, action in enumerate(("send_mail", "sendMail")):
            await core.ask(action=action, details={"n": number})
        for action in ("send.mail", "SEND-MAIL", "send mail"):
            assert refused_as(await core.submit(action=action)) == "over_limit"

    run(tmp_path, work, Policy(rate_limit=2))


def test_symlink_changed_during_the_decision_is_not_followed(tmp_path: Path) -> None:
    workspace, link = tmp_path / "workspace", tmp_path / "workspace" / "notes"
    workspace.mkdir()
    link.symlink_to(".npmrc")
    ran: list[Invocation] = []

    def write_file(call: Invocation) -> Result:
        ran.append(call)
        return worked(output="")

    def ask(question: ApprovalRequest) -> bool:
        assert question.rule == "file.steering"
        link.unlink()
        link.symlink_to(tmp_path / "elsewhere")
        return True

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = Tool(
        name="write_file", description="Write.", parameters=schema, run=write_file, risk="write"
    )
    gate = Gate(workspace)
    dispatch = Dispatch(
        Toolbox((tool,)),
        lambda tool, arguments: gate.decide(tool.risk, arguments),
        ask,
        Provenance(session="s"),
    )
    result = dispatch.run(ToolCall(id="1", name="write_file", arguments='{"path": "notes"}'))
    assert "changed since" in str(result.content)
    assert not ran
