"""Jobs with a program in the place of a host's agent: what it starts, ends with it, and what it
says is told.
"""

import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.client_runs import processes_of
from tests.job_desk import Desk, desk
from tests.program import Command
from tests.waiting import until

from journeyman.plugin.runs import HostRuns
from journeyman.records.errors import BadSetting, WrongInput

HANGS = """#!/bin/sh
trap '' INT TERM
echo $JOURNEYMAN_RUN > run
setsid {python} -c 'import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(999)' &
while true; do sleep 1; done
"""
ANSWERS = """#!/bin/sh
cat > prompt
echo '{"type":"system","subtype":"init","session_id":"s1","model":"claude-x"}'
echo '{"type":"result","subtype":"success","result":"Two disks are full.","total_cost_usd":0.1}'
"""


@contextmanager
def host_desk(folder: Path, program: str, **environ: str) -> Iterator[Desk]:
    """The jobs of a home with a program in the place of Claude Code."""
    path = folder / "bin" / "claude"
    path.parent.mkdir()
    path.write_text(program)
    path.chmod(0o700)
    environ = {"PATH": f"{path.parent}:/usr/bin:/bin", "HOME": str(folder), **environ}
    with desk(folder, **environ) as jobs:
        jobs.jobs = jobs.journeyman.jobs_with(hosts=HostRuns(jobs.journeyman, environ))
        yield jobs


def test_a_host_that_hangs_ends_with_its_children(tmp_path: Path) -> None:
    with host_desk(tmp_path, HANGS.format(python=sys.executable)) as jobs:
        run = jobs.run(seconds=1)
        name = (jobs.workdir / "run").read_text().strip()
    assert (run.status, run.reason) == ("timed_out", "The time limit of 1 seconds was reached.")
    assert "timed out" in jobs.heard[0]
    assert name
    assert [*processes_of(name)] == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the system has no setpriv")
def test_a_host_ends_with_a_scheduler_that_is_killed(tmp_path: Path) -> None:
    program = "#!/bin/sh\necho $JOURNEYMAN_RUN > run\nexec sleep 999\n"
    with host_desk(tmp_path, program) as jobs:
        jobs.add(schedule="every 1m")
        mark, path = jobs.workdir / "run", f"{tmp_path / 'bin'}:/usr/bin:/bin"
        command = Command(tmp_path).start("--home", jobs.home, "jobs", "run", "watch", PATH=path)
        until(lambda: mark.exists() and mark.read_text())
        command.signal(signal.SIGKILL)
        command.wait()
        until(lambda: not [*processes_of(mark.read_text().strip())])


def test_task_comes_first_and_the_runtime_after_it(tmp_path: Path) -> None:
    with host_desk(tmp_path, ANSWERS) as jobs:
        jobs.script("disks.sh", "#!/bin/sh\necho '/ 91 %'\n")
        run = jobs.run("Are the disks full?", script="disks.sh")
        prompt = (jobs.workdir / "prompt").read_text()
    assert (run.status, run.answer) == ("ok", "Two disks are full.")
    assert (run.model, run.provider) == ("claude-x", "Claude Code")
    parts = ["Are the disks full?", "/ 91 %", 'job "watch"', "CONTEXT: 200,000 tokens", "TIME: "]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
    assert places[0] == 0
    assert "tool finish" not in prompt


def test_words_of_a_host_that_fails_are_told(tmp_path: Path) -> None:
    with host_desk(tmp_path, "#!/bin/sh\necho 'No space left' >&2\nexit 3\n") as jobs:
        run = jobs.run()
        assert (run.status, run.reason) == ("failed", "Claude Code: No space left")
        assert "No space left" in jobs.heard[0]


def test_killed_host_fails_its_run(tmp_path: Path) -> None:
    with host_desk(tmp_path, "#!/bin/sh\nkill -9 $$\n") as jobs:
        run = jobs.run()
    assert (run.status, run.reason) == ("failed", "Claude Code: It was ended by SIGKILL.")


def test_window_that_is_too_small_starts_nothing(tmp_path: Path) -> None:
    with host_desk(tmp_path, "#!/bin/sh\ntouch started\n", ANTHROPIC_MODEL="gpt-4") as jobs:
        run = jobs.run()
        assert run.status == "blocked"
        assert "8,192 tokens" in run.reason
        assert not (jobs.workdir / "started").exists()


def test_unknown_window_is_a_remark(tmp_path: Path) -> None:
    with host_desk(tmp_path, ANSWERS) as jobs:
        run = jobs.run(model="of-our-own")
        assert run.status == "ok"
        assert run.remarks[0].startswith("The context window of of-our-own in Claude Code is unkn")


def test_runner_is_chosen_when_the_job_is_added(tmp_path: Path) -> None:
    with host_desk(tmp_path, ANSWERS) as jobs:
        assert jobs.jobs.get(jobs.add(name="first")).runner == "claude-code"
        assert jobs.jobs.get(jobs.add(name="own", tools=["patch"])).runner == "journeyman"
        (tmp_path / "bin/claude").rename(tmp_path / "bin/codex")
        assert jobs.jobs.get("first").runner == "claude-code"
        assert jobs.jobs.get(jobs.add(name="second")).runner == "codex"
        # Another runner does not keep the model of the one before.
        jobs.add(name="first", replace=True, model="opus")
        changed = jobs.jobs.get(jobs.add(name="first", replace=True, runner="codex"))
        assert (changed.runner, changed.model) == ("codex", "")
        (tmp_path / "bin/codex").unlink()
        with pytest.raises(BadSetting, match="Install the agent"):
            jobs.add(name="third")


@pytest.mark.parametrize(
    "options", [{"tools": ["patch"]}, {"provider": "near"}, {"warm": "t"}], ids=str
)
def test_options_of_the_small_loop_are_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with host_desk(tmp_path, ANSWERS) as jobs:
        with pytest.raises(WrongInput, match="codex has its own settings"):
            jobs.add(runner="codex", **options)
        with pytest.raises(WrongInput, match="There is no agent 'cursor'"):
            jobs.add(runner="cursor")


def test_without_hosts_a_job_says_who_can_run_it(tmp_path: Path) -> None:
    with host_desk(tmp_path, ANSWERS) as jobs:
        jobs.add(runner="codex")
        run = jobs.journeyman.jobs.run("watch", terminal=jobs.heard.append)
        assert run.status == "blocked"
        assert "host_jobs" in run.reason


def test_access_and_limits_reach_the_host(tmp_path: Path) -> None:
    with host_desk(tmp_path, '#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n') as jobs:
        jobs.run(access="read", turns=7, cost_usd=0.5, model="opus")
        said = (jobs.workdir / "arguments").read_text().split()
    for name, value in {
        "--max-turns": "7",
        "--max-budget-usd": "0.500000",
        "--model": "opus",
    }.items():
        assert said[said.index(name) + 1] == value
    assert "acceptEdits" not in said
