"""The real opencode while Journeyman fails: the session goes on without an opening, and a call that
needs a person is blocked.
"""

import signal
import threading
from pathlib import Path

import pytest
from tests.host_failures import FAILURES, Failure, absent, foreign, hanging, killed, uninstalled
from tests.host_service import TASK
from tests.hosts import count_in, serving
from tests.opencode_host import OpencodeHome, shell
from tests.waiting import until

from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(600)]

LEARNED = "build-index"
RISKY = "chmod 777 notes.txt"
BLOCKED = "Blocked by Journeyman: "
LIMITS_MS = {"opening": 2_000, "gateInChild": 6_000}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_service_costs_only_the_opening(tmp_path: Path, failure: Failure) -> None:
    script = {TASK: [calls(shell("echo one")), calls(shell(RISKY)), says("It is complete.")]}
    with ScriptedServer(script) as model:
        home = OpencodeHome(tmp_path, model, limits_ms=LIMITS_MS)
        with failure(home):
            assert "It is complete." in home.opencode(TASK)
        noted = [line.split()[1:3] for line in home.failures]
        assert ["opencode", "opening"] in noted or failure not in (hanging, foreign)

    assert len(home.turns) == 3
    warm = {count_in(one.body, LEARNED) > 0 for one in home.turns}
    # A child process answers instead of one that was killed, if it is quick enough.
    assert warm == {False} or (failure is killed and warm == {True})
    echo, risky = home.tool_states()
    assert risky["status"] == "error"
    assert risky["error"].startswith(BLOCKED)
    assert (home.work / "notes.txt").stat().st_mode & 0o777 == 0o644
    # Without any answer it is not known whether the rules name a call; in a child process it is.
    is_gone = failure in (absent, uninstalled)
    assert (echo["status"] == "error") == is_gone
    plugin = home.folder / ".config/opencode/plugin/journeyman.js"
    assert (
        f"hosts remove opencode` or, where that command is gone, by deleting {plugin}."
        in risky["error"]
        or not is_gone
    )


def test_a_service_killed_in_a_session(tmp_path: Path) -> None:
    """What the session started with stays as it is, also when it is resumed."""
    script = {
        TASK: [calls(shell("sleep 3")), calls(shell(RISKY)), says("It is complete.")],
        "and now": [says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = OpencodeHome(tmp_path, model, limits_ms={"gateInChild": 6_000})
        with serving(home) as resident:

            def kill() -> None:
                until(lambda: bool(home.turns))
                resident.process.signal(signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            assert "It is complete." in home.opencode(TASK)
            killer.join()
            assert "That too." in home.opencode("-c", "and now")

    assert len(home.turns) == 4
    assert all(count_in(one.body, LEARNED) for one in home.turns)
    assert len({str(one.body["messages"][0]) for one in home.turns}) == 1
    assert home.tool_states()[1]["error"].startswith(BLOCKED)


@pytest.mark.parametrize("way", ["pure", "broken"])
def test_a_plugin_that_is_not_loaded_protects_nothing(tmp_path: Path, way: str) -> None:
    """opencode allows no more: it goes on without a plugin that it cannot or should not load."""
    script = {TASK: [calls(shell(RISKY)), says("It is complete.")]}
    with ScriptedServer(script) as model:
        home = OpencodeHome(tmp_path, model)
        if way == "broken":
            home.write(".config/opencode/plugin/journeyman.js", "throw new Error('broken');")
        home.opencode(*(["--pure"] if way == "pure" else []), TASK)
    assert not any(count_in(one.body, LEARNED) for one in home.turns)
    assert home.tool_states()[0]["status"] == "completed"
