"""Jobs with the real agents of hosts: each due time has one run whatever becomes of its host, and
nothing is asked of a model that is too small.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.host_service import TASK
from tests.hosts import PUSH, HostHome, WatchedServer
from tests.job_desk import Clock
from tests.journeys.test_run_hosts import ENGINES, Engine, home_for
from tests.model_server import ModelServer, sends
from tests.waiting import until

from journeyman import Journeyman
from journeyman.hosts.pages import PAGES
from journeyman.jobs.jobs import Jobs
from journeyman.plugin.runs import HostRuns
from journeyman.records.job import Run
from journeyman.testing import ScriptedServer, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(600)]

DAY_S, DUE = 86_400.0, 20
KILLED = (3, 4, 9, 13, 17)
"""Never three in a row, after which a job is held."""


class HostDesk:
    """The jobs of a home whose host asks a scripted model, on a clock of the test."""

    def __init__(self, home: HostHome, engine: Engine, model: ScriptedServer) -> None:
        self.home, self.engine, self.clock = home, engine, Clock()
        self.environ = {**home.command.environ, **engine.environ(home, model)}
        self.answers = home.folder / "answers.md"
        self.journeyman = Journeyman(home=home.journeyman, environ=self.environ, clock=self.clock)
        self.jobs: Jobs = self.journeyman.jobs_with(hosts=HostRuns(self.journeyman, self.environ))

    def add(self, prompt: str = TASK, name: str = "notes", **options: Any) -> str:
        given = {
            "schedule": "every day 09:00",
            "timezone": "UTC",
            "workdir": self.home.work,
            "runner": self.engine.name,
            "access": self.engine.access,
            "deliver": [f"file:{self.answers}"],
            **options,
        }
        return self.jobs.add(given.pop("schedule"), prompt, name=name, **given).job.name

    def run(self, prompt: str = TASK, **options: Any) -> Run:
        return self.jobs.run(self.add(prompt, **options))

    @property
    def told(self) -> str:
        return self.answers.read_text() if self.answers.exists() else ""


@contextmanager
def desk(folder: Path, name: str, model: ScriptedServer) -> Iterator[HostDesk]:
    engine = ENGINES[name]
    made = HostDesk(home_for(folder, engine), engine, model)
    with made.journeyman:
        yield made


def kill_host() -> None:
    """Kill the program that this process has started for a run."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if (
                int(parent) == os.getpid()
                and b"JOURNEYMAN_RUN=" in (folder / "environ").read_bytes()
            ):
                os.kill(int(folder.name), signal.SIGKILL)


@pytest.mark.parametrize("name", ENGINES)
def test_a_day_of_due_times_with_a_host_that_is_killed(name: str, tmp_path: Path) -> None:
    number = 0

    def before_reply(_count: int) -> None:
        if number in KILLED:
            kill_host()

    script = {TASK: [ENGINES[name].reply("echo >> made.ran"), says("The notes are in order.")]}
    with WatchedServer(script, before_reply) as model, desk(tmp_path, name, model) as jobs:
        jobs.add(schedule=f"every {DAY_S / DUE / 60:g}m")
        began = jobs.clock.now
        scheduler = jobs.jobs.scheduler()
        scheduler.start = lambda work: work()
        for number in range(1, DUE + 1):
            jobs.clock.now = began + number * DAY_S / DUE
            assert scheduler.tick() == 1
            assert scheduler.tick() == 0
        scheduler.stop()
        runs = jobs.jobs.show("notes", limit=None).runs[::-1]
        sessions = {one.session.id: one.session for one in jobs.journeyman.sessions.list()}
    print(*(f"{run.status} {run.reason}" for run in runs), sep="\n")
    # None was lost, none ran twice.
    assert [run.due_at for run in runs] == [began + at * DAY_S / DUE for at in range(1, DUE + 1)]
    failed = [place for place, run in enumerate(runs, start=1) if run.status == "failed"]
    assert tuple(failed) == KILLED
    assert {run.status for run in runs} == {"ok", "failed"}
    for run in runs:
        assert run.status == "ok" or "SIGKILL" in run.reason
    assert jobs.told.count("The notes are in order.") == DUE - len(KILLED)
    assert jobs.told.count("The job notes failed: ") == len(KILLED)
    # Their sessions belong to the job.
    for run in runs:
        session = sessions.get(run.session)
        assert session is not None or run.status == "failed"
        if session is not None:
            assert (session.platform, session.tags) == ("job", ("job", "job:notes"))


def small_window(home: HostHome, name: str) -> dict[str, str]:
    """Have a host use a model with a small window, by its own settings."""
    if name == "codex":
        config = home.folder / ".codex/config.toml"
        config.write_text(f"model_context_window = 32000\n{config.read_text()}")
    elif name == "opencode":
        config = home.folder / ".config/opencode/opencode.json"
        config.write_text(config.read_text().replace("128000", "32000"))
    return {"model": "gpt-4"} if name == "claude-code" else {}


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode"])
def test_a_small_window_is_blocked_without_a_request(name: str, tmp_path: Path) -> None:
    with ScriptedServer({TASK: [says("Done.")]}) as model, desk(tmp_path, name, model) as jobs:
        blocked = jobs.run(**small_window(jobs.home, name))
        assert model.requests == []
    print(blocked.status, blocked.reason)
    assert blocked.status == "blocked"
    assert f"{8_192 if name == 'claude-code' else 32_000:,} tokens" in blocked.reason
    assert "at least 64,000" in jobs.told


@pytest.mark.parametrize("name", ENGINES)
def test_a_job_is_gated_and_delivers_its_answer_once(name: str, tmp_path: Path) -> None:
    reply = ENGINES[name].reply
    script = {TASK: [reply("touch made.ran"), reply(PUSH.format("main")), says("It is done.")]}
    with ScriptedServer(script) as model, desk(tmp_path, name, model) as jobs:
        run = jobs.run()
        asked = [one.body for one in model.requests if TASK in str(one.body)][-1]
        quiet = {TASK: [says("[SILENT]")]}
        with ScriptedServer(quiet) as other:
            jobs.engine.environ(jobs.home, other)
            jobs.environ.update(jobs.engine.environ(jobs.home, other))
            silent = jobs.run(name="quiet")
    print(run.status, run.answer, run.remarks, run.tokens)
    assert (run.status, run.answer) == ("ok", "It is done.")
    assert jobs.told.count("It is done.") == 1
    assert jobs.home.ran == {"made"}
    assert "1 call was refused." in run.remarks
    assert run.tokens
    for said in ("the scheduled job", "PROVIDER: ", "[SCRIPT_FAILED]", "TIME: "):
        assert said in str(asked)
    assert silent.status == "silent"
    assert "[SILENT]" not in jobs.told


@pytest.mark.parametrize("name", ENGINES)
def test_several_jobs_at_once(name: str, tmp_path: Path) -> None:
    tasks = [f"Count the notes of month {month}" for month in ("one", "two", "three")]
    script = {
        task: [ENGINES[name].reply(f"touch run{number}.ran"), says(f"Done {number}.")]
        for number, task in enumerate(tasks)
    }
    script["Hello"] = [says("Hello.")]
    with ScriptedServer(script) as model, desk(tmp_path, name, model) as jobs:
        # Two that start opencode for the first time disturb each other, with or without us.
        jobs.jobs.run(jobs.add("Hello", "first"))
        names = [jobs.add(task, f"job{number}") for number, task in enumerate(tasks)]
        with ThreadPoolExecutor() as pool:
            runs = list(pool.map(jobs.jobs.run, names))
    assert [(run.status, run.answer) for run in runs] == [
        ("ok", f"Done {number}.") for number in range(3)
    ], runs
    assert jobs.home.ran == {"run0", "run1", "run2"}


@pytest.mark.parametrize("name", ENGINES)
def test_a_scheduler_of_its_own_runs_a_job_once(name: str, tmp_path: Path) -> None:
    engine, answers = ENGINES[name], tmp_path / "answers.md"
    home = home_for(tmp_path, engine)
    with ScriptedServer({TASK: [engine.reply("touch made.ran"), says("It is done.")]}) as model:
        environ = engine.environ(home, model)
        options = ("--with", name, "--access", engine.access, "--deliver", f"file:{answers}")
        work = ("--name", "notes", "--workspace", home.work)
        home.command("jobs", "add", "in 1s", TASK, *work, *options, **environ)
        serving = home.command.start("jobs", "serve", **environ)
        until(answers.exists)
        serving.signal(signal.SIGTERM)
        serving.wait(code=0)
    assert answers.read_text().count("It is done.") == 1
    assert home.ran == {"made"}
    shown = home.command.json("jobs", "show", "notes")
    assert shown["job"]["runner"] == name
    assert [run["status"] for run in shown["runs"]] == ["ok"]


LOGINS: dict[str, Callable[[dict[str, str]], None]] = {
    "claude-code": lambda environ: environ.update(ANTHROPIC_API_KEY=""),
    "codex": lambda environ: environ.update(SCRIPTED_KEY=""),
}


@pytest.mark.parametrize("name", LOGINS)
def test_failures_say_what_to_do(name: str, tmp_path: Path) -> None:
    page = next(page for page in PAGES.values() if page.name == name)
    with ScriptedServer({TASK: [says("Done.")]}) as model, desk(tmp_path, name, model) as jobs:
        LOGINS[name](jobs.environ)
        not_logged_in = jobs.run(name="no-login")
        jobs.environ["PATH"] = "/usr/bin:/bin"
        not_installed = jobs.run(name="no-program")
        assert page.install in jobs.jobs.check(jobs.jobs.get("no-program")).remarks[-1]
    print(not_logged_in.reason, not_installed.reason, sep="\n")
    assert (not_logged_in.status, not_installed.status) == ("failed", "failed")
    assert not_logged_in.reason.startswith(f"{page.title} is not logged in: ")
    assert not_logged_in.reason.endswith(f"To log in: {page.log_in}")
    assert page.install in not_installed.reason


PATHS = {"claude-code": "/v1/messages?beta=true", "codex": "/v1/responses"}


@pytest.mark.parametrize("name", PATHS)
def test_a_rate_limit_is_told(name: str, tmp_path: Path) -> None:
    page = next(page for page in PAGES.values() if page.name == name)
    error = {"type": "rate_limit_error", "message": "Come back at noon."}
    with (
        ScriptedServer({}) as unused,
        desk(tmp_path, name, unused) as jobs,
        ModelServer() as server,
    ):
        server.pages[PATHS[name]] = sends({"type": "error", "error": error}, status=429)
        if name == "claude-code":
            jobs.environ |= {"ANTHROPIC_BASE_URL": server.root_url, "CLAUDE_CODE_MAX_RETRIES": "1"}
        else:
            config = tmp_path / ".codex/config.toml"
            text = config.read_text().replace(unused.base_url, server.base_url)
            retries = "request_max_retries = 1\nstream_max_retries = 1\nwire_api"
            config.write_text(text.replace("wire_api", retries))
        run = jobs.run()
    print(run.status, run.reason)
    assert run.status == "failed"
    assert run.reason.startswith(f"{page.title} has to wait: ")
    assert run.reason.endswith("The job runs when it is next due.")
