"""Runs of the real Claude Code and Codex by their pages, and what must be true of both."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from tests.clients import ClientHome, Imported
from tests.model_server import ModelServer
from tests.program import Command

from journeyman.hosts.host import RUN_VARIABLE, HostPage, Plug
from journeyman.hosts.process import HostRunner
from journeyman.hosts.runner import (
    RunCall,
    RunRequest,
    RunResult,
    RunStep,
)
from journeyman.models.model import Reply
from journeyman.outcomes.judge import judge
from journeyman.testing import ScriptedServer

TASK = "Change the notes"
_GATE = "grep -q forbidden && printf %s '{}' || true"
_DENIAL = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "Not on a Friday.",
    }
}
GATE = {
    "PreToolUse": {
        "matcher": "Bash",
        "hooks": [
            {
                "type": "command",
                "command": f"tee -a ~/gate.txt | {_GATE.format(json.dumps(_DENIAL))}",
                "timeout": 30,
                "statusMessage": "Journeyman: entscheide gemäß der Seite",
            }
        ],
    }
}
"""A gate as it is installed for one run: silent but for one command."""

Server = ScriptedServer | ModelServer


class Ran(Struct, frozen=True, kw_only=True):
    """A run with its steps."""

    result: RunResult
    steps: list[RunStep]

    @property
    def calls(self) -> list[RunCall]:
        return [step for step in self.steps if isinstance(step, RunCall)]


class Runs(Protocol):
    """A home in which one host runs. `prefix` are the parts of a request, in the order in which a
    provider caches them.
    """

    page: HostPage
    home: ClientHome
    requests_path: str
    key: str

    def environ(self, server: Server) -> dict[str, str]: ...
    def command(self, line: str) -> Reply: ...
    def edit(self) -> Reply: ...
    def errands(self) -> list[Reply]: ...
    def prefix(self, body: Any) -> list[Any]: ...
    def add_own_hook(self, command: str) -> None: ...


def run(
    runs: Runs,
    server: Server,
    prompt: str = TASK,
    *,
    plug: Plug | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    environ: Mapping[str, str] | None = None,
    **request: Any,
) -> Ran:
    steps: list[RunStep] = []
    runner = HostRunner(runs.page, plug=plug, environ=runs.environ(server) | dict(environ or {}))
    asked = RunRequest(prompt=prompt, folder=runs.home.work, **request)
    result = runner.run(asked, on_step=steps.append, cancelled=cancelled)
    return Ran(result=result, steps=steps)


def check_as_imported(runs: Runs, ran: Ran) -> None:
    """A run's calls, verdicts and tokens are those that an import of its log finds."""
    log = runs.page.find_log(ran.result.session, {"HOME": str(runs.home.folder)})
    assert log is not None
    imported = Imported(Command(runs.home.folder), log)
    (listed,) = imported.sessions
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    assert [getattr(ran.result.tokens, name) for name in names] == [
        listed["tokens"][name] for name in names
    ]
    shown = imported.json("sessions", "show", ran.result.session)
    stored = [(one["tool"], one["arguments"], one.get("result")) for one in shown["calls"]]
    assert [(one.call.tool, one.call.arguments, one.call.result) for one in ran.calls] == stored
    verdicts = [(one["status"], one.get("kind", "")) for one in shown["verdicts"]]
    found = [judge(one.call) for one in ran.calls]
    assert [(one.status, one.kind) for one in found] == verdicts


def shared_prefix(runs: Runs, original: Any, fork: Any) -> float:
    """The share of a request's bytes with which another one begins."""
    texts = ["\n".join(map(json.dumps, runs.prefix(body))) for body in (original, fork)]
    pairs = enumerate(zip(*texts, strict=False))
    same = next((index for index, (one, other) in pairs if one != other), min(map(len, texts)))
    return same / len(texts[0])


def processes_of(name: str) -> Iterator[Path]:
    """Yield the processes that a run has left."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{RUN_VARIABLE}={name}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                yield folder
