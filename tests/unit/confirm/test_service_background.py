"""The service's background work: expiry, changes by other processes, and policy reloads."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.confirm_core import EVERYTHING, LOOK_S, Core, confirm_core
from tests.waiting import until

from journeyman.confirm.policy import Policy
from journeyman.records.errors import BadSetting


def test_shorter_deadline_added_later_is_met(tmp_path: Path) -> None:
    async def run() -> None:
        async with confirm_core(tmp_path) as core:
            await core.ask(details={"n": 1}, timeout_s=3_600)
            short = await core.ask(details={"n": 2}, timeout_s=30)
            core.clock.forward(30)
            await asyncio.to_thread(until, lambda: core.audit("expired"))
            assert [entry.confirmation for entry in core.audit("expired")] == [short.id]

    asyncio.run(run())


def test_unreadable_policy_is_reported_once_and_the_current_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    problems: list[BadSetting] = []
    policies = [EVERYTHING]

    def read() -> Policy:
        if problems:
            raise problems[-1]
        return policies[-1]

    async def run() -> None:
        async with confirm_core(tmp_path, policy=read) as core:
            problems.append(BadSetting("a slip in the file"))
            await asyncio.to_thread(until, lambda: "a slip in the file" in caplog.text)
            await asyncio.sleep(4 * LOOK_S)
            assert caplog.text.count("a slip in the file") == 1
            assert core.service.policy is EVERYTHING
            problems.clear()
            policies.append(replace(EVERYTHING, redeem_within_s=5))
            await asyncio.to_thread(until, lambda: core.service.policy.redeem_within_s == 5)
            await check_policy_audit(core, 2)
        async with confirm_core(tmp_path, policy=read) as core:
            await check_policy_audit(core, 2)  # starting with the same policy adds no entry

    async def check_policy_audit(core: Core, times: int) -> None:
        entries = core.audit("policy_changed")
        assert len(entries) == times
        assert entries[-1].about["digest"] == policies[-1].digest

    asyncio.run(run())
