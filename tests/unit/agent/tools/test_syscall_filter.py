"""The filter of system calls: what it says to each, and what commands then can and cannot do."""

import errno
import platform
import socket
import struct
import sys

import pytest
from tests.tables import table

from journeyman.agent.tools import confinement
from journeyman.agent.tools.syscall_filter import MACHINES, filter_program
from journeyman.agent.tools.workspace import Workspace

needs_filter = pytest.mark.skipif(
    not confinement.available() or platform.machine() not in MACHINES,
    reason="the kernel has no Landlock, or there is no filter for the machine",
)

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
DENIED, MISSING = 0x50000 | errno.EACCES, 0x50000 | errno.ENOSYS
OPTIONS = 0o2004000  # SOCK_CLOEXEC and SOCK_NONBLOCK


def answer(program: bytes, *call: int) -> int:
    """What the kernel would do with a call: number, mark of the machine, six arguments."""
    number, mark, *arguments = (*call, 0, 0, 0, 0, 0, 0)[:8]
    data = struct.pack("=iIQ6Q", number, mark, 0, *arguments)
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
            case 0x35:
                at += yes if value >= operand else no
            case 0x06:
                return operand


@table("name", MACHINES)
def test_what_becomes_of_a_call(name):
    machine = MACHINES[name]
    program, mark = filter_program(machine), machine.mark
    calls = {
        (machine.socket, mark, socket.AF_UNIX, socket.SOCK_STREAM): DENIED,
        (machine.socket, mark, socket.AF_UNIX, socket.SOCK_DGRAM | OPTIONS): DENIED,
        # The kernel looks only at the lower half.
        (machine.socket, mark, 1 << 32 | socket.AF_UNIX, socket.SOCK_STREAM): DENIED,
        (machine.socket, mark, socket.AF_INET, socket.SOCK_STREAM): ALLOWED,
        (machine.socket, mark, socket.AF_INET6, socket.SOCK_DGRAM): ALLOWED,
        (machine.socketpair, mark, socket.AF_UNIX, socket.SOCK_STREAM | OPTIONS): ALLOWED,
        (machine.socketpair, mark, socket.AF_UNIX, socket.SOCK_SEQPACKET): ALLOWED,
        (machine.socketpair, mark, socket.AF_UNIX, socket.SOCK_DGRAM | OPTIONS): DENIED,
        (machine.socketpair, mark, socket.AF_UNIX, socket.SOCK_RAW): DENIED,
        (425, mark, 8): MISSING,
        (0, mark): ALLOWED,
        (machine.socketpair + 1, mark, socket.AF_UNIX): ALLOWED,
        (machine.socket | 0x40000000, mark, socket.AF_UNIX): KILLED,
        (-1, mark): KILLED,
        (0, 0x40000003): KILLED,
        (0, 0x40000028): KILLED,
    }
    assert {call: answer(program, *call) for call in calls} == calls


REACHING_OUT = {
    "stream": "socket.socket(socket.AF_UNIX).connect({path!r})",
    "datagram": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect({path!r})",
    "turned pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].connect({path!r})",
}


@needs_filter
@table("how", REACHING_OUT)
def test_sockets_with_a_path_are_out_of_reach(how, use, tmp_path):
    path = str(tmp_path / "s")
    kind = socket.SOCK_STREAM if how == "stream" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(path)
        if how == "stream":
            server.listen()
        code = f"import socket; {REACHING_OUT[how].format(path=path)}; print('reached')"
        content = use("execute_code", code=code).content
    (tmp_path / "s").unlink()
    assert "PermissionError" in content["output"]
    assert content["status"] == "error"


@needs_filter
def test_there_is_no_io_uring(use):
    code = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(425, 8, ctypes.create_string_buffer(120)), errno.errorcode[ctypes.get_errno()])
"""
    assert use("execute_code", code=code).content["output"] == "-1 ENOSYS\n"


STILL_WORKING = {
    "git": "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m c"
    " && git log --format=%s",
    "pip": f"{sys.executable} -m pip --version",
    "pipes": "echo a | tee b | cat <(echo c) -",
    "names": "getent passwd $(id -u); id",
}


@needs_filter
@table("what", STILL_WORKING)
def test_commands_that_still_work(what, use):
    content = use("terminal", command=STILL_WORKING[what]).content
    assert (content["exit_code"], content["output"] != "") == (0, True), content


@needs_filter
def test_code_that_still_works(use):
    code = """
import asyncio, multiprocessing, socket, subprocess

async def serve():
    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"tcp\\n")
    print((await reader.read()).decode().strip())
    writer.close()
    server.close()
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
    assert content["output"].split() == ["TCP", "child", "pair", "3", "3"]


def test_without_confinement_there_is_no_filter(root):
    command = [sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX); print('made')"]
    with Workspace(root, confine=False) as workspace:
        assert workspace.run(command, timeout_s=10, characters=99).output == "made\n"
