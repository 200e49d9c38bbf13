"""Real agents for tests: installed by name into a cache, run against a scripted model server in a
home of their own, and imported from there.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.program import Command
from tests.waiting import LONGEST_S

HOOK = """
import json, sys
event = json.load(sys.stdin)
command = event["tool_input"].get("command", "")
said = {}
if "rewritten" in command:
    said = {"permissionDecision": "allow", "updatedInput": {"command": "echo what ran; exit 3"}}
if "forbidden" in command:
    said = {"permissionDecision": "deny", "permissionDecisionReason": "Not on a Friday."}
if said:
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}))
"""
"""A hook before tools that rewrites one command and forbids another."""


class Client(Struct, frozen=True, kw_only=True):
    """A client program: the package that it comes from, and who installs it."""

    package: str
    version: str
    program: str
    installer: str = "npm"


CLIENTS = {
    "claude_code": Client(package="@anthropic-ai/claude-code", version="2.1.326", program="claude"),
    "older_claude_code": Client(
        package="@anthropic-ai/claude-code", version="2.1.197", program="claude"
    ),
    "codex": Client(package="@openai/codex", version="0.169.0", program="codex"),
    "opencode": Client(package="opencode-ai", version="1.18.33", program="opencode"),
    "copilot": Client(package="@github/copilot", version="1.0.102", program="copilot"),
    "gemini": Client(package="@google/gemini-cli", version="0.61.0", program="gemini"),
    "hermes": Client(package="hermes-agent", version="0.19.0", program="hermes", installer="pip"),
}


def client_program(name: str) -> Path:
    """Return the path of a client's program. Where it is not in the cache, it is installed; the
    test is skipped if it cannot be.
    """
    client = CLIENTS[name]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "journeyman-test-clients" / f"{name}-{client.version}"
    programs = folder / ("bin" if client.installer == "pip" else "node_modules/.bin")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _install(client, folder)
            (folder / "complete").touch()
    return programs / client.program


def _install(client: Client, folder: Path) -> None:
    if client.installer == "pip":
        steps = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(folder / "bin/pip"), "install", "-q", f"{client.package}=={client.version}"],
        ]
    else:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed")
        package = f"{client.package}@{client.version}"
        steps = [[npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"{client.package} cannot be installed: {done.stderr[-500:]}")


class ClientHome:
    """A home folder with a repository to work in, for one or several runs of a client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        (self.work / "notes.txt").write_text("one\ntwo\n")

    def write(self, name: str, content: str | Mapping[str, Any]) -> Path:
        """Write a file below the home; a mapping is written as JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def run(self, program: Path, *arguments: str, code: int | None = 0, **environ: str) -> str:
        """Run a client in the work folder, and return what it printed."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        surroundings = {"HOME": str(self.folder), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}
        done = subprocess.run(
            [str(program), *arguments],
            cwd=self.work,
            env=surroundings | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        if code is not None:
            assert done.returncode == code, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout


def json_lines(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the lines of several files."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(paths))
    return [json.loads(line) for text in texts for line in text.splitlines()]


class Imported:
    """What Journeyman says about a client's sessions after importing its folder."""

    def __init__(self, command: Command, folder: Path) -> None:
        self._command = command
        self._folder = folder
        self.report: Any = None
        self.read()

    def read(self) -> None:
        """Import the folder, again if it was imported before."""
        self.report = self._command.json("import", self._folder)

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """The stored sessions with their counts, oldest first."""
        listed: list[dict[str, Any]] = self._command.json("sessions", "list", "--limit", "1000")
        return sorted(listed, key=lambda one: one["session"].get("started_at", 0))

    def verdicts(self) -> Counter[str]:
        """The number of calls with each verdict, over all sessions."""
        profile = self._command.json("profile", "--bots", "--include-trivial")
        names = ("ok", "failed", "invalid", "refused", "interrupted", "unknown")
        counted = Counter({name: profile[name] for name in names if profile[name]})
        assert counted.total() == profile["calls"]
        return counted

    def tokens(self) -> dict[str, int]:
        """The tokens of all sessions, by kind."""
        total = self._command.json("usage")["total"]
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        return {name: total[name] for name in names if total[name]}

    def calls(self, session: str) -> list[dict[str, Any]]:
        """The calls of a session, in order."""
        shown = self._command.json("sessions", "show", session)
        calls: list[dict[str, Any]] = shown["calls"]
        return calls

    def json(self, *arguments: object) -> Any:
        return self._command.json(*arguments)
