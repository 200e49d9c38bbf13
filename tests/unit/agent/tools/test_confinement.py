"""What commands may touch, tried by commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tables import table

from journeyman.agent.tools import confinement
from journeyman.agent.tools.confinement import policy_for, toolchains
from journeyman.agent.tools.workspace import Workspace

needs_landlock = pytest.mark.skipif(
    not confinement.available(), reason="the kernel has no Landlock"
)


@pytest.fixture
def outside(tmp_path):
    """A folder beside the workspace with a file that nobody in it should see or change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("canary\n")
    return folder


ATTEMPTS = {
    "read": "cat {outside}/secret",
    "list": "ls {outside}",
    "write": "echo x > {outside}/secret",
    "append": "echo x >> {outside}/secret",
    "create": "echo x > {outside}/new",
    "remove": "rm -f {outside}/secret",
    "move": "mv {outside}/secret .",
    "hard link": "ln {outside}/secret here && cat here",
    "link": "ln -s {outside}/secret here; cat here",
    "folder": "mkdir {outside}/new",
    "through a process": "cat /proc/{pid}/root{outside}/secret",
    "home": "ls {home}",
    "truncate": "python3 -c 'import os; os.truncate(\"{outside}/secret\", 0)'",
}


@needs_landlock
@table("attempt", ATTEMPTS)
def test_a_command_stays_inside(attempt, use, outside):
    command = ATTEMPTS[attempt].format(outside=outside, pid=os.getpid(), home=Path.home())
    result = use("terminal", command=command)
    assert result.content["exit_code"] != 0
    assert "denied" in result.content["output"] or "cross-device" in result.content["output"]
    assert "canary" not in result.content["output"]
    assert (outside / "secret").read_text() == "canary\n"
    assert list(outside.iterdir()) == [outside / "secret"]


@needs_landlock
@table("device", ["/dev/tty", "/dev/ptmx", "pts"])
def test_terminals_are_out_of_reach(device, use):
    ours, theirs = os.openpty()
    try:
        path = os.ttyname(theirs) if device == "pts" else device
        output = use("terminal", command=f": < {path}").content["output"]
        assert "denied" in output
    finally:
        os.close(ours)
        os.close(theirs)


@needs_landlock
def test_code_stays_inside(use, outside):
    result = use("execute_code", code=f"print(open({str(outside / 'secret')!r}).read())")
    assert result.content["status"] == "error"
    assert "PermissionError" in result.content["output"]


@needs_landlock
def test_other_programs_are_out_of_reach(use):
    """Their environment may hold keys, and they are not to be ended."""
    other = subprocess.Popen(["/bin/sleep", "60"], env={"SOME_KEY": "canary"})
    try:
        output = use("terminal", command=f"cat /proc/{other.pid}/environ").content["output"]
        assert "canary" not in output
        assert "denied" in output
        use("terminal", command=f"kill -9 {other.pid}; kill -9 $PPID")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@needs_landlock
def test_a_command_gains_no_privileges(use):
    output = use("terminal", command="grep NoNewPrivs /proc/self/status").content["output"]
    assert output.split() == ["NoNewPrivs:", "1"]


def test_what_commands_need_is_in_reach(use, workspace):
    result = use(
        "terminal",
        command=(
            "set -e; echo x > a; mkdir b; mv a b/; mktemp > /dev/null; echo y > ~/y; cat ~/y;"
            "head -c1 /etc/passwd > /dev/null; ls /proc/self > /dev/null; head -c1 /dev/urandom"
            " > /dev/null"
        ),
    )
    assert result.content == {"output": "y\n", "exit_code": 0, "error": None}
    assert (workspace.root / "b/a").exists()
    code = "import multiprocessing, ssl, sqlite3, msgspec; print(multiprocessing.Lock())"
    assert use("execute_code", code=code).content["status"] == "success"


def test_without_confinement_commands_run_all_the_same(root, outside):
    with Workspace(root, confine=False) as workspace:
        assert not workspace.confined
        ended = workspace.run(["/bin/cat", f"{outside}/secret"], timeout_s=5, characters=100)
    assert (ended.exit_code, ended.output) == (0, "canary\n")


HOME = Path("/home/ada")

ON_THE_PATH = {
    "/home/ada/.pyenv/shims": "/home/ada/.pyenv/shims",
    "/home/ada/miniconda3/bin": "/home/ada/miniconda3/lib",
    "/home/ada/project/.venv/bin": "/home/ada/project/.venv/pyvenv.cfg",
    "/home/ada/.fly/bin": "/home/ada/.fly/bin",
    "/home/ada/.local/bin": "/home/ada/.local/bin",
    "/home/ada/.cargo/bin": "/home/ada/.cargo/bin",
    "/home/ada/bin": "/home/ada/bin",
    "/home/ada/scripts": "/home/ada/scripts",
    "/srv/tools/bin": "/srv/tools/lib",
}


@table("entry", ON_THE_PATH)
def test_programs_on_the_search_path_are_readable(entry):
    policy = policy_for((Path("/w"),), {"PATH": entry}, HOME)
    assert ON_THE_PATH[entry] in policy.readable
    opened = {*policy.readable}
    assert not {str(Path(entry).parent), "/", "/home", "/home/ada/.local/share"} & opened
    assert "/w" in policy.writable
    assert sys.prefix in policy.readable


NO_PROGRAMS = ["", ".", "bin", "/", "/home", "/home/ada", "/home/ada/bin/..", "/usr/.."]


@table("entry", NO_PROGRAMS)
def test_a_search_path_opens_no_home(entry):
    policy = policy_for((Path("/w"),), {"PATH": entry}, HOME)
    assert not {*NO_PROGRAMS} & {*policy.readable}


def test_a_link_on_the_search_path_opens_no_home(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "ada")
    policy = policy_for((Path("/w"),), {"PATH": f"{tmp_path}/link"}, tmp_path / "ada")
    assert str(tmp_path / "link") not in policy.readable


@needs_landlock
def test_what_lies_beside_programs_is_not_readable(root, tmp_path):
    tools = tmp_path / "tools"
    for name in ("bin/hello", "lib/part", "config.yml"):
        (tools / name).parent.mkdir(parents=True, exist_ok=True)
        (tools / name).write_text("echo canary\n")
    (tools / "bin/hello").chmod(0o755)
    with Workspace(root, environment={"PATH": f"{tools}/bin:/usr/bin:/bin"}) as workspace:
        command = f"hello && cat {tools}/lib/part && cat {tools}/config.yml"
        ended = workspace.run(["/bin/sh", "-c", command], timeout_s=5, characters=500)
    assert ended.output.startswith("canary\necho canary\n")
    assert "denied" in ended.output
    assert ended.output.count("canary") == 2


def test_of_a_toolchain_only_its_programs_are_readable(tmp_path):
    (tmp_path / ".pyenv").mkdir()
    readable = policy_for((Path("/w"),), {}, tmp_path).readable
    assert f"{tmp_path}/.pyenv/versions" in readable
    assert f"{tmp_path}/.pyenv" not in readable


def test_toolchains_in_the_home_are_found(tmp_path):
    (tmp_path / ".nvm").mkdir()
    (tmp_path / "rust").mkdir()
    given = {"RUSTUP_HOME": str(tmp_path / "rust"), "PYENV_ROOT": str(tmp_path)}
    assert toolchains(given, tmp_path) == [
        ("NVM_DIR", tmp_path / ".nvm"),
        ("RUSTUP_HOME", tmp_path / "rust"),
    ]
