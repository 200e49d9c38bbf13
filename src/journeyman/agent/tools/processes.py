"""Runs a process to its end, its time limit or the word that it is no longer wanted, and keeps the
beginning and the end of what it prints. However much it prints, no more than that is held.
"""

import codecs
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

from journeyman.agent.tools.confinement import Policy
from journeyman.agent.tools.tool import Resources

_PACKAGES = {
    ".".join(("journeyman", *names)): str(Path(__file__).parents[2].joinpath(*names))
    for names in ((), ("agent",), ("agent", "tools"))
}
_LAUNCH = (
    # The packages around it are stood in for: to load them would take longer than all the rest.
    f"import sys\nfor name, path in {_PACKAGES!r}.items():\n"
    "    sys.modules[name] = type(sys)(name); sys.modules[name].__path__ = [path]\n"
    "from journeyman.agent.tools import confined_run; confined_run.run()"
)
_CHUNK = 65_536
_LOOK_S = 0.05
"""How often it is asked whether the result is still wanted."""
_GRACE_S = 5.0
"""How long the processes of a command may take to be gone after they were killed."""

_LIMITS = ("memory", "processes", "written", "cpu")
_FILE_TOO_LARGE = 128 + 25
_TOLD_BYTES = 4096

Ending = Literal["exited", "timeout", "cancelled", "limit"]
_EXITED: Ending = "exited"


class Ended(Struct, frozen=True, kw_only=True):
    """What became of a process. `exit_code` is that of a shell: 128 and the signal for a process
    that was killed, 124 at the time limit, 130 when it was no longer wanted. `passed` says which of
    the `Resources` it used too much of; `asked_network` that it was denied the network;
    `in_namespaces` that all but its own folders was read-only for it.
    """

    ending: Ending
    exit_code: int
    output: str
    seconds: float
    passed: str = ""
    asked_network: bool = False
    in_namespaces: bool = False


class KeptText:
    """The beginning and the end of a text that comes in pieces."""

    def __init__(self, characters: int) -> None:
        self._half = max(1, characters // 2)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = ""
        self._tail = ""
        self._left_out = 0

    def add(self, piece: bytes, *, last: bool = False) -> None:
        text = self._decoder.decode(piece, last)
        room = self._half - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        over = len(self._tail) - self._half
        if over > 0:
            self._tail = self._tail[over:]
            self._left_out += over

    @property
    def text(self) -> str:
        if not self._left_out:
            return self._head + self._tail
        note = f"[… {self._left_out:,} characters left out …]"
        return f"{self._head}\n{note}\n{self._tail}"


def run_process(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    policy: Policy | None,
    timeout_s: float,
    characters: int,
    network: bool = False,
    resources: Resources | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run a command, given by its program's path and arguments, confined where there is a policy,
    and then with the network or without. It has nothing on its standard input. Raises OSError when
    it cannot be started.
    """
    begun = time.monotonic()
    if cancelled():
        return Ended(ending="cancelled", exit_code=130, output="", seconds=0.0)
    told, telling = os.pipe()
    options = {
        "told": telling,
        "limits": {} if resources is None else resources.limits,
        **({} if policy is None else policy.options(network=network)),
    }
    try:
        process = subprocess.Popen(  # noqa: S603 - running what is asked for is its purpose
            [sys.executable, "-I", "-S", "-c", _LAUNCH, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            pass_fds=(telling,),
            start_new_session=True,  # Ctrl-C is for the agent, which then ends the command itself
        )
    except OSError:
        os.close(told)
        raise
    finally:
        os.close(telling)
    kept, ending = KeptText(characters), _EXITED
    assert process.stdin is not None
    try:
        os.write(process.stdin.fileno(), marshal.dumps(options))
        while ending == "exited" and not _read_on(process, kept):
            if time.monotonic() >= begun + timeout_s:
                ending = "timeout"
            elif cancelled():
                ending = "cancelled"
    finally:
        # On any way out, an interruption too: nothing that was started stays.
        code = _finish(process, kept)
        os.set_blocking(told, False)
        with open(told, "rb", buffering=0) as pipe:  # noqa: PTH123
            words = (pipe.read(_TOLD_BYTES) or b"").decode().split()
    passed = next((word for word in words if word in _LIMITS), "")
    if ending == "exited" and passed:
        ending = "limit"
    elif ending == "exited" and code == _FILE_TOO_LARGE and resources is not None:
        passed = "file"
    return Ended(
        ending=ending,
        exit_code={"timeout": 124, "cancelled": 130}.get(ending, code),
        output=kept.text,
        seconds=time.monotonic() - begun,
        passed=passed,
        asked_network="network" in words,
        in_namespaces="namespaces" in words,
    )


def _read_on(process: subprocess.Popen[bytes], kept: KeptText) -> bool:
    """Read what is there or comes soon; whether that was the end of it."""
    assert process.stdout is not None
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN)
    if not waiting.poll(_LOOK_S * 1000):
        return False
    piece = os.read(process.stdout.fileno(), _CHUNK)
    kept.add(piece, last=not piece)
    return not piece


def _finish(process: subprocess.Popen[bytes], kept: KeptText) -> int:
    """End what still runs, and take what it printed last; the exit code."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    deadline = time.monotonic() + _GRACE_S
    while not _read_on(process, kept) and time.monotonic() < deadline:
        pass
    process.stdout.close()
    try:
        code = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    return code if code >= 0 else 128 - code
