"""Runs a process until it ends, reaches its time limit or is cancelled. Only the beginning and the
end of its output are kept in memory, however much it prints.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from msgspec import Struct

from journeyman.agent.tools.confinement import ConfinementPolicy
from journeyman.agent.tools.tool import Resources
from journeyman.text.truncation import TruncatedText

_CHUNK = 65_536
_POLL_S = 0.05
"""How often `cancelled` is polled."""
_GRACE_S = 2.0
"""How long the processes of a command may take to end after they were killed."""


class ProcessResult(Struct, frozen=True, kw_only=True):
    """The result of a process. `exit_code` follows shell conventions: 128 plus the signal for a
    killed process, 124 at the time limit, 130 if it was cancelled.
    """

    ending: Literal["exited", "timeout", "cancelled"]
    exit_code: int
    output: str
    seconds: float


def run_process(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    policy: ConfinementPolicy | None,
    timeout_s: float,
    characters: int,
    network: bool = False,
    resources: Resources = Resources(),  # noqa: B008 - it is frozen
    cancelled: Callable[[], bool] = lambda: False,
) -> ProcessResult:
    """Run a command: the path of a program and its arguments. A policy confines it, with or without
    the network, within the resources, and then no process that it starts outlives it; without one,
    no process of its group does. Its standard input is empty. Raises OSError if it cannot be
    started.
    """
    started = time.monotonic()
    if cancelled():
        return ProcessResult(ending="cancelled", exit_code=130, output="", seconds=0.0)
    words, stdin = list(command), b""
    if policy is not None:
        words, stdin = policy.launch(
            command, folder=str(folder), network=network, limits=resources.limits
        )
    output = TruncatedText(characters)
    ending: Literal["exited", "timeout", "cancelled"] = "exited"
    process = subprocess.Popen(  # noqa: S603 - running commands is its purpose
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C is for the agent, which then ends the command
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(stdin)
        while ending == "exited" and process.poll() is None:
            if _read(process.stdout, output) == b"":
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
            if time.monotonic() >= started + timeout_s:
                ending = "timeout"
            elif cancelled():
                ending = "cancelled"
    finally:
        # However this ends, even by an interrupt, no process is left running.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        deadline = time.monotonic() + _GRACE_S
        while _read(process.stdout, output) != b"" and time.monotonic() < deadline:
            pass
        process.stdout.close()
        code = process.wait()
    return ProcessResult(
        ending=ending,
        exit_code={"timeout": 124, "cancelled": 130}.get(ending, code if code >= 0 else 128 - code),
        output=output.text,
        seconds=time.monotonic() - started,
    )


def _read(pipe: IO[bytes], output: TruncatedText) -> bytes | None:
    """Read available output, waiting briefly for some; return None if there is none yet."""
    if not select.select([pipe], [], [], _POLL_S)[0]:
        return None
    chunk = os.read(pipe.fileno(), _CHUNK)
    output.add(chunk)
    return chunk
