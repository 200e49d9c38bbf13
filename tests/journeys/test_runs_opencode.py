"""Runs of the real opencode by Journeyman."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.clients import client_program
from tests.model_server import Answer, ModelServer, fails, waits
from tests.opencode_host import serve, shell
from tests.plugin_runs import OpencodeRuns, at_once, prefix_share, tokens_in
from tests.waiting import until

from journeyman.hosts.host import Plug
from journeyman.hosts.opencode import OpenCode
from journeyman.hosts.process import HostRunner
from journeyman.hosts.runner import RunBegan, RunLimits, RunRequest, RunStatus, RunText
from journeyman.outcomes.judge import judge
from journeyman.testing import ScriptedServer, calls, says
from journeyman.testing.model_server import ServedRequest

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(600)]

DENY = {"permission": {"bash": {"*": "ask", "rm *": "deny"}}}
"""A person who wants to be asked about commands, and forbids one."""


def turns(model: ScriptedServer) -> Sequence[ServedRequest]:
    return [one for one in model.requests if one.body.get("tools")]


def test_a_run_reports_what_the_import_says(tmp_path: Path) -> None:
    notes = str(tmp_path / "work/notes.txt")
    edit = {"filePath": notes, "oldString": "one", "newString": "ONE"}
    script = {
        'the "notes"': [
            calls(("read", {"filePath": notes}), text="I look."),
            calls(("edit", edit), shell("cat missing.txt")),
            calls(shell("rm notes.txt"), ("nonsense", {"a": 1}), ("read", {"filePath": 5})),
            calls(shell("cat /etc/hostname")),
            says("Finished."),
        ],
        "and now": [calls(shell("pwd > where.txt")), says("That too.")],
    }
    with ScriptedServer(script) as model:
        home = OpencodeRuns(tmp_path, model.base_url, **DENY)
        ran = home.ask('Correct the "notes" --please')
        session = ran.result.session
        stored = home.stored(session)
        resumed = home.ask("and now", resume=session, nested={"PWD": "/"})
    result = ran.result
    assert (result.status, result.text, result.reason) == ("done", "Finished.", "")
    assert (result.turns, result.calls) == (5, 7)
    assert Path(notes).read_text() == "ONE\ntwo\n"
    assert ran.steps[0] == RunBegan(session=session)
    assert [step.text for step in ran.steps if isinstance(step, RunText)] == [
        "I look.",
        "Finished.",
    ]
    assert tokens_in(ran) == (500, 50, 0, 0)

    assert stored["session"]["title"] == 'Correct the "notes" --please'
    assert stored["tokens"]["input_tokens"] == 500
    assert stored["tokens"]["output_tokens"] == 50
    verdicts = [judge(step.call).status for step in ran.calls]
    assert verdicts == home.verdicts(session)
    assert verdicts == ["ok", "ok", "failed", "refused", "invalid", "invalid", "refused"]
    assert [step.denied for step in ran.calls] == [one == "refused" for one in verdicts]
    assert [one.tool for one in result.denied] == ["bash", "bash"]

    assert resumed.result.session == session
    assert (resumed.result.status, resumed.result.text) == ("done", "That too.")
    assert (home.work / "where.txt").read_text().strip() == str(home.work)
    prompts = home.rows("SELECT data FROM part WHERE data LIKE '%please%'")
    assert json.loads(prompts[0][0])["text"] == 'Correct the "notes" --please'


@pytest.mark.parametrize("made_by", ["run", "run of another agent", "serve"])
def test_a_fork_keeps_the_prefix_and_the_original(tmp_path: Path, made_by: str) -> None:
    work = tmp_path / "work"
    every = [
        calls(
            shell(f"touch {number}.ran"),
            ("write", {"filePath": str(work / f"{number}.txt"), "content": "x"}),
            ("task", {"description": "Ask", "prompt": "an errand", "subagent_type": "general"}),
        )
        for number in range(10)
    ]
    script = {
        "the original": [calls(shell("echo one"), shell("echo two")), says("It is complete.")],
        "in the fork": [*every, says("An answer in words.")],
    }
    with ScriptedServer(script) as model:
        home = OpencodeRuns(tmp_path, model.base_url)
        home.write(
            ".config/opencode/agent/other.md",
            "---\nmode: primary\npermission: {webfetch: deny}\n---\nBe short.\n",
        )
        if made_by == "serve":
            with serve(home.environ, home.work) as api:
                session = api.create()
                api.prompt(session, "the original")
        else:
            agent = ["--agent", "other"] if made_by != "run" else []
            home.run(client_program("opencode"), "run", *agent, "the original", **home.environ)
            session = str(home.rows("SELECT id FROM session")[0][0])
        original, before, files = turns(model)[-1].body, home.record(session), {*work.iterdir()}
        ran = home.ask("in the fork", fork=session, tools=False)
        fork = turns(model)[2].body
    assert prefix_share(original, fork) == 1.0
    assert fork["tools"] == original["tools"]
    assert home.record(session) == before
    assert ran.result.session not in ("", session)
    assert (ran.result.status, ran.result.text) == ("done", "An answer in words.")
    assert len(ran.calls) == len(ran.result.denied) == 30
    assert {*work.iterdir()} == files


@pytest.mark.parametrize("access", ["read", "edit", "all"])
def test_access(tmp_path: Path, access: Any) -> None:
    beside, notes = tmp_path / "beside.txt", tmp_path / "work/notes.txt"
    beside.write_text("beside\n")
    lines = [
        calls(("read", {"filePath": str(notes)})),
        calls(("write", {"filePath": str(tmp_path / "work/new.txt"), "content": "x"})),
        calls(shell("touch ran.txt")),
        calls(("read", {"filePath": str(beside)})),
        calls(shell("rm notes.txt")),
    ]
    with ScriptedServer({"do it": [*lines, says("Done so far.")]}) as model:
        home = OpencodeRuns(tmp_path, model.base_url, **DENY)
        ran = home.ask("do it", access=access, nested={"OPENCODE_PURE": "1", "OPENCODE": "1"})
    assert (ran.result.status, ran.result.text) == ("done", "Done so far.")
    expected = {
        "read": [False, True, True, True, True],
        "edit": [False, False, False, True, True],
        "all": [False, False, False, False, True],
    }
    assert [step.denied for step in ran.calls] == expected[access]
    assert notes.exists()
    assert (
        (home.work / "new.txt").exists() == (home.work / "ran.txt").exists() == (access != "read")
    )


ERRORS: list[tuple[Answer, RunStatus]] = [
    (fails(401, "Incorrect API key"), "not_logged_in"),
    (fails(404, "no such model"), "model_failed"),
    (fails(400, "maximum context length is 10 tokens, your messages"), "context_full"),
    (fails(429, "Rate limit reached", retry_after="0.1"), "rate_limited"),
    (fails(500, "the server is broken", retry_after="0.1"), "model_failed"),
]


def test_errors_of_the_provider(tmp_path: Path) -> None:
    found = []
    for answer, status in ERRORS:
        with ModelServer(always=answer) as model:
            folder = tmp_path / str(len(found))
            folder.mkdir()
            result = OpencodeRuns(folder, model.base_url).ask("do it").result
        message = json.loads(answer.pieces[0])["error"]["message"]
        if status == "not_logged_in":
            message += ". To log in: opencode auth login"
        found.append(
            (result.status, result.reason, bool(result.session)) == (status, message, True)
        )
    assert all(found), found


def test_what_cannot_be_run(tmp_path: Path) -> None:
    with ScriptedServer({}) as model:
        home = OpencodeRuns(tmp_path, model.base_url)
        unknown = home.ask("do it", model="nobody/nothing").result
        missing = home.ask("do it", resume="ses_missing").result
        login = OpenCode().login(str(client_program("opencode")), home.environ)
        keyed = OpenCode().login(
            str(client_program("opencode")), home.environ | {"OPENAI_API_KEY": "none"}
        )
    assert unknown.status == missing.status == "failed"
    assert "Model not found: nobody/nothing" in unknown.reason
    assert missing.reason == "Session not found"
    assert (login, keyed) == ("unknown", "yes")
    absent = HostRunner(OpenCode(), environ={"PATH": str(tmp_path)})
    result = absent.run(RunRequest(prompt="do it", folder=tmp_path))
    assert (result.status, result.session) == ("not_installed", "")
    assert "npm install -g opencode-ai" in result.reason


def test_limits_and_a_stop(tmp_path: Path) -> None:
    endless = [calls(shell(f"echo {number}")) for number in range(20)]
    waiting = "touch waiting.txt; sleep 300 & sleep 300"
    script = {
        "go on": endless,
        "wait": [calls(shell(waiting)), says("Waited.")],
        "so": [says("So.")],
    }
    with ScriptedServer(script) as model:
        home = OpencodeRuns(tmp_path, model.base_url)
        few = home.ask("go on", limits=RunLimits(turns=3)).result
        cheap = home.ask("go on", limits=RunLimits(tokens=500)).result
        assert (few.status, few.turns) == ("turns", 4)
        assert cheap.status == "tokens"
        stopped = home.ask("wait", cancelled=(home.work / "waiting.txt").exists).result
        assert stopped.status == "interrupted"
        assert stopped.session
        until(lambda: not running("sleep 300"))
        again = home.ask("so it goes on", resume=stopped.session).result
        assert (again.status, again.text, again.session) == ("done", "So.", stopped.session)
    with ModelServer(always=waits()) as silent:
        folder = tmp_path / "silent"
        folder.mkdir()
        late = (
            OpencodeRuns(folder, silent.base_url).ask("do it", limits=RunLimits(seconds=6)).result
        )
        assert late.status == "time"


def running(command: str) -> list[str]:
    """The processes of this user with this command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if " ".join(words).strip() == command:
            found.append(path.parent.name)
    return found


PLUGIN = """
import { appendFileSync } from "node:fs";
export const One = async () => ({
  "tool.execute.before": async () => appendFileSync("%s", "%s\\n"),
});
"""


def test_a_plugin_for_the_run_and_two_runs_at_once(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    script = {"first": [calls(shell("echo 1")), says("One.")], "second": [says("Two.")]}
    with ScriptedServer(script) as model:
        home = OpencodeRuns(tmp_path, model.base_url)
        home.write(".config/opencode/plugin/own.js", PLUGIN % (seen, "own"))
        plug = Plug(plugin=str(home.write("ours.js", PLUGIN % (seen, "ours"))))
        first, second = at_once(
            lambda: home.ask("first", plug=plug, opening="Remember the cat."),
            lambda: home.ask("second"),
        )
    assert [first.result.text, second.result.text] == ["One.", "Two."]
    assert [first.result.status, second.result.status] == ["done", "done"]
    assert first.result.session != second.result.session
    assert seen.read_text().split() == ["own", "ours"]
    told = {"Remember the cat." in json.dumps(one.body) for one in turns(model)}
    assert told == {True, False}
