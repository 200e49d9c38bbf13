"""The terminal: what comes back, what ends a command, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.tables import table

from journeyman.agent.tools.limits import ToolLimits
from journeyman.agent.tools.workspace import Workspace


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@table(
    ("command", "output", "exit_code"),
    [
        ("echo one; echo two >&2; echo three; exit 3", "one\ntwo\nthree\n", 3),
        ("yes | head -1", "y\n", 0),
        ("kill -9 $$", "", 137),
        ("cat; echo done", "done\n", 0),
        ("echo a > /dev/stdout; echo b | tee /dev/stderr > /dev/null", "a\nb\n", 0),
        (r"printf 'a\377b\342\202'", "a�b�", 0),
    ],
    ids=["both outputs", "early closed pipe", "killed", "no input", "devices", "no text"],
)
def test_what_comes_back(use, command, output, exit_code):
    content = use("terminal", command=command).content
    assert content == {"output": output, "exit_code": exit_code, "error": None}


def test_it_runs_in_the_workspace_or_a_folder_of_it(use, root):
    (root / "deep/er").mkdir(parents=True)
    assert use("terminal", command="pwd").content["output"] == f"{root}\n"
    inner = use("terminal", command="pwd", workdir="deep/er")
    assert inner.content["output"] == f"{root}/deep/er\n"


def test_of_a_long_output_the_beginning_and_the_end_are_kept(use):
    result = use("terminal", command="seq 1 100000", limits=ToolLimits(output_characters=100))
    output = result.content["output"]
    assert output.startswith("1\n2\n")
    assert output.endswith("99999\n100000\n")
    assert f"[… {588_895 - 100:,} characters left out …]" in output


def test_an_endless_output_is_not_held(use):
    limits = ToolLimits(output_characters=1000)
    result = use("terminal", command="cat /dev/zero | tr '\\0' x", timeout=0.3, limits=limits)
    assert result.content["exit_code"] == 124
    assert len(result.content["output"]) < 1200


def test_a_command_gets_no_more_time_than_there_is(use):
    limits = ToolLimits(longest_s=5)
    result = use("terminal", command="echo begun; sleep 30", timeout=99, limits=limits)
    assert result.content == {
        "output": "begun\n[Command timed out after 5s]",
        "exit_code": 124,
        "error": None,
    }


def test_a_command_that_is_no_longer_wanted_ends(use, root):
    result = use(
        "terminal",
        command="echo begun; touch begun; sleep 30",
        cancelled=(root / "begun").exists,
    )
    assert result.content["exit_code"] == 130
    assert result.content["output"] == "begun\n[Command interrupted]"
    assert result.recorded.interrupted


LINGERING = {
    "background": "sleep 60 & echo $! > pid",
    "ignoring signals": "(trap '' TERM HUP INT; sleep 60) & echo $! > pid",
    "own session": "setsid sh -c 'echo $$ > pid; exec sleep 60' & while ! test -s pid; do :; done",
    "orphan": "(setsid sh -c 'sleep 60 & echo $! > pid' &); while ! test -s pid; do :; done",
}


@table("is_cancelled", [False, True])
@table("how", LINGERING)
def test_no_process_outlives_the_call(how, is_cancelled, use, root):
    folder = root / f"{how} {is_cancelled}"
    folder.mkdir()
    lasting = "; touch begun; sleep 60" if is_cancelled else ""
    cancelled = (folder / "begun").exists
    result = use(
        "terminal", command=LINGERING[how] + lasting, workdir=folder.name, cancelled=cancelled
    )
    assert result.content["exit_code"] == (130 if is_cancelled else 0)
    assert is_gone(int((folder / "pid").read_text()))


def test_no_process_outlives_the_time_limit(use, root):
    result = use("terminal", command=LINGERING["own session"] + "; sleep 60", timeout=5)
    assert result.content["exit_code"] == 124
    assert is_gone(int((root / "pid").read_text()))


CHAINS = """
import os, sys, time
os.open("alive", os.O_WRONLY)
end = time.monotonic() + 20
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os.nice(19)  # or there would be no time left to start the others
        while time.monotonic() < end:
            os.setsid()
            if os.fork():
                os._exit(0)
        os._exit(0)
os._exit(0)
"""


@table(("confine", "chains"), [(True, 100), (False, 20)], ids=["confined", "not confined"])
def test_chains_of_forks_do_not_outlive_the_call(confine, chains, tmp_path):
    root = tmp_path / f"{chains} chains"
    root.mkdir()
    os.mkfifo(root / "alive")
    alive = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Workspace(root, confine=confine) as workspace:
            command = [sys.executable, "-I", "-S", "-c", CHAINS, str(chains)]
            ended = workspace.run(command, timeout_s=30, characters=100)
        assert (ended.ending, ended.exit_code) == ("exited", 0)
        assert os.read(alive, 1) == b""  # it would block while the pipe is held open
    finally:
        os.close(alive)


@table("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_the_command_ends_with_the_agent(how, tmp_path):
    root = tmp_path / how.name
    root.mkdir()
    program = f"""
from pathlib import Path
from journeyman.agent.tools.workspace import Workspace
Workspace(Path({str(root)!r})).run(
    ["/bin/sh", "-c", "mkfifo alive; echo x > ready; exec sleep 60 > alive"],
    timeout_s=60, characters=10,
)
"""
    os.mkfifo(root / "ready")
    agent = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    (root / "ready").read_text()
    with (root / "alive").open() as alive:  # it has an end when the command has
        agent.send_signal(how)
        agent.wait()
        assert alive.read() == ""


def test_the_environment_has_no_secrets(use, workspace, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("SOME_HARMLESS_NAME", "canary")
    output = use("terminal", command="env").content["output"]
    assert "canary" not in output
    variables = dict(line.partition("=")[::2] for line in output.splitlines())
    assert variables["HOME"].startswith(str(workspace.private))
    assert variables["TMPDIR"].startswith(str(workspace.private))
    assert variables["TERM"] == "dumb"
    assert variables["PATH"] == os.environ["PATH"]


def test_a_file_that_grows_without_end_is_stopped(use, root):
    result = use("terminal", command="truncate -s 2G sparse.bin; echo $?")
    assert result.content["output"].rstrip().splitlines()[-1] != "0"
    assert (root / "sparse.bin").stat().st_size == 0
