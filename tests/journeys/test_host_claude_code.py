"""The real Claude Code with Journeyman's hooks: openings arrive at the model once and stay, risky
calls wait for a person, sessions are stored by themselves, and a failing service costs no session.
"""

import json
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.claude_code_host import ClaudeHome, bash, run_claude
from tests.host_failures import FAILURES, Failure, absent, hanging, killed, uninstalled
from tests.host_service import FOUND, MOVED, START, TASK, TOLD, conversation
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
from tests.journeys.confirm_page_browser import (
    APPROVE,
    DENY,
    Person,
    chromium,
    launched_browser,
    log_in,
    new_profile,
)

from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]

VERSIONS = ("claude_code", "older_claude_code")
_APPROVED = re.compile("Approved.* by ann")
_SUMMARY = "TEXT ONLY|detailed summary"

SETTINGS = ".claude/settings.json"
BLOCKED = "Blocked by Journeyman: no confirmation could be requested"


@pytest.mark.parametrize("name", VERSIONS)
def test_facts_arrive_once_and_stay(name: str, tmp_path: Path) -> None:
    errand = {"description": "Ask", "prompt": "a separate errand", "subagent_type": "claude"}
    look = bash(f"cat {MOVED}")
    script = {
        _SUMMARY: [says("<summary>The index was checked.</summary>")],
        TASK: [look, look, calls(("Agent", errand)), says("It is gone.")],
        "a separate errand": [look, says("Errand done.")],
        "complete now": [bash("echo again"), says("It still is.")],
        "and afterwards": [bash("echo after"), says("After the summary.")],
    }
    home = ClaudeHome(tmp_path, name)
    with ScriptedServer(script) as model, serving(home):
        session = home.ask(model, TASK)["session_id"]
        stored = home.stored_whole(session)
        home.ask(model, AGAIN, "--resume", session)
        fork = home.ask(model, AGAIN, "--resume", session, "--fork-session")["session_id"]
        home.ask(model, "/compact", "--resume", session)
        home.ask(model, "and afterwards", "--resume", session)
        resumed = home.stored_whole(session)
        forked = home.stored(fork)
        sessions = home.command.json("sessions", "list", "--limit", "1000")
        compared = home.command.json("compare")

    turns = [one.body for one in model.requests if not count_in(one.body, "Respond with TEXT ONLY")]
    main = [one for one in turns if count_in(one, TASK)]
    (project,) = openings_in(main[0])
    assert START in project
    # A resumed session and a fork get nothing again, also if they ask for the same.
    assert sum(count_in(one, AGAIN) > 0 for one in main) == 4
    assert {tuple(openings_in(one)) for one in main} == {(project,)}
    assert {count_in(one, TOLD[TASK]) for one in main} == {1}
    # What is known about a call arrives with the first of two equal ones, and stays. The older
    # version leaves out what was added before a call when it resumes a session.
    counts = [count_in(one, FOUND) for one in main]
    assert counts[:4] == [0, 1, 1, 1]
    assert {*counts[4:]} == {int(name == VERSIONS[0])}
    # Subagents get nothing.
    errands = [one for one in turns if count_in(one, "separate errand") and one not in main]
    assert len(errands) == 2
    assert not any(openings_in(one) or count_in(one, FOUND) for one in errands)
    # After the summary the start is there again, once, and the rest is not.
    after = [one for one in turns if count_in(one, "and afterwards")]
    assert [openings_in(one) for one in after] == [[project]] * 2
    assert not any(count_in(one, TOLD[TASK]) or count_in(one, FOUND) for one in after)

    # It was stored by itself, with its opening; the fork too, and the subagent without one.
    assert (stored["calls"], resumed["calls"], forked["calls"]) == (3, 5, 1)
    opening = stored["session"]["opening"]
    assert f"[Journeyman {opening}:]" in project
    assert resumed["session"]["opening"] == forked["session"]["opening"] == opening
    (subagent,) = [one for one in sessions if one["session"]["id"].startswith("agent-")]
    assert (subagent["calls"], subagent["session"].get("opening", "")) == (1, "")
    assert compared["warm"]["sessions"] == 2
    assert home.failures == []


@pytest.mark.parametrize("name", VERSIONS)
def test_what_must_be_said_before_a_call_is(name: str, tmp_path: Path) -> None:
    home = ClaudeHome(tmp_path, name)
    report = ("ruff check .", "Exit code 1\nnotes.py:1:8: F401 `os` imported but unused")
    with home.open() as journeyman:
        for number in (1, 2):
            work = conversation("Lint the notes", (report,))
            journeyman.record(work, source="claude_code", session_id=f"l{number}", cwd=home.work)
        project = journeyman.find_project(home.work)
        journeyman.facts.remember(project, "never run git stash here")
        journeyman.learn()
    write = calls(("Write", {"file_path": str(home.work / "notes.py"), "content": "x = 1\n"}))
    script = {"the errand": [bash("git stash -u"), write, says("Done.")]}
    with ScriptedServer(script) as model, serving(home):
        home.ask(model, "the errand", "--allowedTools", "Write")
    main = [one.body for one in model.requests if count_in(one.body, "the errand")]
    # The forbidden call did not run: the person's words came in the place of its result.
    assert count_in(main[1], "Saved working directory") == 0
    assert count_in(main[1], "never run git stash here") > count_in(main[0], "never run git stash")
    # What linters report is not in the start, but with the first change of code.
    assert [count_in(one, "F401") > 0 for one in main] == [False, False, True]


def test_a_person_decides_on_the_page(tmp_path: Path) -> None:
    if not chromium():
        pytest.skip("Chromium is not installed")
    pushes = [bash(PUSH.format(number)) for number in ("one", "two", "three", "four")]
    script = {"gated work": [*pushes[:3], bash("echo harmless"), pushes[3], says("Finished.")]}
    home = ClaudeHome(tmp_path)
    with (
        WatchedServer(script) as model,
        serving(home, home.key) as resident,
        launched_browser() as browser,
        ThreadPoolExecutor(1) as agent,
    ):
        person = Person(resident, new_profile(browser))
        log_in(person, "ann", home.key)
        expect(person.page.get_by_role("heading", name="Inbox")).to_be_visible()
        run = agent.submit(home.ask, model, "gated work")

        page = person.open_card(resident.pending())
        expect(page.locator("main")).to_contain_text("git push --force origin one")
        page.get_by_label("Reason").fill("not on a Friday")
        page.click(DENY)
        expect(page.locator(".outcome")).to_contain_text("Denied by ann")

        page = person.open_card(resident.pending())
        page.click(APPROVE)
        expect(page.locator(".outcome")).to_contain_text(_APPROVED)

        page = person.open_card(resident.pending())
        page.locator(".editor summary").click()
        page.get_by_label("arguments").fill(json.dumps({"command": "touch edited.ran"}))
        page.get_by_role("button", name="Approve with changes").click()
        expect(page.locator(".outcome")).to_contain_text(_APPROVED)

        forgotten = resident.pending()
        report = run.result()
        session = home.stored_whole(report["session_id"])["session"]["id"]
        transcript = home.command.json("sessions", "show", session)
        settled = resident.card(forgotten)
        assert person.hits() == []

    assert report["result"] == "Finished."
    assert home.ran == {"two", "edited"}
    assert settled["status"] == "expired"
    said = [str(one.body["messages"]) for one in model.requests]
    assert "denied by the user. The reason: not on a Friday." in said[1]
    assert "no one decided in time" in said[5]
    verdicts = [(one["status"], one.get("by", "")) for one in transcript["verdicts"]]
    assert verdicts[0] == ("refused", "person")
    assert verdicts[1][0] != "refused"
    assert verdicts[2:] == [("ok", ""), ("ok", ""), ("refused", "nobody")]
    edited = transcript["calls"][2]
    assert json.loads(edited["arguments"]) == {"command": "touch edited.ran"}
    assert json.loads(edited["requested"]) == {"command": PUSH.format("three")}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_long_approval_is_put_off(name: str, tmp_path: Path) -> None:
    script = {
        "push it": [bash(PUSH.format("one")), says("Pushed.")],
        "push more": [bash(PUSH.format("two")), says("Refused.")],
    }
    home = ClaudeHome(tmp_path, name, defer_after_s=1)
    with ScriptedServer(script) as model, serving(home, home.key) as resident:
        first = home.ask(model, "push it")
        session = first["session_id"]
        before = home.ran
        resident.decide(resident.pending(), "approve")
        second = home.ask(model, "--resume", session)
        third = home.ask(model, "push more", "--resume", session)
        resident.decide(resident.pending(), "deny")
        fourth = home.ask(model, "--resume", session)
        home.stored_whole(session)
        transcript = home.command.json("sessions", "show", session)

    assert [one["stop_reason"] for one in (first, third)] == ["tool_deferred"] * 2
    assert first["deferred_tool_use"]["input"]["command"] == PUSH.format("one")
    assert before == set()
    assert (second["result"], fourth["result"]) == ("Pushed.", "Refused.")
    assert home.ran == {"one"}
    pushed, refused = transcript["verdicts"]
    assert pushed["status"] != "refused"
    assert (refused["status"], refused["by"]) == ("refused", "person")


def test_permission_prompts_reach_a_person(tmp_path: Path) -> None:
    home = ClaudeHome(tmp_path)
    paths = [str(home.work / name) for name in ("yes.ran", "no.ran")]
    write_calls = [calls(("Write", {"file_path": path, "content": "x"})) for path in paths]
    script = {"write two files": [*write_calls, says("Written.")]}
    program = {
        "command": sys.executable,
        "args": ["-m", "journeyman", "--home", str(home.journeyman), "mcp"],
        "alwaysLoad": True,
    }
    servers = home.write("mcp.json", {"mcpServers": {"journeyman": program}})
    options = ("--mcp-config", str(servers))
    options += ("--permission-prompt-tool", "mcp__journeyman__request_permission")
    with (
        ScriptedServer(script) as model,
        serving(home, home.key) as resident,
        ThreadPoolExecutor(1) as agent,
    ):
        run = agent.submit(run_claude, home, home.name, model, "write two files", *options)
        resident.decide(resident.pending(), "approve")
        resident.decide(resident.pending(), "deny", reason="one is enough")
        report = run.result()
        home.stored_whole(report["session_id"])
        transcript = home.command.json("sessions", "show", report["session_id"])

    assert home.ran == {"yes"}
    assert [one["tool_input"]["file_path"] for one in report["permission_denials"]] == paths[1:]
    verdicts = [(one["status"], one.get("by", "")) for one in transcript["verdicts"]]
    assert verdicts == [("ok", ""), ("refused", "person")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: one.__name__)
def test_a_failing_service_costs_only_the_opening(failure: Failure, tmp_path: Path) -> None:
    """The client of the hooks answers in place of the service, and the command line in place of the
    client (see below).
    """
    script = {TASK: [bash("touch harmless.ran"), bash(PUSH.format("risky")), says("Finished.")]}
    home = ClaudeHome(tmp_path)
    home.change_hooks(SETTINGS, r"PreToolUse \d+", f"PreToolUse {GATE_S}")
    with ScriptedServer(script) as model, failure(home):
        report = home.ask(model, TASK)

    assert report["result"] == "Finished."
    # In the place of a service that was killed, a child process may give the opening.
    assert failure is killed or not any(openings_in(one.body) for one in model.requests)
    said = str(model.requests[-1].body["messages"])
    assert BLOCKED in said
    # Without any answer it is not known which calls are harmless.
    # A process that hangs costs 3 seconds, then a child decides, if it is quick enough.
    is_gone = failure in (absent, uninstalled)
    assert "journeyman hosts remove claude-code" in said or not is_gone
    assert (f"in {home.folder / SETTINGS}" in said) == (failure is uninstalled)
    harmless = set() if is_gone else {"harmless"}
    assert home.ran == harmless or (failure is hanging and not home.ran)


def test_a_service_killed_in_the_session(tmp_path: Path) -> None:
    home = ClaudeHome(tmp_path)
    script = {TASK: [bash("touch harmless.ran"), bash(PUSH.format("risky")), says("Finished.")]}

    def kill(request: int) -> None:
        if request == 1:
            resident.process.signal(signal.SIGKILL)
            until(lambda: not resident.process.running)

    with serving(home) as resident, WatchedServer(script, kill) as model:
        report = home.ask(model, TASK)
        again = home.ask(model, AGAIN, "--resume", report["session_id"])

    assert (report["result"], again["result"]) == ("Finished.", "Done.")
    assert len({tuple(openings_in(one.body)) for one in model.requests}) == 1
    assert len(openings_in(model.requests[0].body)) == 1
    assert {count_in(one.body, TOLD[TASK]) for one in model.requests} == {1}
    assert BLOCKED in str(model.requests[2].body["messages"])
    assert home.ran == {"harmless"}
