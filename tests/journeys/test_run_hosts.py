"""`journeyman run` with the real agents: it starts warm and passes the gate once, whether or not
Journeyman is installed in them, and its session comes back as the person's.
"""

import json
import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.claude_code_host import QUIET, bash
from tests.clients import client_program
from tests.codex_host import configure_codex
from tests.codex_host import shell as codex_shell
from tests.host_service import START, TASK, TOLD
from tests.hosts import PUSH, HostHome, count_in, openings_in
from tests.opencode_host import OFFLINE, model_config
from tests.opencode_host import shell as opencode_shell
from tests.program import Process
from tests.waiting import until

from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]


class Engine(Struct, frozen=True, kw_only=True):
    """An agent for `run --with`, and how it is pointed at a scripted model."""

    name: str
    client: str
    access: str = "edit"

    def reply(self, command: str) -> Reply:
        """A reply that runs a command."""
        if self.name == "codex":
            return codex_shell(command)
        return bash(command) if self.name == "claude-code" else calls(opencode_shell(command))

    def environ(self, home: HostHome, model: ScriptedServer) -> Mapping[str, str]:
        path = {"PATH": f"{client_program(self.client).parent}:{os.environ['PATH']}"}
        if self.name == "claude-code":
            return {**QUIET, "ANTHROPIC_BASE_URL": model.url, **path}
        if self.name == "codex":
            configure_codex(home, model)
            return {"SCRIPTED_KEY": "none", **path}
        home.write(".config/opencode/opencode.json", model_config(model.base_url))
        return {**OFFLINE, **path}


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(name="claude-code", client="claude_code"),
        Engine(name="codex", client="codex", access="all"),
        Engine(name="opencode", client="opencode"),
    )
}


def home_for(folder: Path, engine: Engine, *, is_installed: bool = False) -> HostHome:
    """A home with experience of the work folder."""
    home = HostHome(folder)
    home.configure(start="never")
    home.write_experience("bash" if engine.name == "opencode" else "Bash")
    if is_installed:
        home.command("hosts", "install", engine.name, "--yes")
    return home


def started(home: HostHome, engine: Engine, model: ScriptedServer, *arguments: str) -> Process:
    # Codex' sandbox does not work below a folder for temporary files, where tests are.
    return home.command.start(
        *("run", *arguments, "--with", engine.name, "--access", engine.access),
        *("--workspace", home.work, "--json"),
        **engine.environ(home, model),
    )


def run(home: HostHome, engine: Engine, model: ScriptedServer, *arguments: str) -> Any:
    """Run a task to its end, and return what was printed."""
    return json.loads(started(home, engine, model, *arguments).wait().stdout)


def stored(home: HostHome, session: str) -> Any:
    found = home.command.json("sessions", "list", "--limit", "100")
    (one,) = [one for one in found if one["session"]["id"] == session]
    return one


@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize("name", ENGINES)
def test_a_run_is_warm_and_gated_once(name: str, tmp_path: Path, *, is_installed: bool) -> None:
    engine = ENGINES[name]
    home = home_for(tmp_path, engine, is_installed=is_installed)
    script = {
        TASK: [
            engine.reply("touch made.ran"),
            engine.reply(PUSH.format("main")),
            says("It is done."),
        ]
    }
    with ScriptedServer(script) as model:
        done = run(home, engine, model, TASK)
        requests = [one.body for one in model.requests if count_in(one.body, TASK)]

    assert (done["status"], done["text"], done["calls"]) == ("done", "It is done.", 2), done
    # It was told the same, once, in every request.
    assert {count_in(one, START) for one in requests} == {1}
    assert len({tuple(openings_in(one)) for one in requests}) == 1
    assert {count_in(one, TOLD[TASK]) for one in requests} == {1}
    # The harmless command ran, the risky one did not, as nobody could be asked.
    assert home.ran == {"made"}
    (denied,) = done["denied"]
    assert "Blocked by Journeyman" in denied["reason"]
    # The session came back once, with its opening, and as a person's.
    one = stored(home, done["session"])
    assert done["opening"]["id"] == one["session"]["opening"]
    if name != "opencode":  # there it stands in the system's text, without marks
        assert count_in(requests[0], f"[Journeyman {done['opening']['id']}:]") == 1
    assert (one["calls"], one["session"]["platform"]) == (2, "run")
    kinds = ("input_tokens", "output_tokens")
    assert [one["tokens"][kind] for kind in kinds] == [done["tokens"][kind] for kind in kinds]
    assert home.failures == []
    # What it changed can be taken back.
    assert done["changed_files"] is True
    undone = home.command.json("undo", done["session"], "--yes")
    assert [change["path"] for change in undone["changes"]] == ["made.ran"]
    assert home.ran == set()


@pytest.mark.parametrize("name", ENGINES)
def test_a_stopped_run_ends_the_host_and_keeps_its_session(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    home = home_for(tmp_path, engine)
    script = {
        TASK: [engine.reply(f"touch begun.ran; python3 -c 'import time; time.sleep(600)' {name}")],
        "Go on": [says("Gone on.")],
    }
    with ScriptedServer(script) as model:
        process = started(home, engine, model, TASK)
        until(lambda: home.ran or not process.running)
        process.signal(signal.SIGINT)
        stopped = json.loads(process.wait(code=1).stdout)
        resumed = run(home, engine, model, "Go on", "--resume", stopped["session"])
    assert stopped["status"] == "interrupted"
    assert not _is_running(f"time.sleep(600)\0{name}")
    assert (resumed["status"], resumed["session"]) == ("done", stopped["session"])
    assert stored(home, stopped["session"])["calls"] == 1


def _is_running(words: str) -> bool:
    def holds(folder: Path) -> bool:
        try:
            return words.encode() in (folder / "cmdline").read_bytes()
        except OSError:
            return False

    return any(map(holds, Path("/proc").glob("[0-9]*")))


@pytest.mark.parametrize("name", ENGINES)
def test_two_runs_at_once_in_one_home(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    home = home_for(tmp_path, engine)
    tasks = ("First count the notes", "Then read the notes")
    script = {
        task: [engine.reply(f"touch run{number}.ran"), says(f"Done {number}.")]
        for number, task in enumerate(tasks)
    }
    script["Hello"] = [says("Hello.")]
    with ScriptedServer(script) as model, ThreadPoolExecutor() as pool:
        # Two that start opencode for the first time disturb each other, with or without us.
        run(home, engine, model, "Hello")
        done = list(pool.map(lambda task: run(home, engine, model, task), tasks))
    assert [one["text"] for one in done] == ["Done 0.", "Done 1."]
    assert home.ran == {"run0", "run1"}
    assert [stored(home, one["session"])["calls"] for one in done] == [1, 1]


def test_without_an_agent_it_says_how_to_get_one(tmp_path: Path) -> None:
    home = HostHome(tmp_path)
    home.configure(start="never")
    bare = {"PATH": "/usr/bin:/bin"}
    said = home.command("run", TASK, "--workspace", home.work, code=2, **bare).stderr
    assert "npm install -g @anthropic-ai/claude-code" in said
    assert "--model embedded" in said
    done = home.command.json("run", TASK, "--with", "codex", code=1, **bare)
    assert done["status"] == "not_installed"
    assert "npm install -g @openai/codex" in done["reason"]
