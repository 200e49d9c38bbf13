"""What is true of every run of Claude Code and Codex, each with the real program."""

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.client_runs import (
    GATE,
    TASK,
    Runs,
    check_as_imported,
    processes_of,
    run,
    shared_prefix,
)
from tests.model_server import ModelServer, sends, waits

from journeyman.hosts.host import Plug
from journeyman.hosts.process import HostRunner
from journeyman.hosts.runner import RunBegan, RunLimits, RunRequest, RunText
from journeyman.testing import ScriptedServer, says

_SLEEPER = f'{sys.executable} -c \'import time; open("begun", "w"); time.sleep(999)\''


def a_task_is_done(runs: Runs) -> None:
    script = {TASK: [runs.command("echo hi > ran.txt"), runs.command("exit 3"), runs.edit()]}
    script[TASK].append(says("All is done."))
    prompt = f"- {TASK}\n{'x' * 200_000}"
    with ScriptedServer(script) as server:
        ran = run(runs, server, prompt, opening="[What is known: nothing.]")
        body = server.requests[0].body
    result = ran.result
    assert (result.status, result.text, result.reason) == ("done", "All is done.", "")
    asked = sum(len(reply.tool_calls) for reply in script[TASK])
    assert (result.turns, result.calls, result.denied) == (4, asked, ())
    assert (runs.home.work / "ran.txt").exists()
    assert (runs.home.work / "notes.txt").read_text() == "1\ntwo\n"
    assert "What is known" in str(body)
    began, *rest = ran.steps
    assert isinstance(began, RunBegan)
    assert (began.session, began.model) == (result.session, result.model)
    assert rest[-1] == RunText(text="All is done.")
    check_as_imported(runs, ran)


def errors_of_the_model_are_told(runs: Runs) -> None:
    for status, expected in ((500, "model_failed"), (401, "not_logged_in"), (429, "rate_limited")):
        body = {"type": "error", "error": {"type": "some_error", "message": f"Said {status}."}}
        with ModelServer(*[sends(body, status=status)] * 30) as server:
            server.pages[runs.requests_path] = sends(body, status=status)
            ran = run(runs, server)
        assert ran.result.status == expected
        assert ran.result.reason
        assert ran.result.text == ""


def without_a_key_it_is_not_logged_in(runs: Runs) -> None:
    with ModelServer() as server:
        ran = run(runs, server, environ={runs.key: ""})
        asked = [one for one in server.requests if one.method == "POST"]
    assert (ran.result.status, asked) == ("not_logged_in", [])
    assert ran.result.reason.endswith(f". To log in: {runs.page.log_in}")


def without_the_program_nothing_runs(runs: Runs) -> None:
    with ModelServer() as server:
        ran = run(runs, server, environ={"PATH": "/usr/bin:/bin"})
    assert ran.result.status == "not_installed"
    assert runs.page.install in ran.result.reason


def a_silent_model_ends_at_the_time_limit(runs: Runs) -> None:
    with ModelServer(waits()) as server:
        server.pages[runs.requests_path] = waits()

        def timer() -> float:  # the time is over as soon as the model was asked
            return 100.0 if any(one.method == "POST" for one in server.requests) else 0.0

        limits = RunLimits(seconds=50)
        asked = RunRequest(prompt=TASK, folder=runs.home.work, limits=limits)
        result = HostRunner(runs.page, environ=runs.environ(server), timer=timer).run(asked)
    assert (result.status, result.reason) == ("time", "The limit of 50 seconds was reached.")


def turns_and_tokens_are_limited(runs: Runs) -> None:
    with ScriptedServer({TASK: [runs.command("sleep 0.3")] * 30}) as server:
        turns = run(runs, server, limits=RunLimits(turns=2)).result
        asked = len(server.requests)
        tokens = run(runs, server, limits=RunLimits(tokens=250)).result
    assert (turns.status, tokens.status) == ("turns", "tokens")
    # A host without such a limit has asked once more by then.
    assert 2 <= turns.turns <= asked <= 4
    assert 250 < (tokens.tokens.total or 0) < 600


def a_stopped_session_goes_on(runs: Runs) -> None:
    script = {TASK: [runs.command(_SLEEPER)], "go on": [says("Going on.")]}
    begun = runs.home.work / "begun"
    with ScriptedServer(script) as server:
        stopped = run(runs, server, cancelled=begun.exists, plug=Plug(run="stopped-run"))
        assert [*processes_of("stopped-run")] == []
        resumed = run(runs, server, "go on", resume=stopped.result.session)
        body = server.requests[-1].body
    assert (stopped.result.status, stopped.result.tokens.input_tokens) == ("interrupted", 100)
    assert (resumed.result.status, resumed.result.text) == ("done", "Going on.")
    assert resumed.result.session == stopped.result.session
    assert (resumed.result.turns, resumed.result.tokens.input_tokens) == (1, 100)
    assert TASK in str(body)


def a_gate_decides(runs: Runs) -> None:
    runs.add_own_hook("echo own >> ~/own.txt")
    words = [runs.command("echo forbidden > no.txt"), runs.command("echo > yes.txt"), says("Done.")]
    with ScriptedServer({TASK: words}) as server:
        ran = run(runs, server, plug=Plug(hooks=GATE))
        body = server.requests[-1].body
    assert [one.denied for one in ran.calls] == [True, False]
    assert "Not on a Friday." in ran.result.denied[0].reason
    assert "Not on a Friday." in str(body)
    assert {path.name for path in runs.home.work.glob("*.txt")} == {"notes.txt", "yes.txt"}
    # Each hook was asked once for each call.
    assert (runs.home.folder / "gate.txt").read_text().count('"tool_input"') == 2
    assert (runs.home.folder / "own.txt").read_text().split() == ["own"] * 2
    check_as_imported(runs, ran)


def a_reader_changes_nothing(runs: Runs) -> None:
    with ScriptedServer(
        {TASK: [runs.command("echo > no.txt"), runs.edit(), says("No.")]}
    ) as server:
        ran = run(runs, server, access="read")
    assert ran.result.status == "done"
    assert (runs.home.work / "notes.txt").read_text() == "one\ntwo\n"
    assert not (runs.home.work / "no.txt").exists()
    assert ran.result.denied
    check_as_imported(runs, ran)


def all_is_permitted(runs: Runs) -> None:
    outside = runs.home.folder / "outside.txt"
    with ScriptedServer({TASK: [runs.command(f"echo > {outside}"), runs.edit()]}) as server:
        ran = run(runs, server, access="all")
    assert ran.result.denied == ()
    assert outside.exists()
    assert (runs.home.work / "notes.txt").read_text() == "1\ntwo\n"


def a_fork_only_answers(runs: Runs) -> None:
    """A fork keeps the prefix that the provider has cached, and the original as it is."""
    denied = [reply for _ in range(6) for reply in runs.errands()]
    script = {
        TASK: [runs.command("echo hi"), says("It is done.")],
        "Look back": [*denied, says("So.")],
    }
    with ScriptedServer(script) as server:
        original = run(runs, server).result
        log = runs.page.find_log(original.session, {"HOME": str(runs.home.folder)})
        assert log is not None
        before, asked = hashlib.sha256(log.read_bytes()).digest(), len(server.requests)
        request = {"fork": original.session, "model": original.model}
        fork = run(runs, server, "Look back", tools=False, **request)
        bodies = [one.body for one in server.requests]
    assert shared_prefix(runs, bodies[asked - 1], bodies[asked]) == 1.0
    assert hashlib.sha256(log.read_bytes()).digest() == before
    assert fork.result.session not in ("", original.session)
    assert (fork.result.status, fork.result.text, fork.result.calls) == ("done", "So.", 30)
    assert len(denied) == 30
    assert all(one.denied for one in fork.calls)
    assert {path.name for path in runs.home.work.iterdir()} == {".git", "notes.txt"}


def two_at_once(runs: Runs) -> None:
    # Requests name the files in the folder, so no file is named like a task.
    script = {
        f"Errand {name}": [runs.command(f"echo > {name}.txt; sleep 0.5"), says(f"Done {name}.")]
        for name in ("first", "second")
    }
    with ScriptedServer(script) as server, ThreadPoolExecutor(2) as pool:
        ran = [*pool.map(lambda name: run(runs, server, name), script)]
    assert [one.result.text for one in ran] == ["Done first.", "Done second."]
    assert len({one.result.session for one in ran}) == 2
    for one in ran:
        assert one.result.turns == 2
        assert len(one.calls) == 1


def inside_another_session_it_is_an_ordinary_run(runs: Runs) -> None:
    """A session's own variables are those of its commands."""
    script = {TASK: [runs.command("env -0 > variables"), says("Done.")], "inner": [says("Inner.")]}
    with ScriptedServer(script) as server:
        run(runs, server)
        text = (runs.home.work / "variables").read_text()
        variables = dict(one.split("=", 1) for one in text.split("\0") if "=" in one)
        plain = run(runs, server, "inner")
        passed = ("PATH", "PWD", "SHELL")
        outer = {name: value for name, value in variables.items() if name not in passed}
        inner = run(runs, server, "inner", environ=outer)
        *_, first, second = (runs.prefix(one.body) for one in server.requests)
    assert set(variables) & set(runs.page.nested)
    assert inner.result.status == plain.result.status == "done"
    assert first == second
    assert runs.page.find_log(inner.result.session, {"HOME": str(runs.home.folder)})


CHECKS = (
    a_task_is_done,
    errors_of_the_model_are_told,
    without_a_key_it_is_not_logged_in,
    without_the_program_nothing_runs,
    a_silent_model_ends_at_the_time_limit,
    turns_and_tokens_are_limited,
    a_stopped_session_goes_on,
    a_gate_decides,
    a_reader_changes_nothing,
    all_is_permitted,
    a_fork_only_answers,
    two_at_once,
    inside_another_session_it_is_an_ordinary_run,
)
