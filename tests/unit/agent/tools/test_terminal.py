"""The terminal tool: its results, its limits, and that no process outlives a call."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.program import PYTHON
from tests.tables import table
from tests.waiting import LONGEST_S, until

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


@table("is_cancelled", [False, True])
@table("how", LINGERING)
def test_no_process_outlives_the_call(how, is_cancelled, confined):
    mark = f"60.{os.getpid()}{list(LINGERING).index(how)}{is_cancelled:d}"
    folder = confined.root / mark
    folder.mkdir()
    foreground = "; touch lasting; sleep 60" if is_cancelled else ""
    ended = confined.run(
        ["/bin/bash", "-c", LINGERING[how].format(mark=mark) + foreground],
        folder=folder,
        timeout_s=LONGEST_S,
        characters=100,
        cancelled=(folder / "lasting").exists,
    )
    assert ended.exit_code == (130 if is_cancelled else 0)
    until(lambda: is_gone(mark))


def test_unconfined_command_ends_with_its_group(root):
    mark = f"60.{os.getpid()}9"
    with Workspace(root, confine=False) as workspace:
        ended = workspace.run(
            ["/bin/sh", "-c", f"sleep {mark} & echo begun; sleep 60"], timeout_s=1, characters=100
        )
    assert (ended.ending, ended.output) == ("timeout", "begun\n")
    until(lambda: is_gone(mark))


def test_output_after_standard_output_is_closed_is_waited_for(confined):
    command = ["/bin/bash", "-c", "exec >&- 2>&-; sleep 0.2; echo x > late; exit 4"]
    assert confined.run(command, timeout_s=LONGEST_S, characters=100).exit_code == 4
    assert (confined.root / "late").exists()


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


SMALL = Resources(memory_mb=300, processes=20, file_mb=20, cpu_s=1)

EXCESSIVE = {
    "processes": (
        f"{PYTHON} -c 'import os\nwhile True: os.fork() or __import__(\"signal\").pause()'",
        "Resource",
    ),
    "memory": (f"{PYTHON} -c 'x = bytearray(10**9)'", "MemoryError"),
    "a file": ("(yes > large); exit $?", "File size limit exceeded"),
    "processor time": ("(while :; do :; done); exit $?", "CPU time limit exceeded"),
}


@table("what", EXCESSIVE)
def test_kernel_holds_a_command_to_its_resources(what, confined):
    command, sentence = EXCESSIVE[what]
    confined.resources = SMALL
    tool = Toolbox(workspace_tools(confined, ToolLimits())).find("terminal")
    result = tool.run(Invocation(call_id="c", arguments={"command": command, "timeout": 50}))
    assert sentence in result.content["output"], result.content
    assert result.content["exit_code"] in (1, 152, 153)
