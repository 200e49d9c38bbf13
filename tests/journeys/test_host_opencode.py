"""The real opencode with Journeyman's plugin: the opening arrives at the model and stays the same,
risky calls wait for a person, and finished sessions are stored.
"""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.host_service import TASK, TOLD
from tests.hosts import Resident, ask, count_in, end_process, serving, tokens_of
from tests.opencode_host import OpencodeHome, shell
from tests.waiting import until

from journeyman.testing import ScriptedServer, calls, says
from journeyman.testing.model_server import ServedRequest

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(600)]

LEARNED = "build-index"
"""What only an opening knows."""
RISKY = "chmod 777 notes.txt"


def is_warm(request: ServedRequest) -> bool:
    return count_in(request.body, LEARNED) > 0


def is_untouched(request: ServedRequest) -> bool:
    return not is_warm(request) and count_in(request.body, "Journeyman") == 0


def head(request: ServedRequest, prompt: str = TASK) -> str:
    """Everything of a request before the prompt."""
    messages = request.body["messages"]
    at = next(n for n, message in enumerate(messages) if count_in(message, prompt))
    # The mark for caching moves with the end of the conversation.
    text = json.dumps([request.body.get("system"), messages[:at]])
    return text.replace(', "cache_control": {"type": "ephemeral"}', "")


def mode(home: OpencodeHome) -> str:
    """The permissions of the file that the risky call changes."""
    return oct((home.work / "notes.txt").stat().st_mode & 0o777)


@pytest.mark.parametrize(("api", "small"), [("openai", False), ("anthropic", True)])
def test_a_session_starts_warm_and_stays_so(tmp_path: Path, api: str, small: bool) -> None:
    errand = {"description": "Ask", "prompt": "a separate errand", "subagent_type": "general"}
    script = {
        TASK: [
            calls(shell("echo one"), ("read", {"filePath": str(tmp_path / "work/notes.txt")})),
            calls(shell("cat missing.txt")),
            calls(("task", errand)),
            says("It is complete."),
        ],
        "a separate errand": [calls(shell("echo sub")), says("Errand done.")],
        "and now": [calls(shell("echo two")), says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = OpencodeHome(tmp_path, model, api=api, small=small)
        with serving(home):
            assert "It is complete." in home.opencode(TASK)
            session, subagent = home.session_ids()
            stored = home.stored(session)
            assert "That too." in home.opencode("-c", "and now")
            # opencode writes the tokens after the calls, and is read while it does.
            columns = "tokens_input, tokens_output, tokens_cache_read, tokens_cache_write"
            own = home.rows(f"SELECT {columns} FROM session WHERE parent_id IS NULL")
            stored = home.stored(session, lambda one: one["calls"] == 5 and [tokens_of(one)] == own)
            errands = home.stored(subagent)
            with home.open() as journeyman:
                record = journeyman.host_sessions.find("opencode", session)

    turns = [one for one in home.turns if count_in(one.body, TASK)]
    assert len(turns) == 6
    assert all(map(is_warm, turns))
    assert len({head(one) for one in turns}) == 1
    assert (count_in(turns[0].body, TOLD[TASK]) == 1) != small
    others = [one for one in model.requests if one not in turns]
    assert len(others) == 3  # the title, and two of the subagent
    assert all(map(is_untouched, others))

    assert record is not None
    assert stored["session"]["opening"] == record.opening != ""
    assert errands["session"].get("opening", "") == ""
    assert stored["calls"] + errands["calls"] == len(home.tool_states()) == 6
    (written,) = home.rows("SELECT group_concat(data) FROM part")[0]
    assert LEARNED not in written  # nothing of the opening is in opencode's own files


def test_a_fork_and_a_summary_keep_the_opening(tmp_path: Path) -> None:
    script = {
        "Here is the conversation so far": [says("A summary.")],
        TASK: [calls(shell("echo one")), says("It is complete.")],
        "and now": [calls(shell("echo two")), says("That too.")],
        "in the fork": [says("Here as well.")],
    }
    with ScriptedServer(script) as model:
        home = OpencodeHome(tmp_path, model, small=True)
        with serving(home), home.api() as api:
            session = api.create()
            api.prompt(session, TASK)
            fork = api.fork(session)
            api.prompt(fork, "in the fork")
            second_fork = api.fork(fork)
            api.prompt(second_fork, "again in the fork")
            before = len(model.requests)
            api.summarise(session)
            summary = model.requests[before]
            api.prompt(session, "and now")
            with home.open() as journeyman:
                kept = journeyman.host_sessions
                records = [kept.find("opencode", id_) for id_ in (session, fork, second_fork)]

    assert len(home.turns) == 6
    assert all(map(is_warm, home.turns))
    assert len({head(one) for one in home.turns[:4]}) == 1
    size = len(home.turns[0].body["messages"]) - 1  # without the prompt
    for turn in home.turns[4:]:
        assert count_in(turn.body, "A summary.") == 1
        assert turn.body["messages"][:size] == home.turns[0].body["messages"][:size]
    assert not summary.body.get("tools")
    assert is_untouched(summary)
    assert len({record.opening for record in records if record and record.opening}) == 1
    assert all(records)


class Approver:
    """A person who decides on confirmations one after another, in a thread."""

    def __init__(self, resident: Resident, *decisions: Callable[[dict[str, Any]], None]) -> None:
        self._resident = resident
        self._decisions = decisions
        self._thread = threading.Thread(target=self._decide)

    def _decide(self) -> None:
        for decide in self._decisions:
            card = self._resident.pending()
            decide(card)
            until(lambda card=card: self._status(card) != "pending")

    def _status(self, card: dict[str, Any]) -> str:
        with self._resident.home.open() as journeyman:
            found = journeyman.confirmations.confirmations.find(card["id"])
        return found.status if found else ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.join()


def test_risky_calls_wait_for_a_person(tmp_path: Path) -> None:
    written = {"filePath": str(tmp_path / "work/other.txt"), "content": "x"}
    lines = [calls(shell(RISKY)), calls(shell(RISKY)), calls(("write", written))]
    script = {TASK: [*lines, calls(shell(RISKY)), calls(shell(RISKY)), says("Done so far.")]}
    modes: list[str] = []
    with ScriptedServer(script) as model:
        home = OpencodeHome(tmp_path, model)
        with serving(home, home.key) as resident:

            def deny(card: dict[str, Any]) -> None:
                resident.decide(card, "deny", reason="Not on a Friday.")

            def approve(card: dict[str, Any]) -> None:
                modes.append(mode(home))
                resident.decide(card, "approve")

            def edit(card: dict[str, Any]) -> None:
                modes.append(mode(home))
                arguments = {**card["details"]["arguments"], "command": "chmod 750 notes.txt"}
                details = {**card["details"], "arguments": arguments}
                resident.decide(card, "approve", details=details)

            def wait_too_long(_card: dict[str, Any]) -> None:
                modes.append(mode(home))

            with Approver(resident, deny, approve, edit, wait_too_long):
                assert "Done so far." in home.opencode(TASK)
            session = home.session_ids()[0]
            home.stored(session, lambda one: one["calls"] == 5)
            judged = home.command.json("sessions", "show", session)["verdicts"]

    states = home.tool_states()
    statuses = [state["status"] for state in states]
    assert statuses == ["error", "completed", "completed", "completed", "error"]
    assert modes == ["0o644", "0o777", "0o750"]
    assert mode(home) == "0o750"
    assert "Not on a Friday." in states[0]["error"]
    assert "no one decided in time" in states[4]["error"]
    assert states[3]["input"]["command"] == "chmod 750 notes.txt"  # opencode records what ran
    assert [one["status"] for one in judged] == ["refused", "ok", "ok", "ok", "refused"]
    assert [judged[0]["by"], judged[4]["by"]] == ["person", "nobody"]


def test_a_stopped_session_withdraws_its_request(tmp_path: Path) -> None:
    with ScriptedServer({TASK: [calls(shell(RISKY)), says("Done.")]}) as model:
        home = OpencodeHome(tmp_path, model)
        with serving(home, home.key) as resident, home.api() as api:
            session = api.create()
            api.prompt(session, TASK, waits=False)
            card = resident.pending()
            time.sleep(4)  # longer than the plugin's first wait: it has asked again
            assert resident.pending()["id"] == card["id"]
            api.abort(session)
            with home.open() as journeyman:
                cards = journeyman.confirmations.confirmations
                until(lambda: cards.find(card["id"]).status == "cancelled")
    assert mode(home) == "0o644"


def test_installed_by_the_command_the_first_prompt_starts_the_process(tmp_path: Path) -> None:
    with ScriptedServer({TASK: [calls(shell("echo one")), says("It is complete.")]}) as model:
        home = OpencodeHome(tmp_path, model, start="on-demand")
        plugin = tmp_path / ".config/opencode/plugin/journeyman.js"
        plugin.unlink()
        home.command("hosts", "install", "opencode", "--yes")
        assert plugin.exists()
        home.opencode(TASK)
        process = ask(home, "status", {})["pid"]
        try:
            home.stored(home.session_ids()[0])
            home.opencode(TASK)
            assert [is_warm(one) for one in home.turns[2:]] == [True, True]
            home.stored(home.session_ids()[1])
            home.command("hosts", "remove", "opencode", "--yes")
            assert not plugin.exists()
            home.opencode(TASK)
            assert not any(map(is_warm, home.turns[4:]))
        finally:
            end_process(process)
