"""Runs of the real Claude Code: what it does is what the result says, limits hold, and a fork keeps
the cached prefix of its original.
"""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.claude_code_host import QUIET, bash
from tests.client_run_checks import CHECKS
from tests.client_runs import TASK, Runs, Server, run, shared_prefix
from tests.clients import ClientHome, client_program
from tests.waiting import until

from journeyman.hosts.claude_code import ClaudeCode
from journeyman.hosts.runner import RunLimits
from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(300)]

VERSIONS = ("claude_code", "older_claude_code")


class ClaudeRuns:
    """A home in which Claude Code runs."""

    page = ClaudeCode()
    requests_path = "/v1/messages?beta=true"
    key = "ANTHROPIC_API_KEY"

    def __init__(self, folder: Path, name: str) -> None:
        self.home = ClientHome(folder)
        self.program = client_program(name)

    def environ(self, server: Server) -> dict[str, str]:
        address = server.url if isinstance(server, ScriptedServer) else server.root_url
        path = f"{self.program.parent}:{os.environ['PATH']}"
        home = {"HOME": str(self.home.folder), "PATH": path, "CLAUDE_CODE_MAX_RETRIES": "1"}
        return {**home, **QUIET, "ANTHROPIC_BASE_URL": address}

    def command(self, line: str) -> Reply:
        return bash(line)

    def edit(self) -> Reply:
        path = str(self.home.work / "notes.txt")
        change = {"file_path": path, "old_string": "one", "new_string": "1"}
        # The older version wants a file read before.
        return calls(("Read", {"file_path": path}), ("Edit", change))

    def errands(self) -> list[Reply]:
        path = str(self.home.work / "new.txt")
        tools: list[tuple[str, dict[str, Any]]] = [
            ("Bash", {"command": "echo > new.txt"}),
            ("Write", {"file_path": path, "content": "x"}),
            ("Read", {"file_path": str(self.home.work / "notes.txt")}),
            ("Skill", {"skill": "simplify"}),
            ("Agent", {"description": "x", "prompt": "errand", "subagent_type": "claude"}),
        ]
        return [calls(tool) for tool in tools]

    def prefix(self, body: Any) -> list[Any]:
        return [_uncached(part) for kind in ("tools", "system", "messages") for part in body[kind]]

    def add_own_hook(self, command: str) -> None:
        group = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
        self.home.write(".claude/settings.json", {"hooks": {"PreToolUse": [group]}})


def _uncached(value: Any) -> Any:
    """Return a part of a request without the marks up to which it is cached."""
    if isinstance(value, dict):
        return {name: _uncached(one) for name, one in value.items() if name != "cache_control"}
    return [_uncached(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", VERSIONS)
def test_runs(check: Callable[[Runs], None], name: str, tmp_path: Path) -> None:
    check(ClaudeRuns(tmp_path, name))


@pytest.mark.parametrize("name", VERSIONS)
def test_rules_of_the_person_hold(name: str, tmp_path: Path) -> None:
    runs = ClaudeRuns(tmp_path, name)
    rules = {"deny": ["Bash(rm:*)"], "ask": ["Bash(mkfifo:*)"]}
    runs.home.write(".claude/settings.json", {"permissions": rules})
    with ScriptedServer({TASK: [bash("rm notes.txt"), bash("mkfifo pipe")]}) as server:
        ran = run(runs, server, access="all")
    assert [one.denied for one in ran.calls] == [True, True]
    assert {path.name for path in runs.home.work.iterdir()} == {".git", "notes.txt"}


@pytest.mark.parametrize("name", VERSIONS)
def test_costs_are_those_of_the_run(name: str, tmp_path: Path) -> None:
    runs = ClaudeRuns(tmp_path, name)
    with ScriptedServer(
        {TASK: [bash("echo 1")], "more": [bash("echo 2"), says("More.")]}
    ) as server:
        first = run(runs, server).result
        again = run(runs, server, "more", resume=first.session).result
        fork = run(runs, server, "more", fork=first.session).result
        cut = run(runs, server, limits=RunLimits(cost_usd=0.0001)).result
        slash = run(runs, server, "/compact").result
    assert first.tokens.cost_usd
    assert again.tokens.cost_usd == fork.tokens.cost_usd == first.tokens.cost_usd
    assert cut.status == "cost"
    assert slash.turns == 1  # it is a prompt, not a command


def test_logins(tmp_path: Path) -> None:
    runs = ClaudeRuns(tmp_path, "claude_code")
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    assert runs.page.login(str(runs.program), environ) == "no"
    assert runs.page.login(str(runs.program), {**environ, runs.key: "none"}) == "unknown"
    assert runs.page.login("/no/such/program", environ) == "unknown"


def test_a_fork_of_an_interactive_session(tmp_path: Path) -> None:
    """It differs from its original in the words for how it was started, and in nothing else."""
    runs = ClaudeRuns(tmp_path, "claude_code")
    with ScriptedServer({TASK: [bash("echo hi"), says("It is done.")]}) as server:
        talk(runs, server, TASK)
        log = next((tmp_path / ".claude/projects").glob("*/*.jsonl"))
        original = [one.body for one in server.requests if one.body.get("tools")][-1]
        before = log.read_bytes()
        run(runs, server, "Look back", fork=log.stem, tools=False)
        fork = server.requests[-1].body
    assert log.read_bytes() == before
    for body in (original, fork):
        started = body["system"][0]["text"]
        assert started.startswith("x-anthropic-billing-header")
        body["system"][0]["text"] = started.replace("=sdk-cli;", "=cli;")
    assert shared_prefix(runs, original, fork) == 1.0


def talk(runs: ClaudeRuns, server: ScriptedServer, prompt: str) -> str:
    """Have an interactive session work on a prompt until "It is done.", end it, and return what it
    has shown.
    """
    trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {"hasCompletedOnboarding": True, "theme": "dark"}
    keys = {"customApiKeyResponses": {"approved": ["none"], "rejected": []}}
    projects = {"projects": {str(runs.home.work): trust}}
    runs.home.write(".claude.json", {**state, **keys, **projects})
    screen, terminal = pty.openpty()
    shown = bytearray()
    logs = runs.home.folder / ".claude/projects"
    before = sum(one.read_text().count("It is done.") for one in logs.glob("*/*.jsonl"))
    process = subprocess.Popen(
        [str(runs.program), prompt],
        cwd=runs.home.work,
        env=runs.environ(server),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    reader = Thread(target=_drain, args=(screen, shown))
    reader.start()
    try:
        until(
            lambda: (
                sum(one.read_text().count("It is done.") for one in logs.glob("*/*.jsonl")) > before
            )
        )
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        reader.join()
        os.close(screen)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", shown.decode("utf-8", "replace"))


def _drain(screen: int, shown: bytearray) -> None:
    with suppress(OSError):
        while chunk := os.read(screen, 65_536):
            shown += chunk
