"""Story 9 through everything: whatever is on the whitelist, and however it came there, an action
that can never be bypassed waits for a person. With the real service and a real database.
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
    """One service for all examples: each asks for something that was not asked for before."""
    with asyncio.Runner() as runner:
        serving = confirm_core(tmp_path_factory.mktemp("home"))
        core = runner.run(serving.__aenter__())
        yield runner, core
        runner.run(serving.__aexit__(None, None, None))


@st.composite
def dangerous(draw: st.DrawFn) -> str:
    """A name that cannot be bypassed, in some spelling, with something around it."""
    words = draw(st.sampled_from(NEVER_BYPASS)).split("_")
    spelling = draw(st.sampled_from([str.lower, str.upper, str.title]))
    between = draw(st.sampled_from(["_", "-", ".", " ", "\u200b", ""]))
    before = draw(st.sampled_from(["", "aws.", "mcp__bank__"]))
    return before + between.join(map(spelling, words)) + draw(st.sampled_from(["", "_now", "2"]))


@st.composite
def whitelists(draw: st.DrawFn, action: str) -> list[WhitelistEntry]:
    """Entries that would cover the action, each in its own way; the last one covers all of it."""
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
    all_of_it = WhitelistEntry(id="", action=action, added_by="ann", added_at=0.0)
    return [*draw(st.lists(one, max_size=3)), all_of_it]


@given(action=dangerous(), policy=st.sampled_from(POLICIES), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_for_every_whitelist_state_a_never_bypass_action_ends_pending(
    running: tuple[asyncio.Runner, Core], action: str, policy: Policy, data: st.DataObject
) -> None:
    runner, core = running
    entries = data.draw(whitelists(action))
    number = next(_numbers)
    core.service.policy = Policy(rules=policy.rules, rate_limit=10**6, requester_limit=10**6)
    # By the front door, where they are refused; and straight into the table, as somebody with the
    # database could put them.
    by_the_door = data.draw(st.booleans())

    async def run() -> Any:
        ann = core.approver("ann")
        for entry in entries:
            if by_the_door and entry.action != "*":
                added = await core.service.add_to_whitelist(entry, ann)
                assert refused_as(added) == "bad_request"
        if not by_the_door:
            with core.store.confirmations.writing(core.clock()) as ledger:
                for place, entry in enumerate(entries):
                    given = {"id": f"e{number}.{place}"}
                    ledger.add(WhitelistEntry(**{**_fields(entry), **given}))
        asked = {"action": action, "session_key": "s", "details": {"n": number}}
        return await core.submit(**asked)

    answer = runner.run(run())
    assert isinstance(answer, Accepted)
    assert (answer.confirmation.status, answer.confirmation.tier) == ("pending", "critical")
    stored = core.store.confirmations.find(answer.confirmation.id)
    assert stored is not None
    assert stored.status == "pending"


def _fields(entry: WhitelistEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def test_the_same_entries_do_let_other_actions_through(
    running: tuple[asyncio.Runner, Core],
) -> None:
    """Without this, the property above would hold for a whitelist that does nothing."""
    runner, core = running
    core.service.policy = Policy(rate_limit=10**6, requester_limit=10**6)

    async def run() -> str:
        entry = WhitelistEntry(id="", action="send_mail", added_by="ann", added_at=0.0)
        await core.service.add_to_whitelist(entry, core.approver("ann"))
        return (await core.ask(action="send_mail", details={"n": next(_numbers)})).status

    assert runner.run(run()) == "auto_approved"
