"""What confined commands can reach: real commands, with bubblewrap and without it."""

import os
import pwd
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.program import PYTHON
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.agent.tools.confinement import policy_for, toolchains
from journeyman.agent.tools.workspace import Workspace


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside /tmp, because commands see a private /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def outside(elsewhere) -> Path:
    """A folder with a file that commands in the workspace must not read or change."""
    folder = elsewhere / "outside"
    folder.mkdir()
    (folder / "secret").write_text("canary\n")
    return folder


def run(workspace, command, **options):
    words = ["/bin/bash", "-c", command]
    return workspace.run(words, timeout_s=LONGEST_S, characters=5_000, **options)


def run_code(workspace, code, **options):
    words = [sys.executable, "-c", code]
    return workspace.run(words, timeout_s=LONGEST_S, characters=5_000, **options)


ATTEMPTS = {
    "read": "cat {outside}/secret",
    "list": "ls {outside}",
    "write": "echo x > {outside}/secret",
    "append": "echo x >> {outside}/secret",
    "create": "echo x > {outside}/new",
    "create a folder": "mkdir {outside}/new",
    "move": "mv {outside}/secret .",
    "hard link": "ln -f {outside}/secret here && cat here",
    "link": "ln -sf {outside}/secret here; cat here",
    "through a process": "cat /proc/{pid}/root{outside}/secret",
    "home": "ls {home}/.ssh",
    "truncate": "{python} -c 'import os; os.truncate(\"{outside}/secret\", 0)'",
    "mode": "chmod 777 {outside}/secret",
    "owner": "chown 12345 {outside}/secret",
    "times": "touch -d 2001-01-01 {outside}/secret",
    "system": "touch /usr/bin/new-program",
    "kernel": "cd /proc/sys/kernel && cat core_pattern > core_pattern",
    "mount": "mount -t tmpfs none {outside}",
    "remount": "mount -o remount,rw,bind /usr && touch /usr/bin/new-program",
    "in other namespaces": "unshare -Urm mount -o remount,rw,bind /usr",
    "shadow": "cat /etc/shadow",
    "sudoers": "cat /etc/sudoers",
    "own terminal": ": < /dev/tty",
}


def test_commands_cannot_leave_the_workspace(confined, outside):
    home = pwd.getpwuid(os.getuid()).pw_dir  # HOME may be below /tmp
    before = (outside / "secret").stat()
    missed = []
    for name, attempt in ATTEMPTS.items():
        words = {"outside": outside, "pid": os.getpid(), "home": home, "python": PYTHON}
        ended = run(confined, attempt.format(**words))
        if not ended.exit_code or "canary" in ended.output:
            missed.append((name, ended.exit_code, ended.output))
    assert missed == []
    assert list(outside.iterdir()) == [outside / "secret"]
    after = (outside / "secret").stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns, after.st_size) == (
        *(before.st_mode, before.st_uid, before.st_mtime_ns),
        before.st_size,
    )


def test_other_terminals_and_shared_memory_are_not_there(confined):
    ours, theirs = os.openpty()
    try:
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            ended = run(confined, f": < {os.ttyname(theirs)} || cat {file.name} || echo gone")
            written = run(confined, "echo x > /dev/shm/own && cat /dev/shm/own")
    finally:
        os.close(ours)
        os.close(theirs)
    assert ended.output.endswith("gone\n")
    assert written.output == "x\n"
    assert not Path("/dev/shm/own").exists()


def test_other_processes_cannot_be_inspected_or_killed(confined):
    """The environment of another process may hold keys."""
    with subprocess.Popen(["/bin/sleep", "60"], env={"SOME_KEY": "canary"}) as other:
        inspected = run(confined, f"cd /proc/{other.pid} && cat environ mem cmdline; ps aux")
        assert "canary" not in inspected.output
        assert "sleep" not in inspected.output
        run(confined, f"kill -9 {other.pid}; kill -9 $PPID; kill -9 0; kill -9 -1")
        assert other.poll() is None
        other.kill()


def test_temporary_folder_is_private(confined, root):
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        written = run(confined, "echo kept > /tmp/own && ls /tmp && echo x > here")
        read = run(confined, f"cat /tmp/own $TMPDIR/own; cat {file.name}")
    assert Path(file.name).name not in written.output
    assert (written.exit_code, (root / "here").read_text()) == (0, "x\n")
    assert read.output.startswith("kept\nkept\n")
    assert "No such file" in read.output
    assert not Path("/tmp/own").exists()


def test_programs_below_the_temporary_folder_work_again_and_again(confined, root):
    """A virtual environment there has a link beside its programs: lib64, which is lib."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        prefix = Path(folder, "a venv")
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib").mkdir()
        (prefix / "lib/part").write_text("found\n")
        (prefix / "lib64").symlink_to("lib")
        policy = msgspec.structs.replace(
            confined.policy,
            readable=(
                *confined.policy.readable,
                *(f"{prefix}/{name}" for name in ("bin", "lib", "lib64")),
            ),
        )
        confined.policy = policy
        outputs = [run(confined, f"cat '{prefix}/lib64/part'").output for _ in range(2)]
    assert outputs == ["found\n"] * 2


def test_commands_have_no_privileges(confined):
    output = run(confined, "grep -e NoNewPrivs -e CapEff /proc/self/status").output.split()
    assert output[2:] == ["NoNewPrivs:", "1"]
    # Owners and modes of files, signals, users and low ports, and only for the superuser.
    assert int(output[1], 16) in (0, 0b10011111011)


INTERNET = {
    "loopback": "socket.create_connection(('127.0.0.1', {port})).sendall(b'x')",
    "host name": "socket.create_connection(('localhost', {port})).sendall(b'x')",
    "datagram": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "name lookup": "socket.getaddrinfo('example.org', 80)",
    "shell": "subprocess.run(['bash', '-c', 'echo > /dev/tcp/127.0.0.1/{port}'], check=True)",
}


def test_network_is_blocked_unless_it_is_granted(confined):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        codes = {name: code.format(port=port) for name, code in INTERNET.items()}
        ended = {
            name: run_code(confined, f"import socket, subprocess; {code}").exit_code
            for name, code in codes.items()
        }
        assert set(ended.values()) == {1}, ended
        granted = run_code(confined, f"import socket; {codes['loopback']}", network=True)
        assert granted.exit_code == 0, granted
        with server.accept()[0] as connection:  # the only one
            assert connection.recv(1) == b"x"


@table("network", [False, True])
def test_sockets_of_other_programs_cannot_be_reached(network, confined, elsewhere):
    kernel = tuple(int(part) for part in os.uname().release.split(".")[:2])
    addresses = [str(elsewhere / "s"), *([f"\0{elsewhere}"] if kernel >= (6, 12) else [])]
    for address in addresses:
        Path(address.replace("\0", "/none/")).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(address)
            server.listen()
            code = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r})"
            assert run_code(confined, code, network=network).exit_code == 1
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept()


ORDINARY = {
    "files": "echo x > a; mkdir -p b; mv a b/; mktemp; echo y > ~/y; cat ~/y; test -e b/a",
    "devices": "head -c1 /dev/urandom > /dev/null; echo a > /dev/stdout; echo b | tee /dev/stderr",
    "git": "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m c"
    " && git log --format=%s",
    "make": "printf 'all:\\n\\t@echo made\\n' > Makefile && make",
    "python": f"{PYTHON} -c 'import multiprocessing, ssl, sqlite3; print(multiprocessing.Lock())'",
    "virtual environment": "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'",
    "pipes": "echo a | tee b.txt | cat <(echo c) -",
    "names": "getent passwd $(id -u); id; getent hosts localhost",
    "many processes": f"for i in $(seq 50); do {PYTHON} -c pass & done; wait; echo done",
    "a temporary program": "printf '#!/bin/sh\\necho ran\\n' > /tmp/p; chmod +x /tmp/p; /tmp/p",
}


def test_ordinary_commands_work(confined):
    failed = {}
    for name, command in ORDINARY.items():
        ended = run(confined, f"set -e; {command}")
        if ended.exit_code or not ended.output:
            failed[name] = ended
    assert failed == {}


def test_programs_find_each_other_within_one_command(confined):
    code = """
import asyncio, multiprocessing, socket, subprocess

async def serve():
    child = await asyncio.create_subprocess_exec("echo", "child", stdout=subprocess.PIPE)
    print((await child.communicate())[0].decode().strip())

if __name__ == "__main__":
    asyncio.run(serve())
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.send(b"tcp")
            print(server.accept()[0].recv(9).decode())
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(sum(pool.map(abs, [-1, -2])))
"""
    (confined.root / "serve.py").write_text(code)
    ended = run(confined, f"{PYTHON} serve.py")
    assert ended.output.split() == ["child", "tcp", "3", "3"]


def test_link_in_the_workspace_stays_usable(confined, root):
    (root / "data").mkdir()
    (root / "link").symlink_to("data")
    run(confined, "echo x > link/file")
    assert (root / "data/file").read_text() == "x\n"


def test_commands_run_without_confinement(root, outside):
    with Workspace(root, confine=False) as workspace:
        assert workspace.unconfined
        ended = run(workspace, f"cat {outside}/secret")
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
    policy = policy_for(Path("/w"), {"PATH": entry}, HOME, Path("/private"))
    assert READABLE_FOR_PATH_ENTRY[entry] in policy.readable
    opened = {*policy.readable}
    assert not {str(Path(entry).parent), "/", "/home", "/home/ada/.local/share"} & opened
    assert policy.writable == ("/w", "/private")


def test_link_on_the_search_path_does_not_open_the_home_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "ada")
    environment = {"PATH": f"{tmp_path}/link"}
    policy = policy_for(Path("/w"), environment, tmp_path / "ada", Path("/private"))
    assert str(tmp_path / "link") not in policy.readable


def test_program_behind_a_link_runs_and_its_neighbours_stay_hidden(confined, elsewhere):
    tools = elsewhere / "tools"
    for name in ("bin/hello", "lib/part", "config.yml"):
        (tools / name).parent.mkdir(parents=True, exist_ok=True)
        (tools / name).write_text("echo canary\n")
    (tools / "bin/hello").chmod(0o755)
    (elsewhere / "bin").symlink_to(tools / "bin")
    environment = {"PATH": f"{elsewhere}/bin:{tools}/bin:/usr/bin:/bin"}
    bubblewrap = confined.policy.bubblewrap
    with Workspace(confined.root, environment=environment) as workspace:
        workspace.policy = msgspec.structs.replace(workspace.policy, bubblewrap=bubblewrap)
        command = f"hello && {elsewhere}/bin/hello && cat {tools}/lib/part; cat {tools}/config.yml"
        ended = run(workspace, command)
    assert ended.output.startswith("canary\ncanary\necho canary\n")
    assert "No such file" in ended.output


def test_toolchains_in_the_home_folder_are_found(tmp_path):
    (tmp_path / ".nvm").mkdir()
    (tmp_path / "rust").mkdir()
    environment = {"RUSTUP_HOME": str(tmp_path / "rust"), "PYENV_ROOT": str(tmp_path)}
    assert toolchains(environment, tmp_path) == {
        "NVM_DIR": tmp_path / ".nvm",
        "RUSTUP_HOME": tmp_path / "rust",
    }
