"""The real Hermes Agent with Journeyman's plugin: the opening arrives at the model and stays the
same, risky calls wait for a person, finished turns are stored, and a failing service costs no
session.
"""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.hermes_host import LEARNED, HermesHome, shell
from tests.host_failures import FAILURES, Failure, uninstalled
from tests.host_service import TASK, TOLD
from tests.hosts import (
    Resident,
    WatchedServer,
    count_in,
    serving,
    tokens_of,
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

from journeyman.records import Tokens
from journeyman.testing import ScriptedServer, calls, says
from journeyman.testing.model_server import ServedRequest

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(900)]

_FULL = Tokens(input_tokens=60_000, output_tokens=10)
"""A prompt so large that Hermes compresses the context after it."""
_TOKENS = ("input", "output", "cache_read", "cache_write")
_MODES = ("chat_completions", "codex_responses", "anthropic_messages")
RISKY = "chmod 777 notes.txt"
EDITED = "chmod 750 notes.txt"


def is_warm(request: ServedRequest) -> bool:
    return count_in(request.body, LEARNED) > 0


def added(request: ServedRequest, examples: int) -> str:
    """What the opening added to a request: the end of the system text, and the examples."""
    body = request.body
    items = body.get("input") or body["messages"]
    system = body.get("instructions") or body.get("system")
    if not system:
        system, items = items[0]["content"], items[1:]
    text = system if isinstance(system, str) else json.dumps(system)
    return text[text.index("Journeyman") :] + json.dumps(items[:examples])


@pytest.mark.parametrize(
    ("mode", "small"), [("chat_completions", False), *((mode, True) for mode in _MODES)]
)
def test_a_session_starts_warm_and_stays_so(tmp_path: Path, mode: str, small: bool) -> None:
    script = {
        TASK: [
            calls(shell("./check-index notes.txt")),
            calls(shell("echo one"), ("read_file", {"path": "notes.txt"})),
            says("It is complete."),
        ],
        "and now": [calls(shell("echo two")), says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model, mode=mode, small=small)
        with serving(home):
            assert home.ask(TASK) == "It is complete.\n"
            (session,) = home.sessions()
            home.stored(session)
            assert home.ask("and now", "--continue") == "That too.\n"
            (own,) = home.rows("SELECT * FROM sessions")
            tokens = tuple(own[f"{kind}_tokens"] for kind in _TOKENS)
            stored = home.stored(
                session, lambda one: one["calls"] == 4 and tokens_of(one) == tokens
            )
            warm = home.command.json("sessions", "list", "--warm")
            with home.open() as journeyman:
                record = journeyman.host_sessions.find("hermes", session)

    turns = home.turns
    assert len(turns) == 5
    items = turns[0].body.get("input") or turns[0].body["messages"]
    examples = len(items) - 1 - (mode == "chat_completions")
    assert examples > 2 if small else examples == 0
    assert (count_in(turns[0].body, TOLD[TASK]) == 1) != small
    assert len({added(turn, examples) for turn in turns}) == 1
    assert record is not None
    assert stored["session"]["opening"] == record.opening != ""
    assert [one["session"]["id"] for one in warm] == [session]
    assert home.failures == []

    assert own["tool_call_count"] == stored["calls"]
    written = " ".join(str(tuple(row)) for row in home.rows("SELECT * FROM messages"))
    assert LEARNED not in written, "something of the opening is in Hermes' own files"


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "child sessions"])
def test_compressions_and_the_review_keep_the_opening(tmp_path: Path, in_place: bool) -> None:
    steps = [calls(shell(f"echo step {number}")) for number in range(8)]
    steps.append(calls(shell("echo step 8"), tokens=_FULL))
    script = {
        "summarization agent": [says("They walked on.")],
        "Review the conversation above": [says("Nothing to save.")],
        TASK: [*steps, says("It is complete.")],
        "and now": [calls(shell("echo two")), says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model, in_place=in_place, small=in_place)
        with serving(home):
            home.ask(TASK)
            home.ask("and now", "--continue")
            ids = home.sessions()
            stored = [home.stored(id_) for id_ in ids]
    summaries = [one for one in model.requests if not one.body.get("tools")]
    assert summaries, "the script no longer makes Hermes compress its context"
    assert not any(map(is_warm, summaries))
    turns = home.turns
    examples = len(turns[0].body["messages"]) - 2
    assert len({added(turn, examples) for turn in turns}) == 1
    assert len(ids) == 1 if in_place else len(ids) > 1
    assert len({one["session"]["opening"] for one in stored}) == 1


def test_a_terminal_session(tmp_path: Path) -> None:
    """Its line, its commands, the tokens of its reviews, and compressions that a person asks for.
    With `chat -q`, the review and the end of the process race.
    """
    script = {
        "summarization agent": [says("They walked on.")],
        "Review the conversation above": [says("Nothing to save.")],
        TASK: [calls(shell("echo one")), says("It is complete.")],
        "and now": [says("That too.")],
        "once more": [says("As you like.")],
    }
    lines = [
        TASK,
        "and now",
        "/compress",
        "once more after compressing",
        "/branch other",
        "once more in the branch",
        f"{TASK} please",
    ]
    with ScriptedServer(script) as model:
        more = "memory: {nudge_interval: 2}\nskills: {creation_nudge_interval: 3}"
        home = HermesHome(tmp_path, model, in_place=False, more=more)

        def is_over() -> bool:
            return count_in(model.requests[-1].body, f"{TASK} please") > 0

        with serving(home):
            home.type(lines, is_over)
            stored = {id_: home.stored(id_) for id_ in home.sessions()}
            reviews = [one for one in home.turns if count_in(one.body, "Review the conversation")]
            until(lambda: _review_tokens(home) == 100 * len(reviews))
    assert reviews
    first = home.turns[0]
    examples = len(first.body["messages"]) - 2
    assert {added(one, examples) for one in home.turns if is_warm(one)} == {added(first, examples)}
    assert all(is_warm(one) for one in home.turns if one not in reviews)
    openings = [one["session"].get("opening", "") for one in stored.values()]
    assert len({*openings}) == 1


def _review_tokens(home: HermesHome) -> int:
    rows = home.command.json("usage", "--by", "task")["rows"]
    return sum(row["input_tokens"] or 0 for row in rows if row["key"] == "background_review")


def test_a_scheduled_job_a_subagent_and_a_bare_answer(tmp_path: Path) -> None:
    errand = {"goal": "a separate errand", "context": "none"}
    script = {
        "a separate errand": [calls(shell("echo sub")), says("Errand done.")],
        TASK: [calls(("delegate_task", errand)), calls(shell("sleep 4")), says("It is complete.")],
    }
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model)
        with serving(home):
            created = home.hermes("cron", "create", "every 1h", TASK, "--deliver", "local")
            job = created.split("Created job: ")[1].split()[0]
            home.hermes("cron", "run", job)
            cron = home.stored(home.sessions()[0])
            before = len(model.requests)
            assert home.hermes("-z", TASK) == "It is complete.\n"
            bare = home.stored(home.sessions()[-1])
    errands = [one for one in home.turns if not count_in(one.body, TASK)]
    others = [one for one in home.turns if count_in(one.body, TASK)]
    assert errands
    assert not any(map(is_warm, errands))
    assert all(map(is_warm, others))
    assert before < len(model.requests)
    assert cron["session"]["platform"] == "cron"
    assert cron["session"]["opening"] == bare["session"]["opening"] != "", "the preamble counted"


Decide = Callable[[dict[str, Any]], None]


@contextmanager
def deciding(resident: Resident, *decisions: Decide) -> Iterator[None]:
    """A person who decides on confirmations one after another while the block runs."""
    problems: list[BaseException] = []

    def decide() -> None:
        try:
            for decision in decisions:
                card = resident.pending()
                decision(card)
                until(lambda card=card: _status(resident, card) != "pending")  # type: ignore[misc]
        except BaseException as error:  # noqa: BLE001 - raised by the test's own thread
            problems.append(error)

    thread = threading.Thread(target=decide)
    thread.start()
    yield
    thread.join()
    for problem in problems:
        raise problem


def _status(resident: Resident, card: dict[str, Any]) -> str:
    status: str = resident.card(card)["status"]
    return status


def mode(home: HermesHome) -> str:
    """The permissions of the file that the risky call changes."""
    return oct((home.work / "notes.txt").stat().st_mode & 0o777)


def test_risky_calls_wait_for_a_person(tmp_path: Path) -> None:
    """Denied, approved, changed, left alone, and one that no one may permit."""
    forbidden = calls(shell("rm -rf /"))
    risky = [calls(shell(f"{RISKY} # {number}")) for number in range(4)]
    modes: list[str] = []
    with ScriptedServer({TASK: [*risky[:3], forbidden, risky[3], says("Done so far.")]}) as model:
        home = HermesHome(tmp_path, model)
        with serving(home, home.key) as resident:

            def deny(card: dict[str, Any]) -> None:
                resident.decide(card, "deny", reason="Not on a Friday.")

            def approve(card: dict[str, Any]) -> None:
                modes.append(mode(home))
                resident.decide(card, "approve")

            def edit(card: dict[str, Any]) -> None:
                modes.append(mode(home))
                details = {**card["details"], "arguments": {"command": EDITED}}
                resident.decide(card, "approve", details=details)

            def wait_too_long(_card: dict[str, Any]) -> None:
                modes.append(mode(home))

            with deciding(resident, deny, approve, edit, wait_too_long):
                assert home.ask(TASK) == "Done so far.\n"
            (session,) = home.sessions()
            home.stored(session, lambda one: one["calls"] == 5)
            profile = home.command.json("profile", session)
    results = home.results()
    assert modes == ["0o644", "0o777", "0o750"]
    assert mode(home) == "0o750"
    assert "Not on a Friday." in results[0]["error"]
    assert results[1]["exit_code"] == results[2]["exit_code"] == 0
    assert "the rule delete.everything forbids it" in results[3]["error"]
    assert "no one decided in time" in results[4]["error"]
    assert (profile["refused"], profile["ok"], profile["calls"]) == (3, 2, 5)


def test_an_interrupt_cancels_the_request(tmp_path: Path) -> None:
    with ScriptedServer({TASK: [calls(shell(RISKY)), says("Done.")]}) as model:
        home = HermesHome(tmp_path, model)
        with serving(home, home.key) as resident:
            cards: list[dict[str, Any]] = []

            def is_pending() -> bool:
                if not cards and home.turns:
                    cards.append(resident.pending())
                return bool(cards)

            home.type([TASK], lambda: bool(cards), is_pending)
            until(lambda: _status(resident, cards[0]) == "cancelled")
    assert mode(home) == "0o644"
    (result,) = home.results()
    assert result["error"].startswith("Blocked by Journeyman") or "nterrupt" in str(result)


@pytest.mark.skipif(not chromium(), reason="Chromium is not installed")
def test_decisions_through_the_page(tmp_path: Path) -> None:
    risky = [calls(shell(f"{RISKY} # {number}")) for number in range(4)]
    with ScriptedServer({TASK: [*risky, says("Done so far.")]}) as model:
        home = HermesHome(tmp_path, model)
        with serving(home, home.key) as resident, launched_browser() as browser:
            served: Any = resident  # it has the address of the page
            person = Person(served, new_profile(browser))
            log_in(person, "ann", home.key)
            asked = threading.Thread(target=home.ask, args=(TASK,))
            asked.start()
            for decide in (_deny, _approve, _edit):
                card = resident.pending()
                decide(person.open_card(card))
                until(lambda card=card: _status(resident, card) != "pending")  # type: ignore[misc]
            card = resident.pending()
            asked.join()
            assert _status(resident, card) == "expired"
    results = home.results()
    assert "Not on a Friday" in results[0]["error"]
    assert results[1]["exit_code"] == results[2]["exit_code"] == 0
    assert mode(home) == "0o750"
    assert "no one decided in time" in results[3]["error"]


def _deny(page: Page) -> None:
    page.get_by_label("Reason").fill("Not on a Friday")
    page.click(DENY)


def _approve(page: Page) -> None:
    page.click(APPROVE)


def _edit(page: Page) -> None:
    page.locator(".editor summary").click()
    page.get_by_label("arguments").fill(json.dumps({"command": EDITED}))
    page.get_by_role("button", name="Approve with changes").click()


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_a_failing_service_costs_no_session(failure: Failure, tmp_path: Path) -> None:
    script = {TASK: [calls(shell("echo one")), calls(shell(RISKY)), says("It is complete.")]}
    with ScriptedServer(script) as model:
        home = HermesHome(tmp_path, model)
        with failure(home):
            assert home.ask(TASK) == "It is complete.\n"
    assert len(home.turns) == 3
    first, risky = home.results()
    is_cold = not any(map(is_warm, home.turns))
    # A child process answers too, if it is quick enough.
    assert is_cold or (failure.__name__ == "killed" and all(map(is_warm, home.turns)))
    if failure is uninstalled:  # the plugin has gone with the package
        assert (first["error"], risky["error"]) == (None, None)
        return
    # Where the gate answers at all, it lets pass what no rule names.
    can_answer = failure.__name__ in ("killed", "locked", "full")
    assert first["error"] is None if can_answer else first["error"].startswith("Blocked by")
    assert risky["error"].startswith("Blocked by Journeyman")
    assert mode(home) == "0o644"


def test_a_service_that_is_killed_within_the_session(tmp_path: Path) -> None:
    residents: list[Resident] = []

    def kill(number: int) -> None:
        if number == 2:
            residents[0].process.signal(signal.SIGKILL)
            until(lambda: not residents[0].process.running)

    script = {TASK: [calls(shell("echo one")), calls(shell(RISKY)), says("It is complete.")]}
    with WatchedServer(script, kill) as model:
        home = HermesHome(tmp_path, model)
        with serving(home, home.key) as resident:
            residents.append(resident)
            assert home.ask(TASK) == "It is complete.\n"
            resumed = home.ask("and now", "--continue")
    assert resumed == "Done.\n"
    examples = len(home.turns[0].body["messages"]) - 2
    assert len({added(turn, examples) for turn in home.turns}) == 1
    assert home.results()[1]["error"].startswith("Blocked by Journeyman")
    assert mode(home) == "0o644"
