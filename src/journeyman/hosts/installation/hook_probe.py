"""Test events for hooks: each is run as its host runs it, by a shell and with JSON on standard
input, and its answer is judged as the host would read it.
"""

import json
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.facade.finding import Finding
from journeyman.hosts import client
from journeyman.hosts.client import Unanswered
from journeyman.hosts.installation.hooks_file import OwnHook

_STATUS_S = 2.0
_START_S = 20.0
_EVENT_LIMIT_S = 30.0
_SLOW_MS = 1_000.0
_TASK = "Run the tests."
_REINSTALL = "Install it again with `journeyman hosts install`, then repeat the check."


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
            ["/bin/sh", "-c", hook.settings["command"]],
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


def judge_context(fired: FiredHook) -> Finding:
    """Judge a hook that adds to the conversation."""
    if problem := _find_problem(fired):
        return problem
    context = str(fired.answer.get("additionalContext") or "")
    found = f"answered in {fired.ms:.0f} ms, "
    found += f"adds {len(context):,} characters." if context else "adds nothing in this folder."
    if fired.ms > _SLOW_MS:
        return Finding("", "note", f"{found} That is slow.", "journeyman hosts install service")
    return Finding("", "ok", found)


def judge_gate(fired: FiredHook) -> Finding:
    """Judge the hook before a call of the harmless command `true`."""
    if problem := _find_problem(fired):
        return problem
    if fired.answer.get("permissionDecision") == "deny":
        reason = fired.answer.get("permissionDecisionReason")
        return Finding("", "problem", f"It blocks a harmless call: {reason}", "journeyman serve")
    return Finding("", "ok", f"answered in {fired.ms:.0f} ms, lets a harmless call pass.")


def _find_problem(fired: FiredHook) -> Finding | None:
    problem = fired.problem
    try:
        _ = fired.answer
    except ValueError as error:
        problem = problem or f"its answer cannot be read: {error}"
    return Finding("", "problem", f"{problem}.", _REINSTALL) if problem else None


def resident_status(home: Path, host: str = "claude-code") -> tuple[Mapping[str, Any], float]:
    """Return what the resident process says of itself, and after how many milliseconds. Raise
    Unanswered.
    """
    began = time.perf_counter()
    answer = client.request(str(home), "status", host, b"{}", timeout_s=_STATUS_S)
    return json.loads(answer), (time.perf_counter() - began) * 1_000


def find_resident(home: Path) -> int | None:
    """Return the id of the resident process; None if it does not run."""
    with suppress(Unanswered, ValueError):
        return int(resident_status(home)[0]["pid"])
    return None


def is_resident(home: Path) -> bool:
    return answered_requests(home) is not None


def answered_requests(home: Path) -> int | None:
    """How many requests the resident process has answered; None if it does not run."""
    with suppress(Unanswered, ValueError):
        # The question itself counts, too.
        return int(resident_status(home)[0]["answered"]) - 1
    return None


def wait_for_resident(home: Path) -> bool:
    ends = time.monotonic() + _START_S
    while time.monotonic() < ends:
        if is_resident(home):
            return True
        time.sleep(0.1)
    return False
