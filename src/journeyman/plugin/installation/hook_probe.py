"""Test events for hooks and for the resident process: each hook is run as its host runs it, by a
shell and with JSON on standard input, and its answer is judged as the host would read it.
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
from journeyman.plugin import client
from journeyman.plugin.client import Unanswered
from journeyman.plugin.installation.hooks_file import OTHERWISE

_STATUS_S = 2.0
_EVENT_LIMIT_S = 30.0
_TASK = "Run the tests."


class FiredHook(Struct, frozen=True, kw_only=True):
    """A hook that was run as its host runs it: what it printed, or what went wrong."""

    event: str
    output: str = ""
    problem: str = ""
    ms: float = 0.0

    def judge(self, host: str) -> Finding:
        """Return what the host would make of the hook's answer to the test event."""
        problem = self.problem
        answer: Any = {}
        try:
            answer = json.loads(self.output) if self.output.strip() else {}
            answer = answer.get("hookSpecificOutput", {})
        except (ValueError, AttributeError) as error:
            problem = problem or f"its answer cannot be read: {error}"
        if problem:
            advice = f"Install it again, then repeat the check: journeyman hosts install {host}"
            return Finding(self.event, "problem", f"{problem}.", advice)
        if answer.get("permissionDecision") == "deny":
            found = f"It blocks a harmless call: {answer.get('permissionDecisionReason')}"
            return Finding(self.event, "problem", found, "journeyman serve")
        size = len(str(answer.get("additionalContext") or ""))
        found = f"adds {size:,} characters." if size else "adds nothing in this folder."
        if self.event == "PreToolUse":
            found = "lets a harmless call pass."
        return Finding(self.event, "ok", f"answered in {self.ms:.0f} ms, {found}")


def fire(
    event: str, hook: Mapping[str, Any], session: str, environ: Mapping[str, str]
) -> FiredHook:
    """Run a hook with a test event: by a shell, with JSON on standard input."""
    body = {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(Path.cwd()),
        "hook_event_name": event,
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
            ["/bin/sh", "-c", hook["command"].partition(OTHERWISE)[0]],
            input=json.dumps(body),
            env=dict(environ),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_EVENT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return FiredHook(event=event, problem=f"{type(error).__name__}: {error}")
    ms = (time.perf_counter() - began) * 1_000
    problem = ""
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        problem = f"the hook exited with {done.returncode}: {last[:200]}"
    return FiredHook(event=event, output=done.stdout, problem=problem, ms=ms)


class FoundProcess(Struct, frozen=True, kw_only=True):
    """The resident process: its id, if that is known, its version, and after how many milliseconds
    it answered; None if it does not answer as it should.
    """

    pid: int | None
    version: str = ""
    ms: float | None = None

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
    began = time.perf_counter()
    try:
        answer = client.request(str(home), "status", "claude-code", b"{}", timeout_s=_STATUS_S)
        status = json.loads(answer)
        ms = (time.perf_counter() - began) * 1_000
        return FoundProcess(pid=int(status["pid"]), version=str(status["version"]), ms=ms)
    except Unanswered as error:
        # One that hangs for long does not even accept connections.
        if not error.reached and not isinstance(error.__cause__, TimeoutError):
            return None
    except (ValueError, KeyError, TypeError):
        pass
    pid = None
    with suppress(OSError, ValueError):
        pid = int(Path(f"{client.socket_path(str(home))}.lock").read_text(encoding="ascii"))
    return FoundProcess(pid=pid)
