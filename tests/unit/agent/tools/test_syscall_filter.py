"""The system call filter: its answer to each call, and what commands can do under it."""

import errno
import platform
import socket
import struct
import sys

import pytest
from tests.program import PYTHON
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.agent.tools import confinement
from journeyman.agent.tools.confinement import ARCHITECTURES, filter_program

needs_filter = pytest.mark.skipif(
    confinement.why_unconfined() != "" or platform.machine() not in ARCHITECTURES,
    reason="the kernel has no Landlock, or there is no filter for the architecture",
)

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
DENIED, MISSING = 0x50000 | errno.EACCES, 0x50000 | errno.ENOSYS
OPTIONS = 0o2004000  # SOCK_CLOEXEC and SOCK_NONBLOCK


def answer(program: bytes, *call: int) -> int:
    """Return what the kernel would do with a call: number, architecture id, six arguments."""
    number, audit_id, *arguments = (*call, 0, 0, 0, 0, 0, 0)[:8]
    data = struct.pack("=iIQ6Q", number, audit_id, 0, *arguments)
    steps = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += yes if value == operand else no
            case 0x45:
                at += yes if value & operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x06:
                return operand


FORBIDDEN, UNSUPPORTED = 0x50000 | errno.EPERM, 0x50000 | errno.EOPNOTSUPP


def answers(name, **options):
    architecture = ARCHITECTURES[name]
    program = filter_program(architecture, **options)
    return architecture.calls, lambda call, *arguments: answer(
        program, call, architecture.audit_id, *arguments
    )


@table("network", [False, True])
@table("name", ARCHITECTURES)
def test_answers_to_sockets(name, network):
    calls, answered = answers(name, network=network, namespaces=True)
    internet = ALLOWED if network else DENIED
    sockets = {
        (socket.AF_INET, socket.SOCK_STREAM): internet,
        (socket.AF_INET6, socket.SOCK_DGRAM | OPTIONS): internet,
        # The kernel reads only the lower 32 bits.
        (1 << 32 | socket.AF_INET, socket.SOCK_STREAM): internet,
        (socket.AF_NETLINK, socket.SOCK_RAW): internet,
        (socket.AF_UNIX, socket.SOCK_STREAM): DENIED,
        (socket.AF_UNIX, socket.SOCK_DGRAM | OPTIONS): DENIED,
        (socket.AF_PACKET, socket.SOCK_RAW): DENIED,
        (socket.AF_ALG, socket.SOCK_SEQPACKET): DENIED,
        (socket.AF_VSOCK, socket.SOCK_STREAM): DENIED,
        (0, 0): DENIED,
        (99, 1): DENIED,
    }
    assert {key: answered(calls["socket"], *key) for key in sockets} == sockets
    pairs = {
        (socket.AF_UNIX, socket.SOCK_STREAM | OPTIONS): ALLOWED,
        (socket.AF_UNIX, socket.SOCK_SEQPACKET): ALLOWED,
        (socket.AF_UNIX, socket.SOCK_DGRAM | OPTIONS): DENIED,
        (socket.AF_UNIX, socket.SOCK_RAW): DENIED,
    }
    assert {key: answered(calls["socketpair"], *key) for key in pairs} == pairs


@table("namespaces", [True, False])
@table("name", ARCHITECTURES)
def test_answers_to_other_system_calls(name, namespaces):
    architecture = ARCHITECTURES[name]
    calls, answered = answers(name, network=False, namespaces=namespaces)
    guarded = ALLOWED if namespaces else FORBIDDEN
    expected = {
        (425, 8): MISSING,
        (calls["clone3"],): MISSING,
        (calls["keyctl"],): MISSING,
        (calls["clone"], 17): ALLOWED,
        (calls["clone"], 0x3D0F00): ALLOWED,  # a thread
        (calls["clone"], 0x10000011): FORBIDDEN,
        (calls["clone"], 0x00020011): FORBIDDEN,
        (calls["unshare"], 0): FORBIDDEN,
        (calls["mount"],): FORBIDDEN,
        (calls["fchownat"],): guarded,
        (calls["fchmodat"], 0, 0, 0o755): ALLOWED,
        (calls["fchmodat"], 0, 0, 0o4755): guarded,
        (calls["fchmod"], 0, 0o2755): guarded,
        (calls["fsetxattr"],): ALLOWED if namespaces else UNSUPPORTED,
        (0,): ALLOWED,
        (calls["socket"] | 0x40000000, socket.AF_UNIX): KILLED,
        (-1,): KILLED,
    }
    assert {call: answered(*call) for call in expected} == expected
    program = filter_program(architecture, network=False, namespaces=namespaces)
    assert [answer(program, 0, audit_id) for audit_id in (0x40000003, 0x40000028)] == [
        KILLED,
        KILLED,
    ]


CONNECTIONS = {
    "stream": "socket.socket(socket.AF_UNIX).connect({path!r})",
    "datagram": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect({path!r})",
    "turned pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].connect({path!r})",
}


@needs_filter
@table("network", [False, True])
@table("how", CONNECTIONS)
def test_unix_sockets_cannot_be_reached(how, network, workspace, tmp_path):
    path = str(tmp_path / "s")
    kind = socket.SOCK_STREAM if how == "stream" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(path)
        if how == "stream":
            server.listen()
        code = f"import socket; {CONNECTIONS[how].format(path=path)}; print('reached')"
        ended = run_code(workspace, code, network=network)
    (tmp_path / "s").unlink()
    assert "PermissionError" in ended.output


def run_code(workspace, code, **options):
    return workspace.run(
        [sys.executable, "-c", code], timeout_s=LONGEST_S, characters=5_000, **options
    )


INTERNET = {
    "loopback": "socket.create_connection(('127.0.0.1', {port})).sendall(b'x')",
    "host name": "socket.create_connection(('localhost', {port})).sendall(b'x')",
    "datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "IPv6": "socket.socket(socket.AF_INET6)",
    "name lookup": "socket.getaddrinfo('example.org', 80)",
    "shell": "subprocess.run(['bash', '-c', 'echo > /dev/tcp/127.0.0.1/{port}'], check=True)",
}


@needs_filter
@table("how", INTERNET)
def test_network_is_blocked_by_default(how, workspace):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = INTERNET[how].format(port=server.getsockname()[1])
        ended = run_code(workspace, f"import socket, subprocess; {code}")
        server.settimeout(0.01)
        with pytest.raises(TimeoutError):
            server.accept()
    assert ended.exit_code == 1


@needs_filter
def test_network_is_available_when_granted(workspace):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = INTERNET["loopback"].format(port=server.getsockname()[1])
        ended = run_code(workspace, f"import socket; {code}", network=True)
        assert ended.exit_code == 0
        with server.accept()[0] as connection:
            assert connection.recv(1) == b"x"


@needs_filter
def test_io_uring_is_unavailable(use):
    code = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(425, 8, ctypes.create_string_buffer(120)), errno.errorcode[ctypes.get_errno()])
"""
    assert use("execute_code", code=code).content["output"] == "-1 ENOSYS\n"


ORDINARY_COMMANDS = {
    "git": "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m c"
    " && git log --format=%s",
    "pip": f"{PYTHON} -m pip --version",
    "pipes": "echo a | tee b | cat <(echo c) -",
    "names": "getent passwd $(id -u); id",
}


@needs_filter
@table("what", ORDINARY_COMMANDS)
def test_ordinary_commands_work(what, use):
    content = use("terminal", command=ORDINARY_COMMANDS[what]).content
    assert (content["exit_code"], content["output"] != "") == (0, True), content


@needs_filter
def test_subprocesses_socket_pairs_and_pools_work(use):
    code = """
import asyncio, multiprocessing, socket, subprocess

async def serve():
    child = await asyncio.create_subprocess_exec("echo", "child", stdout=subprocess.PIPE)
    print((await child.communicate())[0].decode().strip())

if __name__ == "__main__":
    asyncio.run(serve())
    one, other = socket.socketpair()
    one.send(b"pair")
    print(other.recv(9).decode())
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(sum(pool.map(abs, [-1, -2])))
"""
    content = use("execute_code", code=code).content
    assert content["output"].split() == ["child", "pair", "3", "3"]
