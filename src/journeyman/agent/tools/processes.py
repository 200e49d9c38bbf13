"""Runs a process to its end, its time limit or the word that it is no longer wanted, and keeps the
beginning and the end of what it prints. However much it prints, no more than that is held.
"""

import codecs
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

_LAUNCHER = Path(__file__).with_name("confined_run.py")
_CHUNK = 65_536
_LOOK_S = 0.05
"""How often it is asked whether the result is still wanted."""
_GRACE_S = 5.0
"""How long the processes of a command may take to be gone after they were killed."""

Ending = Literal["exited", "timeout", "cancelled"]


class Ended(Struct, frozen=True, kw_only=True):
    """What became of a process. `exit_code` is that of a shell: 128 and the signal for a process
    that was killed, 124 at the time limit, 130 when it was no longer wanted.
    """

    ending: Ending
    exit_code: int
    output: str
    seconds: float


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
    cancelled: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run a command, given by its program's path and arguments, confined where there is a policy.
    It has nothing on its standard input. Raises OSError when it cannot be started.
    """
    begun = time.monotonic()
    if cancelled():
        return Ended(ending="cancelled", exit_code=130, output="", seconds=0.0)
    options = policy.options if policy is not None else []
    process = subprocess.Popen(  # noqa: S603 - running what is asked for is its purpose
        [sys.executable, "-I", "-S", str(_LAUNCHER), *options, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C is for the agent, which then ends the command itself
    )
    kept = KeptText(characters)
    try:
        ending = _follow(process, kept, begun + timeout_s, cancelled)
    finally:
        # On any way out, an interruption too: nothing that was started stays.
        code = _finish(process, kept)
    exit_code = {"timeout": 124, "cancelled": 130}.get(ending, code)
    seconds = time.monotonic() - begun
    return Ended(ending=ending, exit_code=exit_code, output=kept.text, seconds=seconds)


def _follow(
    process: subprocess.Popen[bytes],
    kept: KeptText,
    deadline: float,
    cancelled: Callable[[], bool],
) -> Ending:
    """Read what comes until it ends or has to be ended."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return "timeout"
        if cancelled():
            return "cancelled"
        if _read_on(process, kept, min(left, _LOOK_S)):
            return "exited"


def _read_on(process: subprocess.Popen[bytes], kept: KeptText, wait_s: float) -> bool:
    """Read what is there or comes soon; whether that was the end of it."""
    assert process.stdout is not None
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN)
    if not waiting.poll(wait_s * 1000):
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
    while not _read_on(process, kept, _LOOK_S):
        if time.monotonic() > deadline:
            break
    process.stdout.close()
    try:
        code = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    return code if code >= 0 else 128 - code
