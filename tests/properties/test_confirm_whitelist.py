"""Story 9 with the real service and database: a never-bypass action waits for a person, whatever is
on the whitelist and however it was added.
"""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.confirm_core import Core, confirm_core, refused_as

from journeyman.confirm.policy import NEVER_BYPASS, Policy, Rule
from journeyman.confirm.schemas import Accepted
from journeyman.records.confirmation import Constraint, WhitelistEntry

_numbers = itertools.count()

POLICIES = (
    Policy(),
    Policy(rules=(Rule(action="*", tier="routine"),)),
    Policy(rules=(Rule(action="*_*", tier="ask", self_approval=True),)),
    Policy(rules=tuple(Rule(action=name, tier="routine") for name in NEVER_BYPASS)),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Core]]:
    """A service for all examples; each example submits a new request."""
    with asyncio.Runner() as runner:
        serving = confirm_core(tmp_path_factory.mktemp("home"))
        core = runner.run(serving.__aenter__())
        yield runner, core
        runner.run(serving.__aexit__(None, None, None))


@st.composite
def never_bypass_actions(draw: st.DrawFn) -> str:
    """A never-bypass name in any spelling, with a prefix and a suffix."""
    words = draw(st.sampled_from(NEVER_BYPASS)).split("_")
    spelling = draw(st.sampled_from([str.lower, str.upper, str.title]))
    between = draw(st.sampled_from(["_", "-", ".", " ", "\u200b", ""]))
    before = draw(st.sampled_from(["", "aws.", "mcp__bank__"]))
    return before + between.join(map(spelling, words)) + draw(st.sampled_from(["", "_now", "2"]))


@st.composite
def whitelists(draw: st.DrawFn, action: str) -> list[WhitelistEntry]:
    """Entries that would cover the action; the last one covers it without constraints."""
    one = st.builds(
        WhitelistEntry,
        id=st.just(""),
        action=st.sampled_from([action, action.lower(), "*"]),
        session_key=st.sampled_from(["", "s"]),
        requester=st.sampled_from(["", "builder"]),
        constraints=st.sampled_from([{}, {"n": Constraint(at_least=0.0)}]),
        other_parameters=st.booleans(),
        added_by=st.just("ann"),
        added_at=st.just(0.0),
    )
    unconstrained = WhitelistEntry(id="", action=action, added_by="ann", added_at=0.0)
    return [*draw(st.lists(one, max_size=3)), unconstrained]


@given(action=never_bypass_actions(), policy=st.sampled_from(POLICIES), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_for_every_whitelist_state_a_never_bypass_action_ends_pending(
    running: tuple[asyncio.Runner, Core], action: str, policy: Policy, data: st.DataObject
) -> None:
    runner, core = running
    entries = data.draw(whitelists(action))
    number = next(_numbers)
    core.service.policy = Policy(rules=policy.rules, rate_limit=10**6, requester_limit=10**6)
    # Add entries through the service, which refuses them, or directly to the table, as someone with
    # access to the database could.
    through_the_service = data.draw(st.booleans())

    async def run() -> Any:
        ann = core.approver("ann")
        for entry in entries:
            if through_the_service and entry.action != "*":
                added = await core.service.add_to_whitelist(entry, ann)
                assert refused_as(added) == "bad_request"
        if not through_the_service:
            with core.store.confirmations.writing(core.clock()) as ledger:
                for index, entry in enumerate(entries):
                    identity = {"id": f"e{number}.{index}"}
                    ledger.add(WhitelistEntry(**{**fields_of(entry), **identity}))
        asked = {"action": action, "session_key": "s", "details": {"n": number}}
        return await core.submit(**asked)

    answer = runner.run(run())
    assert isinstance(answer, Accepted)
    assert (answer.confirmation.status, answer.confirmation.tier) == ("pending", "critical")
    stored = core.store.confirmations.find(answer.confirmation.id)
    assert stored is not None
    assert stored.status == "pending"


def fields_of(entry: WhitelistEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def test_same_entries_approve_other_actions(
    running: tuple[asyncio.Runner, Core],
) -> None:
    """Guard the property above, which would also hold if the whitelist had no effect."""
    runner, core = running
    core.service.policy = Policy(rate_limit=10**6, requester_limit=10**6)

    async def run() -> str:
        entry = WhitelistEntry(id="", action="send_mail", added_by="ann", added_at=0.0)
        await core.service.add_to_whitelist(entry, core.approver("ann"))
        return (await core.ask(action="send_mail", details={"n": next(_numbers)})).status

    assert runner.run(run()) == "auto_approved"
