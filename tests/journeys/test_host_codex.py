"""The real Codex with Journeyman's hooks: openings arrive at the model once and stay, risky calls
wait for a person, sessions are stored by themselves, and a failing service costs no session.
"""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.codex_host import CodexHome, configure_codex, payloads, run_codex, shell
from tests.host_failures import FAILURES, Failure, absent, hanging, killed, uninstalled
from tests.host_service import FOUND, MOVED, START, TASK, TOLD
from tests.hosts import (
    AGAIN,
    GATE_S,
    PUSH,
    WatchedServer,
    count_in,
    openings_in,
    serving,
    until,
)

from journeyman.records import Tokens
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]

HOOKS = ".codex/hooks.json"
BLOCKED = "Blocked by Journeyman: no confirmation could be requested"


def test_facts_arrive_once_and_stay(tmp_path: Path) -> None:
    look = shell(f"cat {MOVED}")
    script = {
        TASK: [look, look, says("It is gone.")],
        "complete now": [look, says("It still is.")],
    }
    home = CodexHome(tmp_path)
    with ScriptedServer(script) as model, serving(home):
        session = home.ask(model, TASK)
        stored = home.stored_whole(session)
        home.ask(model, "resume", session, AGAIN)
        fork = home.ask(model, "fork", session, AGAIN)
        resumed, forked = home.stored_whole(session), home.stored_whole(fork)
        compared = home.command.json("compare")
        titles = [one["session"]["title"] for one in home.command.json("sessions", "list")]

    bodies = [one.body for one in model.requests]
    assert len(bodies) == 7
    (project,) = openings_in(bodies[0])
    assert START in project
    # A resumed session and a fork get nothing again, also if they ask for the same.
    assert {tuple(openings_in(one)) for one in bodies} == {(project,)}
    assert {count_in(one, TOLD[TASK]) for one in bodies} == {1}
    # The hint arrives after the first failure, and stays; the fork has it from its parent.
    assert [count_in(one, FOUND) for one in bodies] == [0, *[1] * 6]
    # What was added is no request of the person's.
    assert not any("Journeyman" in title for title in titles)

    # It was stored by itself, with its opening, and so was the fork.
    assert (stored["calls"], resumed["calls"], forked["calls"]) == (2, 3, 1)
    opening = stored["session"]["opening"]
    assert f"[Journeyman {opening}:]" in project
    assert resumed["session"]["opening"] == forked["session"]["opening"] == opening
    assert compared["warm"]["sessions"] == 2
    assert home.failures == []


def test_after_a_compaction_the_project_s_part_is_there_again(tmp_path: Path) -> None:
    long = calls(("exec_command", {"cmd": "echo one"}), tokens=Tokens(input_tokens=50_000))
    script = {
        "Carry on": [shell("echo two"), says("Carried on.")],
        "CHECKPOINT COMPACTION": [says("Carry on with the index.")],
        TASK: [long],
    }
    home = CodexHome(tmp_path)
    with ScriptedServer(script) as model, serving(home):
        configure_codex(home, model, compact_after=20_000)
        session = run_codex(home, TASK)[0]["thread_id"]
        stored = home.stored_whole(session)

    before, compaction, *after = [openings_in(one.body) for one in model.requests]
    assert before == compaction
    (project,) = before
    assert after == [[project], [project]]
    assert stored["generations"] == 2


def test_a_person_decides(tmp_path: Path) -> None:
    pushes = [shell(PUSH.format(number)) for number in ("one", "two", "three", "four")]
    script = {"gated work": [*pushes[:3], shell("echo harmless"), pushes[3], says("Finished.")]}
    home = CodexHome(tmp_path)
    with (
        WatchedServer(script) as model,
        serving(home, home.key) as resident,
        ThreadPoolExecutor(1) as agent,
    ):
        run = agent.submit(home.ask, model, "gated work")
        resident.decide(resident.pending(), "deny", reason="not on a Friday")
        resident.decide(resident.pending(), "approve")
        card = resident.pending()
        edited = {**card["details"], "arguments": {"command": "touch edited.ran"}}
        resident.decide(card, "approve", details=edited)
        forgotten = resident.pending()
        session = run.result()
        home.stored_whole(session)
        transcript = home.command.json("sessions", "show", session)
        settled = resident.card(forgotten)

    assert home.ran == {"two", "edited"}
    assert settled["status"] == "expired"
    said = [str(one.body["input"]) for one in model.requests]
    assert "denied by the user. The reason: not on a Friday." in said[1]
    assert "no one decided in time" in said[5]
    verdicts = [(one["status"], one.get("by", "")) for one in transcript["verdicts"]]
    assert verdicts[0] == ("refused", "person")
    assert verdicts[1][0] != "refused"
    assert verdicts[2:] == [("ok", ""), ("ok", ""), ("refused", "nobody")]
    rewritten = transcript["calls"][2]
    assert json.loads(rewritten["arguments"])["cmd"] == "touch edited.ran"
    assert json.loads(rewritten["requested"])["cmd"] == PUSH.format("three")


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: one.__name__)
def test_a_failing_service_costs_only_the_opening(failure: Failure, tmp_path: Path) -> None:
    """The client of the hooks answers in place of the service, and the command line in place of the
    client (see below): Codex takes every hook that does not answer as consent.
    """
    script = {TASK: [shell("touch harmless.ran"), shell(PUSH.format("risky")), says("Finished.")]}
    home = CodexHome(tmp_path)
    home.change_hooks(HOOKS, r"PreToolUse \d+", f"PreToolUse {GATE_S}")
    with ScriptedServer(script) as model, failure(home):
        session = home.ask(model, TASK)

    assert "Finished." in str(payloads(home.folder, session))
    # In the place of a service that was killed, a child process may give the opening.
    assert failure is killed or not any(openings_in(one.body) for one in model.requests)
    said = str(model.requests[-1].body["input"])
    assert BLOCKED in said
    # Without any answer it is not known which calls are harmless.
    # A process that hangs costs 3 seconds, then a child decides, if it is quick enough.
    is_gone = failure in (absent, uninstalled)
    assert "journeyman hosts remove codex" in said or not is_gone
    assert (f"in {home.folder / HOOKS}" in said) == (failure is uninstalled)
    harmless = set() if is_gone else {"harmless"}
    assert home.ran == harmless or (failure is hanging and not home.ran)


def test_a_service_killed_in_the_session(tmp_path: Path) -> None:
    home = CodexHome(tmp_path)
    script = {TASK: [shell("touch harmless.ran"), shell(PUSH.format("risky")), says("Finished.")]}

    def kill(request: int) -> None:
        if request == 1:
            resident.process.signal(signal.SIGKILL)
            until(lambda: not resident.process.running)

    with serving(home) as resident, WatchedServer(script, kill) as model:
        session = home.ask(model, TASK)
        home.ask(model, "resume", session, AGAIN)

    assert len(model.requests) == 4
    assert len({tuple(openings_in(one.body)) for one in model.requests}) == 1
    assert len(openings_in(model.requests[0].body)) == 1
    assert {count_in(one.body, TOLD[TASK]) for one in model.requests} == {1}
    assert BLOCKED in str(model.requests[2].body["input"])
    assert home.ran == {"harmless"}
