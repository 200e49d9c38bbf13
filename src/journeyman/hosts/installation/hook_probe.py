"""Test events for hooks: each is run as its host runs it, by a shell and with JSON on standard
input, and its answer is judged as the host would read it.
"""

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.facade.finding import Finding
from journeyman.hosts import client
from journeyman.hosts.client import Unanswered
from journeyman.hosts.installation.hooks_file import OTHERWISE, OwnHook

_STATUS_S = 2.0
_START_S = 20.0
_EVENT_LIMIT_S = 30.0
_SLOW_MS = 1_000.0
_TASK = "Run the tests."
_SLOW_ADVICE = "To have the answers ready: journeyman hosts install service"
_PEER = (0, 2, "i") if sys.platform == "darwin" else (socket.SOL_SOCKET, 17, "iII")
"""How the operating system is asked who listens on a socket: level, option (LOCAL_PEERPID and
SO_PEERCRED) and the form of the answer, in which the process comes first."""


class FiredHook(Struct, frozen=True, kw_only=True):
    """A hook that was run as its host runs it: what it printed, or what went wrong."""

    output: str
    problem: str = ""
    ms: float = 0.0

    @property
    def answer(self) -> Mapping[str, Any]:
        """What a host reads; raises ValueError if it is not JSON."""
        answer = json.loads(self.output) if self.output.strip() else {}
        if not isinstance(answer, dict):
            raise ValueError("it is not a JSON object")  # noqa: TRY004 - as for other text
        found = answer.get("hookSpecificOutput", {})
        return found if isinstance(found, dict) else {}


def fire(hook: OwnHook, session: str, environ: Mapping[str, str]) -> FiredHook:
    """Run a hook with a test event: by a shell, with JSON on standard input."""
    event: dict[str, Any] = {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(Path.cwd()),
        "hook_event_name": hook.event,
        "permission_mode": "default",
        "source": "startup",
        "prompt": _TASK,
        "tool_name": "Bash",
        "tool_input": {"command": "true"},
        "tool_use_id": f"toolu_{session}",
    }
    began = time.perf_counter()
    try:
        done = subprocess.run(  # noqa: S603 - what the host would run
            ["/bin/sh", "-c", hook.settings["command"].partition(OTHERWISE)[0]],
            input=json.dumps(event),
            env=dict(environ),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_EVENT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return FiredHook(output="", problem=f"{type(error).__name__}: {error}")
    ms = (time.perf_counter() - began) * 1_000
    problem = ""
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        problem = f"the hook exited with {done.returncode}: {last[:200]}"
    return FiredHook(output=done.stdout, problem=problem, ms=ms)


def judge_context(fired: FiredHook, host: str) -> Finding:
    """Judge a hook that adds to the conversation."""
    if problem := _find_problem(fired, host):
        return problem
    context = str(fired.answer.get("additionalContext") or "")
    found = f"answered in {fired.ms:.0f} ms, "
    found += f"adds {len(context):,} characters." if context else "adds nothing in this folder."
    return _with_speed(fired, found)


def _with_speed(fired: FiredHook, found: str) -> Finding:
    if fired.ms > _SLOW_MS:
        return Finding("", "note", f"{found} That is slow.", _SLOW_ADVICE)
    return Finding("", "ok", found)


def judge_gate(fired: FiredHook, host: str) -> Finding:
    """Judge the hook before a call of the harmless command `true`."""
    if problem := _find_problem(fired, host):
        return problem
    if fired.answer.get("permissionDecision") == "deny":
        reason = fired.answer.get("permissionDecisionReason")
        return Finding("", "problem", f"It blocks a harmless call: {reason}", "journeyman serve")
    return _with_speed(fired, f"answered in {fired.ms:.0f} ms, lets a harmless call pass.")


def _find_problem(fired: FiredHook, host: str) -> Finding | None:
    problem = fired.problem
    try:
        _ = fired.answer
    except ValueError as error:
        problem = problem or f"its answer cannot be read: {error}"
    advice = f"Install it again, then repeat the check: journeyman hosts install {host}"
    return Finding("", "problem", f"{problem}.", advice) if problem else None


def resident_status(home: Path, host: str = "claude-code") -> tuple[Mapping[str, Any], float]:
    """Return what the resident process says of itself, and after how many milliseconds. Raise
    Unanswered.
    """
    began = time.perf_counter()
    answer = client.request(str(home), "status", host, b"{}", timeout_s=_STATUS_S)
    return json.loads(answer), (time.perf_counter() - began) * 1_000


class FoundProcess(Struct, frozen=True, kw_only=True):
    """The resident process: its id, if that is known, and whether it answers."""

    pid: int | None
    answers: bool = True

    @property
    def problem(self) -> str:
        process = f"process {self.pid}" if self.pid else "a process"
        return f"`journeyman serve` runs ({process}), but does not answer as it should."

    @property
    def advice(self) -> str:
        end = f"kill -KILL {self.pid}" if self.pid else "kill -KILL and its id"
        return f"End it, so that a new one can take its place: {end}"


def find_resident(home: Path) -> FoundProcess | None:
    """Return the resident process; None if none runs."""
    try:
        return FoundProcess(pid=int(resident_status(home)[0]["pid"]))
    except Unanswered as error:
        if not hangs(error):
            return None
    except (ValueError, KeyError, TypeError):
        pass
    return FoundProcess(pid=listening_process(home), answers=False)


def hangs(error: Unanswered) -> bool:
    """Return whether a process is there that does not answer, or not as it should. If it hangs for
    long, not even connections to it are accepted.
    """
    return error.reached or isinstance(error.__cause__, TimeoutError)


def listening_process(home: Path) -> int | None:
    """Return the id of the process whose socket this is, from the operating system, so that the
    process itself need not answer; None if it does not tell.
    """
    level, option, form = _PEER
    with suppress(OSError, struct.error), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_STATUS_S)
        connection.connect(client.socket_path(str(home)))
        found = connection.getsockopt(level, option, struct.calcsize(form))
        return int(struct.unpack(form, found)[0]) or None
    return None


def answered_requests(home: Path) -> int | None:
    """How many requests the resident process has answered; None if it does not run."""
    with suppress(Unanswered, ValueError):
        # The question itself counts, too.
        return int(resident_status(home)[0]["answered"]) - 1
    return None


def wait_for_resident(home: Path) -> bool:
    ends = time.monotonic() + _START_S
    while time.monotonic() < ends:
        if answered_requests(home) is not None:
            return True
        time.sleep(0.1)
    return False
