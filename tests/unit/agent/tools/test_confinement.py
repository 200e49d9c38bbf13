"""What confined commands can reach, checked by running real commands."""

import os
import platform
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from tests.program import PYTHON
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.agent.tools import confinement
from journeyman.agent.tools.confinement import policy_for, toolchains
from journeyman.agent.tools.workspace import Workspace

needs_landlock = pytest.mark.skipif(
    confinement.why_unconfined() != "", reason="the kernel has no Landlock"
)


@pytest.fixture
def elsewhere():
    """A folder outside /tmp, because commands see a private /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def outside(elsewhere):
    """A folder with a file that commands in the workspace must not read or change."""
    folder = elsewhere / "outside"
    folder.mkdir()
    (folder / "secret").write_text("canary\n")
    return folder


@pytest.fixture(scope="session")
def has_namespaces(tmp_path_factory):
    with Workspace(tmp_path_factory.mktemp("probe")) as workspace:
        return run(workspace, "true").in_namespaces


def confined_workspace(root, *, namespaces=True):
    """Return a workspace that confines commands with or without namespaces."""
    workspace = Workspace(root)
    workspace.policy = msgspec.structs.replace(workspace.policy, namespaces=namespaces)
    return workspace


def run(workspace, command):
    return workspace.run(["/bin/bash", "-c", command], timeout_s=LONGEST_S, characters=5_000)


ATTEMPTS = {
    "read": "cat {outside}/secret",
    "list": "ls {outside}",
    "write": "echo x > {outside}/secret",
    "append": "echo x >> {outside}/secret",
    "create": "echo x > {outside}/new",
    "remove": "rm -f {outside}/secret",
    "move": "mv {outside}/secret .",
    "hard link": "ln -f {outside}/secret here && cat here",
    "link": "ln -sf {outside}/secret here; cat here",
    "folder": "mkdir {outside}/new",
    "through a process": "cat /proc/{pid}/root{outside}/secret",
    "home": "ls {home}",
    "truncate": "{python} -c 'import os; os.truncate(\"{outside}/secret\", 0)'",
}


DENIED = ("denied", "cross-device", "Read-only", "No such file", "not permitted")


@needs_landlock
@table("namespaces", [True, False])
@table("attempt", ATTEMPTS)
def test_commands_cannot_leave_the_workspace(attempt, namespaces, root, outside):
    home = pwd.getpwuid(os.getuid()).pw_dir  # HOME may be below /tmp
    command = ATTEMPTS[attempt].format(outside=outside, pid=os.getpid(), home=home, python=PYTHON)
    with confined_workspace(root, namespaces=namespaces) as workspace:
        ended = run(workspace, command)
    assert ended.exit_code != 0
    assert any(word in ended.output for word in DENIED)
    assert "canary" not in ended.output
    assert (outside / "secret").read_text() == "canary\n"
    assert list(outside.iterdir()) == [outside / "secret"]


METADATA_CHANGES = {
    "mode": "chmod 777 {outside}/secret",
    "owner": "chown 12345 {outside}/secret",
    "times": "touch -d 2001-01-01 {outside}/secret",
    "attributes": ('{python} -c \'import os; os.setxattr("{outside}/secret", "user.x", b"1")\''),
}


@needs_landlock
@table("what", METADATA_CHANGES)
def test_metadata_outside_the_workspace_cannot_be_changed(what, root, outside, has_namespaces):
    if not has_namespaces:
        pytest.skip("namespaces are not available here")
    before = (outside / "secret").stat()
    with confined_workspace(root) as workspace:
        ended = run(workspace, METADATA_CHANGES[what].format(outside=outside, python=PYTHON))
    assert "Read-only file system" in ended.output
    assert (outside / "secret").stat() == before
    assert os.listxattr(outside / "secret") == []


@needs_landlock
@table("what", ["owner", "attributes", "setuid"])
def test_metadata_changes_refused_without_namespaces(what, root, outside):
    command = {**METADATA_CHANGES, "setuid": "chmod u+s {outside}/secret"}[what]
    before = (outside / "secret").stat()
    with confined_workspace(root, namespaces=False) as workspace:
        ended = run(workspace, command.format(outside=outside, python=PYTHON))
    assert ended.exit_code != 0
    assert (outside / "secret").stat() == before


ESCAPES = {
    # system call number on x86_64, arguments
    "mount": (165, "b'none', b'/mnt', b'tmpfs', 0, 0"),
    "umount": (166, "b'/proc', 2"),
    "pivot_root": (155, "b'.', b'.'"),
    "unshare": (272, "0x10000000"),
    "setns": (308, "0, 0"),
    "clone into a user namespace": (56, "0x10000011, 0, 0, 0, 0"),
    "clone3": (435, "bytes(64), 64"),
    "open_tree": (428, "-100, b'/', 1"),
    "mount_setattr": (442, "-100, b'/', 0x8000, bytes(32), 32"),
    "keyctl": (250, "0, -3, 1"),
    "bpf": (321, "0, bytes(120), 120"),
    "userfaultfd": (323, "1"),
    "ptrace of the launcher": (101, "16, os.getppid(), 0, 0"),
    "a descriptor of the launcher": (438, "os.pidfd_open(os.getppid()), 3, 0"),
}


@needs_landlock
@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the system call numbers are those of x86_64"
)
@table("namespaces", [True, False])
@table("escape", ESCAPES)
def test_escapes_by_system_call_fail(escape, namespaces, root):
    number, arguments = ESCAPES[escape]
    code = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); "
        f"print(libc.syscall({number}, {arguments}), os.strerror(ctypes.get_errno()))"
    )
    with confined_workspace(root, namespaces=namespaces) as workspace:
        ended = workspace.run([sys.executable, "-c", code], timeout_s=LONGEST_S, characters=500)
    assert ended.output in (
        "-1 Operation not permitted\n",
        "-1 Function not implemented\n",
    )


@needs_landlock
@table("file", ["shadow", "gshadow", "sudoers", "ssl/private", "ssh/ssh_host_rsa_key", "crontab"])
def test_secrets_in_etc_cannot_be_read(file, use, workspace):
    output = use("terminal", command=f"cat /etc/{file}").content["output"]
    assert "denied" in output or not Path("/etc", file).exists()
    assert not any(Path("/etc", file).is_relative_to(path) for path in workspace.policy.readable)


@needs_landlock
@table("device", ["/dev/tty", "/dev/ptmx", "pts"])
def test_terminals_cannot_be_opened(device, use):
    ours, theirs = os.openpty()
    try:
        path = os.ttyname(theirs) if device == "pts" else device
        output = use("terminal", command=f": < {path}").content["output"]
        assert "denied" in output
    finally:
        os.close(ours)
        os.close(theirs)


@needs_landlock
def test_code_cannot_leave_the_workspace(use, outside):
    result = use("execute_code", code=f"print(open({str(outside / 'secret')!r}).read())")
    assert result.content["status"] == "error"
    assert "PermissionError" in result.content["output"]


@needs_landlock
@table("namespaces", [True, False])
def test_other_processes_cannot_be_inspected_or_killed(namespaces, root, has_namespaces):
    """The environment of another process may hold keys."""
    other = subprocess.Popen(["/bin/sleep", "60"], env={"SOME_KEY": "canary"})
    try:
        with confined_workspace(root, namespaces=namespaces) as workspace:
            inspected = run(
                workspace, f"cd /proc/{other.pid} && cat environ mem; ls -l fd; cat cmdline"
            )
            assert "canary" not in inspected.output
            if namespaces and has_namespaces:
                assert "sleep" not in inspected.output
            run(workspace, f"kill -9 {other.pid}; kill -9 $PPID; kill -9 -1")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@needs_landlock
def test_shared_memory_is_private(root, has_namespaces):
    if not has_namespaces:
        pytest.skip("namespaces are not available here")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file, confined_workspace(root) as workspace:
        ended = run(workspace, f"ls /dev/shm; echo x > /dev/shm/own && cat {file.name}")
    assert "No such file" in ended.output
    assert not Path("/dev/shm/own").exists()


@needs_landlock
def test_temporary_folder_is_private(root, has_namespaces):
    if not has_namespaces:
        pytest.skip("namespaces are not available here")
    with tempfile.NamedTemporaryFile(dir="/tmp") as file, confined_workspace(root) as workspace:
        written = run(workspace, "echo kept > /tmp/own && ls /tmp && echo x > here")
        read = run(workspace, f"cat /tmp/own $TMPDIR/own; cat {file.name}")
    assert Path(file.name).name not in written.output
    assert (written.exit_code, (root / "here").read_text()) == (0, "x\n")
    assert read.output.startswith("kept\nkept\n")
    assert "No such file" in read.output
    assert not Path("/tmp/own").exists()


@needs_landlock
def test_commands_cannot_gain_privileges(use):
    output = use("terminal", command="grep NoNewPrivs /proc/self/status").content["output"]
    assert output.split() == ["NoNewPrivs:", "1"]


def test_ordinary_commands_and_code_work(use, workspace):
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


def test_commands_run_without_confinement(root, outside):
    with Workspace(root, confine=False) as workspace:
        assert workspace.unconfined
        ended = workspace.run(
            ["/bin/cat", f"{outside}/secret"], timeout_s=LONGEST_S, characters=100
        )
    assert (ended.exit_code, ended.output) == (0, "canary\n")


HOME = Path("/home/ada")

READABLE_FOR_PATH_ENTRY = {
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


@table("entry", READABLE_FOR_PATH_ENTRY)
def test_programs_on_the_search_path_are_readable(entry):
    policy = policy_for((Path("/w"),), {"PATH": entry}, HOME)
    assert READABLE_FOR_PATH_ENTRY[entry] in policy.readable
    opened = {*policy.readable}
    assert not {str(Path(entry).parent), "/", "/home", "/home/ada/.local/share"} & opened
    assert "/w" in policy.writable
    assert sys.prefix in policy.readable


def test_link_on_the_search_path_does_not_open_the_home_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "ada")
    policy = policy_for((Path("/w"),), {"PATH": f"{tmp_path}/link"}, tmp_path / "ada")
    assert str(tmp_path / "link") not in policy.readable


@needs_landlock
def test_other_files_next_to_programs_are_not_readable(root, elsewhere):
    tools = elsewhere / "tools"
    for name in ("bin/hello", "lib/part", "config.yml"):
        (tools / name).parent.mkdir(parents=True, exist_ok=True)
        (tools / name).write_text("echo canary\n")
    (tools / "bin/hello").chmod(0o755)
    with Workspace(root, environment={"PATH": f"{tools}/bin:/usr/bin:/bin"}) as workspace:
        command = f"hello && cat {tools}/lib/part && cat {tools}/config.yml"
        ended = workspace.run(["/bin/sh", "-c", command], timeout_s=LONGEST_S, characters=500)
    assert ended.output.startswith("canary\necho canary\n")
    assert "denied" in ended.output
    assert ended.output.count("canary") == 2


def test_toolchains_in_the_home_folder_are_found(tmp_path):
    (tmp_path / ".nvm").mkdir()
    (tmp_path / "rust").mkdir()
    environment = {"RUSTUP_HOME": str(tmp_path / "rust"), "PYENV_ROOT": str(tmp_path)}
    assert toolchains(environment, tmp_path) == [
        ("NVM_DIR", tmp_path / ".nvm"),
        ("RUSTUP_HOME", tmp_path / "rust"),
    ]
