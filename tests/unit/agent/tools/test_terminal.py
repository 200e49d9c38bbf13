"""The terminal tool: its results, its limits, and that no process outlives a call."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
from tests.program import PYTHON
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.agent.tools.tool import Invocation, Resources, ToolLimits
from journeyman.agent.tools.toolbox import Toolbox, workspace_tools
from journeyman.agent.tools.workspace import Workspace


def is_gone(mark: str) -> bool:
    """Whether no process has this word among its arguments. Process ids do not help, because
    commands may have their own process namespace.
    """
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if mark.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                    return False
            except OSError:
                continue
    return True


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
    ids=["stdout and stderr", "closed pipe", "killed", "no input", "devices", "invalid UTF-8"],
)
def test_output_and_exit_code(use, command, output, exit_code):
    content = use("terminal", command=command).content
    assert content == {"output": output, "exit_code": exit_code, "error": None}


def test_long_output_keeps_its_beginning_and_end(use):
    result = use("terminal", command="seq 1 100000", limits=ToolLimits(output_characters=100))
    output = result.content["output"]
    assert output.startswith("1\n2\n")
    assert output.endswith("99999\n100000\n")
    assert f"[… {588_895 - 100:,} bytes left out …]" in output


def test_timeout_is_capped_by_the_limit(use):
    limits = ToolLimits(longest_s=5)
    result = use("terminal", command="echo begun; sleep 30", timeout=99, limits=limits)
    assert result.content == {
        "output": "begun\n[Command timed out after 5s]",
        "exit_code": 124,
        "error": None,
    }


def test_cancelled_command_ends(use, root):
    result = use(
        "terminal",
        command="echo begun; touch begun; sleep 30",
        cancelled=(root / "begun").exists,
    )
    assert result.content["exit_code"] == 130
    assert result.content["output"] == "begun\n[Command interrupted]"
    assert result.recorded.interrupted


WAIT_UNTIL_BEGUN = "while ! test -s begun; do :; done"
LINGERING = {
    "background": "sleep {mark} & echo > begun",
    "ignoring signals": "(trap '' TERM HUP INT; sleep {mark}) & echo > begun",
    "own session": f"setsid sh -c 'echo > begun; exec sleep {{mark}}' & {WAIT_UNTIL_BEGUN}",
    "orphan": f"(setsid sh -c 'sleep {{mark}} & echo > begun' &); {WAIT_UNTIL_BEGUN}",
}


@table(("is_cancelled", "namespaces"), [(False, True), (False, False), (True, True), (True, False)])
@table("how", LINGERING)
def test_no_process_outlives_the_call(how, is_cancelled, namespaces, workspace, use):
    workspace.policy = msgspec.structs.replace(workspace.policy, namespaces=namespaces)
    folder = workspace.root / f"{how} {is_cancelled} {namespaces}"
    folder.mkdir()
    mark = f"60.{os.getpid()}{len(list(workspace.root.iterdir()))}"
    foreground = "; touch lasting; sleep 60" if is_cancelled else ""
    cancelled = (folder / "lasting").exists
    command = LINGERING[how].format(mark=mark) + foreground
    result = use("terminal", command=command, workdir=folder.name, cancelled=cancelled)
    assert result.content["exit_code"] == (130 if is_cancelled else 0)
    assert is_gone(mark)


def test_no_process_outlives_the_time_limit(use):
    mark = f"60.{os.getpid()}0"
    command = LINGERING["own session"].format(mark=mark)
    result = use("terminal", command=f"{command}; sleep 60", timeout=5)
    assert result.content["exit_code"] == 124
    assert is_gone(mark)


CHAINS = """
import os, sys, time
os.open("alive", os.O_WRONLY)
end = time.monotonic() + 20
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os.nice(19)  # otherwise no time is left to start the others
        while time.monotonic() < end:
            os.setsid()
            if os.fork():
                os._exit(0)
        os._exit(0)
os._exit(0)
"""


@table(("confine", "chains"), [(True, 100), (False, 20)], ids=["confined", "not confined"])
def test_fork_chains_do_not_outlive_the_call(confine, chains, tmp_path):
    root = tmp_path / f"{chains} chains"
    root.mkdir()
    os.mkfifo(root / "alive")
    alive = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    try:
        resources = Resources(processes=50_000)
        with Workspace(root, confine=confine, resources=resources) as workspace:
            command = [sys.executable, "-I", "-S", "-c", CHAINS, str(chains)]
            ended = workspace.run(command, timeout_s=LONGEST_S, characters=100)
        assert (ended.ending, ended.exit_code) == ("exited", 0)
        assert os.read(alive, 1) == b""  # would block while any process holds the pipe open
    finally:
        os.close(alive)


@table("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_command_ends_with_the_agent(how, tmp_path):
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
    with (root / "alive").open() as alive:  # reaches end of file when the command ends
        agent.send_signal(how)
        agent.wait()
        assert alive.read() == ""


def test_environment_has_no_secrets(use, workspace, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("SOME_HARMLESS_NAME", "canary")
    output = use("terminal", command="env").content["output"]
    assert "canary" not in output
    variables = dict(line.partition("=")[::2] for line in output.splitlines())
    assert variables["HOME"].startswith(str(workspace.private))
    assert variables["TMPDIR"].startswith(str(workspace.private))
    assert variables["TERM"] == "dumb"
    assert variables["PATH"] == os.environ["PATH"]


SMALL = Resources(memory_mb=300, processes=100, file_mb=20, cpu_s=1)

EXCESSIVE = {
    "processes": (
        "bomb() { sleep 20 & sleep 0.002; bomb; }; bomb",
        "[Command ended: it started more than 100 processes (agent.processes)]",
    ),
    "memory": (
        f"{PYTHON} -c 'x = []\nwhile True: x.append(bytearray(10**6))'",
        "[Command ended: it used more than 300 MB of memory (agent.memory_mb)]",
    ),
    "memory of many": (
        f"for i in 1 2 3 4 5; do {PYTHON} -c 'import time; x = bytearray(10**8); "
        "time.sleep(20)' & done; wait",
        "[Command ended: it used more than 300 MB of memory (agent.memory_mb)]",
    ),
    "shared memory": (
        "head -c 200M /dev/zero > /dev/shm/x; rm /dev/shm/x; "
        f"{PYTHON} -c 'import mmap; x = mmap.mmap(-1, 10**9)\n"
        "while True: x.write(bytes(10**6))'",
        "[Command ended: it used more than 300 MB of memory (agent.memory_mb)]",
    ),
    "a file": (
        "exec yes > large",
        "[Command ended: it wrote a file of more than 20 MB (agent.file_mb)]",
    ),
    "processor time": (
        "while :; do :; done",
        "[Command ended: it used more than 1 s of processor time (agent.cpu_s)]",
    ),
    "processor time of many": (
        "while :; do /bin/true; done",
        "[Command ended: it used more than 1 s of processor time (agent.cpu_s)]",
    ),
}


@table(
    ("what", "namespaces"),
    [
        *((what, True) for what in EXCESSIVE),
        *((what, False) for what in ("processes", "memory")),
    ],
)
def test_command_that_exceeds_a_resource_limit_is_ended(what, namespaces, tmp_path):
    command, sentence = EXCESSIVE[what]
    root = tmp_path / f"{what} {namespaces}"
    root.mkdir()
    # Set only one limit, because a command may exceed several.
    own = {"processor": "cpu_s", "processes": "processes", "memory": "memory_mb"}
    own |= {"shared": "memory_mb", "a": "file_mb"}
    name = own[what.split()[0]]
    resources = Resources(**{name: getattr(SMALL, name)})
    with Workspace(root, resources=resources) as workspace:
        workspace.policy = msgspec.structs.replace(workspace.policy, namespaces=namespaces)
        tool = Toolbox(workspace_tools(workspace, ToolLimits())).find("terminal")
        result = tool.run(Invocation(call_id="c", arguments={"command": command, "timeout": 50}))
    shutil.rmtree(root)
    assert result.content["output"].splitlines()[-1] == sentence, result.content
    assert result.content["exit_code"] in (137, 153)
