"""The time that Journeyman's hooks add to a session of Claude Code while `journeyman serve` runs,
against no hook and against an empty one (`true`).

    python benchmarks/host_latency.py [--rounds 20] [--claude PROGRAM] [--logs FOLDER]

The experience is that of the sample corpus, or is learned from a folder of logs; the hooks are
those that `journeyman hosts install claude-code` writes. First they run as clients start them,
through a shell; a bare Python is timed beside them, because the client is one. Then the plugin of
Hermes is called as Hermes calls it, in this process. Then the real Claude Code works against a
scripted model, if it is installed: three sessions with no hook, an empty hook and ours take turns,
so that the machine treats them alike. A prompt is timed from the moment it is sent to the first
request for an answer, a gated call from there to the next request. Every prompt of ours builds an
opening: the session's budget is raised for that. Medians are printed, and last what ours adds, with
its ratio to an empty hook.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from journeyman import Journeyman
from journeyman.models.model import Reply
from journeyman.plugin import client
from journeyman.plugin.hermes import HermesPlugin
from journeyman.plugin.hermes_link import Link
from journeyman.testing import ScriptedServer, calls, says, write_corpus
from journeyman.testing.wire_formats import Endpoint, Exchange

PROMPT_BAR_MS, GATE_BAR_MS = 100, 60
_HOST = "claude-code"
_CALL = {"command": "echo harmless"}
_SETTINGS = """
[confirm]
port = {port}
page_port = {page_port}
[hosts]
learn = false
budget_tokens = 1000000
"""
_QUIET = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}

Times = dict[str, list[float]]


class Bench:
    """A home with experience of one project, and a folder in which that project is worked on."""

    def __init__(self, folder: Path, logs: Path | None) -> None:
        self.folder = folder
        self.home = folder / ".journeyman"
        with Journeyman(home=self.home, environ=self.environ) as journeyman:
            journeyman.import_logs([logs or write_corpus(folder / "corpus").folder])
            report = journeyman.learn()
            totals = [one for one in journeyman.sessions.projects() if one.project]
            self.project = max(totals, key=lambda one: one.sessions).project
            listed = journeyman.sessions.list(project=self.project)
            self.tasks = [one.session.title for one in listed if one.session.title]
        print(f"{report.sessions} sessions learned, {len(self.tasks)} tasks in {self.project}")
        self.work = folder / "projects" / Path(self.project).name
        (self.work / ".git").mkdir(parents=True)  # a clone, where all of the project's facts hold
        (self.work / ".git/description").touch()
        (self.home / "config.toml").write_text(
            _SETTINGS.format(port=_free_port(), page_port=_free_port())
        )
        self.hooks = self._installed()

    @property
    def environ(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {"HOME": str(self.folder), "PATH": path}

    def _installed(self) -> dict[str, Any]:
        """Install the hooks, and return what was written: a list of groups for each event."""
        program = [sys.executable, "-m", "journeyman", "--home", str(self.home), "hosts", "install"]
        subprocess.run(
            [*program, _HOST, "--yes"], env=self.environ, check=True, capture_output=True
        )
        written = json.loads((self.folder / ".claude/settings.json").read_text())
        hooks: dict[str, Any] = written["hooks"]
        return hooks

    def command(self, event: str) -> str:
        (group,) = self.hooks[event]
        return str(group["hooks"][0]["command"])

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run `journeyman serve` in a process of its own."""
        program = [sys.executable, "-m", "journeyman", "--home", str(self.home), "serve"]
        with (self.folder / "serve.log").open("w") as log:
            process = subprocess.Popen(program, env=self.environ, stdout=log, stderr=log)
        try:
            self._wait()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()

    def _wait(self) -> None:
        """Wait until the service answers, and its experience is in memory."""
        for _ in range(600):
            try:
                client.request(str(self.home), "status", _HOST, b"{}", timeout_s=1)
                break
            except client.Unanswered:
                time.sleep(0.05)
        self.hook("SessionStart", {"source": "startup"}, session="warm-up")
        self.hook("UserPromptSubmit", {"prompt": self.tasks[0]}, session="warm-up")

    def hook(self, event: str, fields: Mapping[str, Any], *, session: str) -> tuple[float, str]:
        """Run a hook as Claude Code does; return its time in ms, and what it printed."""
        sent = {"session_id": session, "cwd": str(self.work), "hook_event_name": event, **fields}
        return self.timed(self.command(event), json.dumps(sent))

    def timed(self, line: str, sent: str = "{}") -> tuple[float, str]:
        """Run a command line in a shell; return its time in ms, and what it printed."""
        began = time.perf_counter()
        done = subprocess.run(
            ["sh", "-c", line],
            input=sent.encode(),
            stdout=subprocess.PIPE,
            env=self.environ,
            cwd=self.work,
            check=True,
        )
        return 1_000 * (time.perf_counter() - began), done.stdout.decode()


def hook_processes(bench: Bench, rounds: int) -> Times:
    """Return the times of hooks as processes, in ms, by what they are."""
    bare = shlex.join((sys.executable, "-I", "-S", "-c", "pass"))
    times: Times = defaultdict(list)
    given = 0
    for number in range(rounds):
        session, task = str(uuid.uuid4()), bench.tasks[number % len(bench.tasks)]
        times["empty (true)"].append(bench.timed("true")[0])
        times["bare Python"].append(bench.timed(bare)[0])
        calling = {"tool_name": "Bash", "tool_input": _CALL, "tool_use_id": session}
        for event, fields in (
            ("SessionStart", {"source": "startup"}),
            ("UserPromptSubmit", {"prompt": task}),
            ("PreToolUse", calling),
        ):
            took_ms, printed = bench.hook(event, fields, session=session)
            times[event].append(took_ms)
            given += bool(printed)
    assert given >= rounds, "the benchmark should add something to every session"
    return times


def hermes_plugin(bench: Bench, rounds: int) -> Times:
    """Return the times in ms that the plugin adds within Hermes, by the moment."""
    os.environ["TERMINAL_CWD"] = str(bench.work)
    plugin = HermesPlugin(Link(str(bench.home)))
    terminal = {"name": "terminal", "description": "Run a command", "parameters": {}}
    times: Times = defaultdict(list)
    given = 0
    for number in range(rounds):
        session, task = str(uuid.uuid4()), bench.tasks[number % len(bench.tasks)]
        for name in ("first request", "later request"):
            request = {
                "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": task}],
                "tools": [{"type": "function", "function": terminal}],
            }
            began = time.perf_counter()
            changed = plugin.llm_request(
                request=request,
                session_id=session,
                turn_id=f"{session}:t:1",
                api_mode="chat_completions",
            )
            times[name].append(1_000 * (time.perf_counter() - began))
            given += changed is not None
        calling = {"tool_name": "terminal", "session_id": session, "tool_call_id": session}
        began = time.perf_counter()
        plugin.tool_request(args=_CALL, **calling)
        plugin.pre_tool_call(args=_CALL, **calling)
        times["gated call"].append(1_000 * (time.perf_counter() - began))
    assert given, "the benchmark should add an opening to some sessions"
    return times


class TimedServer(ScriptedServer):
    """A scripted model server that notes when requests arrive."""

    def __init__(self, script: Mapping[str, Sequence[Reply]]) -> None:
        super().__init__(script)
        self.times: list[float] = []

    def answer(
        self, target: Endpoint, path: str, headers: dict[str, str], body: Mapping[str, Any]
    ) -> tuple[Reply, Exchange]:
        self.times.append(time.perf_counter())
        return super().answer(target, path, headers, body)


class ClaudeSession:
    """A session of the real Claude Code that takes one prompt after the other."""

    def __init__(self, program: str, bench: Bench, name: str, hooks: Mapping[str, Any]) -> None:
        self.server = TimedServer({"": [calls(("Bash", _CALL)), says("Done.")]})
        folder = bench.folder / name
        (folder / ".claude").mkdir(parents=True)
        (folder / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
        options = "--input-format stream-json --output-format stream-json --verbose"
        self._process = subprocess.Popen(
            [program, "-p", *options.split(), "--allowedTools", "Bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **bench.environ,
                **_QUIET,
                "HOME": str(folder),
                "ANTHROPIC_BASE_URL": self.server.url,
            },
            cwd=bench.work,
            text=True,
        )

    def ask(self, prompt: str) -> tuple[float, float]:
        """Return the times in ms from the prompt to the first request, and from there over one call
        to the next.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        first = len(self.server.times)
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        began = time.perf_counter()
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if json.loads(line).get("type") == "result":
                break
        requested, called = self.server.times[first : first + 2]
        return 1_000 * (requested - began), 1_000 * (called - requested)

    def close(self) -> None:
        self._process.communicate(timeout=60)


def claude_sessions(bench: Bench, program: str, rounds: int) -> tuple[Times, Times]:
    """Return the times of prompts and of gated calls in ms, by the kind of hook."""
    empty = json.loads(json.dumps(bench.hooks))
    for groups in empty.values():
        groups[0]["hooks"][0]["command"] = "true"
    kinds = {"no hook": {}, "empty hook": empty, "ours": bench.hooks}
    prompts: Times = defaultdict(list)
    gated: Times = defaultdict(list)
    with ExitStack() as stack:
        sessions = {}
        for name, hooks in kinds.items():
            session = ClaudeSession(program, bench, name.replace(" ", "-"), hooks)
            stack.enter_context(session.server)
            stack.callback(session.close)
            sessions[name] = session
            session.ask("Say hello")  # the program starts with its first prompt
        for number in range(rounds):
            for name, session in sessions.items():
                prompt_ms, call_ms = session.ask(bench.tasks[number % len(bench.tasks)])
                prompts[name].append(prompt_ms)
                gated[name].append(call_ms)
        bodies = [str(one.body["messages"]) for one in sessions["ours"].server.requests]
        assert "Journeyman: what" in bodies[-1], "the benchmark should add openings"
    return prompts, gated


def show(title: str, times: Times) -> dict[str, float]:
    """Print the medians of several times, and return them."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(title)
    for name, median in medians.items():
        low, high = min(times[name]), max(times[name])
        print(f"  {name:17s} {median:6.1f} ms   ({low:.1f} to {high:.1f})")
    return medians


def show_added(what: str, medians: Mapping[str, float], bar_ms: float) -> None:
    added = medians["ours"] - medians["no hook"]
    over_empty = medians["ours"] - medians["empty hook"]
    verdict = "within" if over_empty <= bar_ms else "over"
    print(
        f"added per {what}: {added:.0f} ms over no hook, {over_empty:.0f} ms over an empty hook, "
        f"{verdict} {bar_ms:.0f} ms; ratio to an empty hook "
        f"{medians['ours'] / medians['empty hook']:.2f}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--claude", default=shutil.which("claude"))
    parser.add_argument("--logs", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as folder:
        bench = Bench(Path(folder), asked.logs)
        with bench.serving():
            hooks = show(
                f"hooks as processes, medians of {asked.rounds}:",
                hook_processes(bench, asked.rounds),
            )
            for event in ("SessionStart", "UserPromptSubmit", "PreToolUse"):
                added, ratio = (
                    hooks[event] - hooks["empty (true)"],
                    hooks[event] / hooks["bare Python"],
                )
                print(f"  {event} adds {added:.0f} ms to an empty hook; bare Python x {ratio:.2f}")
            hermes = show(
                f"within Hermes, medians of {asked.rounds}:", hermes_plugin(bench, asked.rounds)
            )
            for name, median in hermes.items():
                print(f"  {name}: bare Python x {median / hooks['bare Python']:.2f}")
            if asked.claude is None:
                print("Claude Code is not installed: pass its program with --claude.")
                return
            prompts, gated = claude_sessions(bench, asked.claude, asked.rounds)
        prompt_medians = show("Claude Code, prompt to first request:", prompts)
        call_medians = show("Claude Code, request to request over a gated call:", gated)
        show_added("prompt", prompt_medians, PROMPT_BAR_MS)
        show_added("gated call", call_medians, GATE_BAR_MS)


if __name__ == "__main__":
    main()
