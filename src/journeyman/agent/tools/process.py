"""Runs a process until it ends, reaches its time limit or is cancelled. Only the beginning and the
end of its output are kept in memory, however much it prints.
"""

import marshal
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from journeyman.agent.tools.confinement import ConfinementPolicy
from journeyman.agent.tools.tool import Resources

_PACKAGES = {
    ".".join(("journeyman", *names)): str(Path(__file__).parents[2].joinpath(*names))
    for names in ((), ("agent",), ("agent", "tools"))
}
_LAUNCH = (
    # Stubs replace the enclosing packages: loading those would take longer than everything else.
    f"import sys\nfor name, path in {_PACKAGES!r}.items():\n"
    "    sys.modules[name] = type(sys)(name); sys.modules[name].__path__ = [path]\n"
    "from journeyman.agent.tools import confined_process; confined_process.run()"
)
_CHUNK = 65_536
_POLL_S = 0.05
"""How often `cancelled` is polled."""
_GRACE_S = 5.0
"""How long the processes of a command may take to end after they were killed."""

_LIMITS = ("memory", "processes", "cpu")
_FILE_TOO_LARGE = 128 + 25
_REPORT_BYTES = 4096

Ending = Literal["exited", "timeout", "cancelled", "limit"]
_EXITED: Ending = "exited"


class ProcessResult(Struct, frozen=True, kw_only=True):
    """The result of a process. `exit_code` follows shell conventions: 128 plus the signal for a
    killed process, 124 at the time limit, 130 if it was cancelled. `exceeded` names the limit in
    `Resources` that it exceeded; `in_namespaces` means that everything but its own folders was
    read-only for it.
    """

    ending: Ending
    exit_code: int
    output: str
    seconds: float
    exceeded: str = ""
    in_namespaces: bool = False


class TruncatedText:
    """The beginning and the end of a text that arrives in chunks, in bytes."""

    def __init__(self, size: int) -> None:
        self._half = max(1, size // 2)
        self._head, self._tail, self._omitted = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        over = max(0, len(self._tail) - self._half)
        self._tail = self._tail[over:]
        self._omitted += over

    @property
    def text(self) -> str:
        if not self._omitted:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="ignore"), self._tail.decode(errors="ignore")
        return f"{head}\n[… {self._omitted:,} bytes left out …]\n{tail}"


def run_process(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    policy: ConfinementPolicy | None,
    timeout_s: float,
    characters: int,
    network: bool = False,
    resources: Resources | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> ProcessResult:
    """Run a command: the path of a program and its arguments. A policy confines it, with or without
    the network. Its standard input is empty. Raises OSError if it cannot be started.
    """
    started = time.monotonic()
    if cancelled():
        return ProcessResult(ending="cancelled", exit_code=130, output="", seconds=0.0)
    report_in, report_out = os.pipe()
    options = {
        "report": report_out,
        "limits": {} if resources is None else resources.limits,
        **({} if policy is None else policy.options(network=network)),
    }
    try:
        process = _start(command, folder, environment, report_out)
    except OSError:
        os.close(report_in)
        raise
    finally:
        os.close(report_out)
    output, ending = TruncatedText(characters), _EXITED
    assert process.stdin is not None
    try:
        os.write(process.stdin.fileno(), marshal.dumps(options))
        while ending == "exited" and not _read_more(process, output):
            if time.monotonic() >= started + timeout_s:
                ending = "timeout"
            elif cancelled():
                ending = "cancelled"
    finally:
        # However this ends, even by an interrupt, no process is left running.
        code = _finish(process, output)
        words = _read_report(report_in)
    exceeded = next((word for word in words if word in _LIMITS), "")
    if ending == "exited" and exceeded:
        ending = "limit"
    elif ending == "exited" and code == _FILE_TOO_LARGE and resources is not None:
        exceeded = "file"
    return ProcessResult(
        ending=ending,
        exit_code={"timeout": 124, "cancelled": 130}.get(ending, code),
        output=output.text,
        seconds=time.monotonic() - started,
        exceeded=exceeded,
        in_namespaces="namespaces" in words,
    )


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], report: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - running commands is its purpose
        [sys.executable, "-I", "-S", "-c", _LAUNCH, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        pass_fds=(report,),
        start_new_session=True,  # Ctrl-C is for the agent, which then ends the command
    )


def _read_report(report: int) -> list[str]:
    """Read the words that `confined_process` has reported, and close the pipe."""
    os.set_blocking(report, False)
    with open(report, "rb", buffering=0) as pipe:
        return (pipe.read(_REPORT_BYTES) or b"").decode().split()


def _read_more(process: subprocess.Popen[bytes], output: TruncatedText) -> bool:
    """Read available output, waiting briefly for some; return whether it has ended."""
    assert process.stdout is not None
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    if not poll.poll(_POLL_S * 1000):
        return False
    chunk = os.read(process.stdout.fileno(), _CHUNK)
    output.add(chunk)
    return not chunk


def _finish(process: subprocess.Popen[bytes], output: TruncatedText) -> int:
    """End what still runs, read the remaining output, and return the exit code."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    deadline = time.monotonic() + _GRACE_S
    while not _read_more(process, output) and time.monotonic() < deadline:
        pass
    process.stdout.close()
    try:
        code = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    return code if code >= 0 else 128 - code
