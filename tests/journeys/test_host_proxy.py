"""Real agents through the proxy: the opening is in every request of a session and stays the same,
resumed sessions keep it, and what agents record themselves is not recorded twice.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.claude_code_host import ClaudeHome, bash, run_claude
from tests.clients import client_program
from tests.hosts import TASK, HostHome, WatchedServer, count_in, free_port, openings_in, until
from tests.opencode_host import OFFLINE, shell
from tests.program import Process

from journeyman.testing import ScriptedServer, calls, says

pytestmark = [pytest.mark.soak, pytest.mark.hosts, pytest.mark.timeout(600)]

LEARNED = "build-index"
"""What only an opening knows."""

CODEX_CONFIG = """
model = "any-name"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
supports_websockets = true
[analytics]
enabled = false
"""

HERMES_CONFIG = """
model:
  default: scripted-1
  provider: custom
  base_url: {url}/v1
  api_key: none
  context_length: 64000
approvals:
  mode: "off"
security:
  allow_lazy_installs: false
  tirith_enabled: false
"""


class ProxyProcess:
    """A running `journeyman proxy`; `url` is its address for agents."""

    def __init__(self, home: HostHome, upstream: str, port: int = 0) -> None:
        self.process: Process = home.command.start(
            *("proxy", "--upstream", upstream, "--port", port, "--json")
        )
        until(lambda: "}" in self.process.printed or not self.process.running)
        printed = self.process.printed
        self.url: str = json.loads(printed[: printed.index("}") + 1])["url"]

    def stop(self) -> str:
        """Stop it, and return what it logged."""
        if self.process.running:
            self.process.signal(signal.SIGINT)
        return self.process.wait(code=0).stderr


@contextmanager
def proxy_before(home: HostHome, server: ScriptedServer) -> Iterator[ProxyProcess]:
    proxy = ProxyProcess(home, server.url)
    try:
        yield proxy
    finally:
        proxy.stop()


@pytest.fixture
def home(tmp_path: Path) -> HostHome:
    made = HostHome(tmp_path)
    made.configure(start="never")
    made.write_experience()
    return made


def leads(server: ScriptedServer, name: str, prompt: str = TASK) -> list[str]:
    """What precedes the prompt in each request that has it and tools: the last of the system
    blocks, and messages. Agents change their own blocks when they resume.
    """
    found = []
    for request in server.requests:
        messages = request.body[name]
        places = [n for n, message in enumerate(messages) if count_in(message, prompt)]
        if request.body.get("tools") and places:
            system = request.body.get("system") or [None]
            found.append(json.dumps([system[-1], messages[: places[0]]]))
    return found


def is_the_same(found: list[str], count: int) -> bool:
    """Whether so many requests have the same opening; marks for the cache may move."""
    bare = {one.replace(', "cache_control": {"type": "ephemeral"}', "") for one in found}
    return len(found) == count and len(bare) == 1 and LEARNED in bare.pop()


def own_sessions(home: HostHome, source: str, folder: str) -> list[Any]:
    """Import an agent's own logs; return its sessions, after checking that the proxy has none."""
    home.command.json("import", home.folder / folder)
    listed = home.command.json("sessions", "list", "--limit", "100")
    assert not [one for one in listed if one["session"]["source"] == "proxy"]
    ours = [one for one in listed if one["session"]["source"] == source]
    return [one for one in ours if not one["session"]["id"].startswith("earlier-")]


@pytest.mark.parametrize("name", ["claude_code", "older_claude_code"])
def test_claude_code(name: str, home: HostHome) -> None:
    errand = {"description": "Ask", "prompt": "a separate errand", "subagent_type": "claude"}
    if name == "older_claude_code":
        errand["subagent_type"] = "general-purpose"
    script = {
        "TEXT ONLY|detailed summary": [says("<summary>The index was checked.</summary>")],
        TASK: [bash("ls"), bash("cat notes.txt"), calls(("Agent", errand)), says("It is stale.")],
        "a separate errand": [bash("echo errand"), says("Errand done.")],
        "and now": [bash("echo again"), says("It still is.")],
        "afterwards": [bash("echo after"), says("After the summary.")],
    }
    with ScriptedServer(script) as server:
        with proxy_before(home, server) as proxy:
            report = run_claude(home, name, proxy, TASK, "--allowedTools", "Bash")
        session = report["session_id"]
        with proxy_before(home, server) as proxy:  # another one, as after a restart
            run_claude(home, name, proxy, "and now", "--resume", session)
            before = len(server.requests)
            run_claude(home, name, proxy, "/compact", "--resume", session)
            run_claude(home, name, proxy, "afterwards", "--resume", session)
    assert all(one.path == "/v1/messages" for one in server.requests)
    # Newer versions do another turn after a subagent in the background.
    found = [one for one in leads(server, "messages") if "a separate errand" not in one]
    assert len(found) >= 6
    assert is_the_same(found, len(found))
    # After the summary, the first user message is another one; the opening is not.
    compacted = [one.body for one in server.requests[before + 1 :] if one.body.get("tools")]
    assert len(compacted) >= 2
    assert {json.dumps(body["messages"][0]) for body in compacted} == {
        json.dumps(server.requests[0].body["messages"][0])
    }
    marks = [json.dumps(one.body).count('"cache_control"') for one in server.requests]
    assert max(marks) <= 4
    subagents = [one for one in server.requests if "x-claude-code-agent-id" in one.headers]
    assert subagents
    assert not [one for one in subagents if count_in(one.body, LEARNED)]

    stored = own_sessions(home, "claude_code", ".claude/projects")
    warm = {one["session"]["id"]: one["session"].get("opening", "") for one in stored}
    assert warm[session]
    (main,) = [one for one in stored if one["session"]["id"] == session]
    assert main["calls"] == 5
    assert not [text for text in (json.dumps(one) for one in stored) if LEARNED in text]


def test_claude_code_with_hooks_too(tmp_path: Path) -> None:
    """Hooks have told the model already: the proxy adds nothing to it."""
    home = ClaudeHome(tmp_path)
    with (
        ScriptedServer({TASK: [bash("ls"), says("It is stale.")]}) as server,
        proxy_before(home, server) as proxy,
    ):
        run_claude(home, home.name, proxy, TASK, "--allowedTools", "Bash")
    turns = [one.body for one in server.requests if one.body.get("tools")]
    assert len(turns) == 2
    for body in turns:
        assert openings_in(body)
        assert not count_in(body.get("system"), LEARNED)
        assert count_in(body["messages"][0], TASK)


def test_codex(home: HostHome) -> None:
    """It would use a WebSocket, and uses plain HTTP where there is none."""
    script = {
        TASK: [
            calls(("exec_command", {"cmd": "ls"})),
            calls(("exec_command", {"cmd": "cat missing"}), ("exec_command", {"cmd": "date"})),
            says("It is stale."),
        ],
        "and now": [calls(("exec_command", {"cmd": "echo again"})), says("It still is.")],
    }
    program = client_program("codex")

    def run(proxy: ProxyProcess, *arguments: str) -> None:
        home.write(".codex/config.toml", CODEX_CONFIG.format(url=proxy.url))
        home.run(program, "exec", *arguments, SCRIPTED_KEY="none")

    with ScriptedServer(script) as server:
        with proxy_before(home, server) as proxy:
            run(proxy, "--json", TASK)
        with proxy_before(home, server) as proxy:
            run(proxy, "resume", "--last", "--json", "and now")
    found = leads(server, "input")
    assert is_the_same(found, 5)
    for request in server.requests:
        roles = [item.get("role") for item in request.body["input"]]
        at = next(n for n, item in enumerate(request.body["input"]) if count_in(item, LEARNED))
        assert roles[:at] == ["developer"] * at
        assert roles[at] == "developer"
    (stored,) = own_sessions(home, "codex", ".codex/sessions")
    assert stored["session"]["opening"]
    assert stored["calls"] == 4


def test_opencode(home: HostHome) -> None:
    errand = {"description": "Ask", "prompt": "a separate errand", "subagent_type": "general"}
    script = {
        TASK: [calls(shell("ls")), calls(("task", errand)), says("It is stale.")],
        "a separate errand": [calls(shell("echo sub")), says("Errand done.")],
        "and now": [calls(shell("echo again")), says("It still is.")],
    }
    program = client_program("opencode")

    def run(proxy: ProxyProcess, *arguments: str) -> None:
        limit = {"context": 128_000, "output": 8_192}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": f"{proxy.url}/v1", "apiKey": "none"},
            "models": {"m1": {"name": "m1", "tool_call": True, "limit": limit}},
        }
        chosen = {"model": "scripted/m1", "small_model": "scripted/m1"}
        config = {**chosen, "enabled_providers": ["scripted"], "provider": {"scripted": provider}}
        home.write(".config/opencode/opencode.json", {**config, "autoupdate": False})
        home.run(program, "run", *arguments, **OFFLINE)

    with ScriptedServer(script) as server:
        with proxy_before(home, server) as proxy:
            run(proxy, TASK)
        with proxy_before(home, server) as proxy:
            run(proxy, "-c", "and now")
    assert is_the_same(leads(server, "messages"), 5)
    others = [one.body for one in server.requests if not count_in(one.body, TASK)]
    titles = [one.body for one in server.requests if not one.body.get("tools")]
    assert others
    assert titles
    assert not [body for body in [*others, *titles] if count_in(body, LEARNED)]
    stored = own_sessions(home, "opencode", ".local/share/opencode/opencode.db")
    warm = [bool(one["session"].get("opening")) for one in stored]
    assert sorted(warm) == [False, True]  # the subagent is cold


def test_an_agent_that_names_no_session(home: HostHome) -> None:
    """Hermes through the proxy alone: one session over two runs, as Hermes counts it itself."""
    script = {
        TASK: [
            calls(("terminal", {"command": "ls"})),
            calls(("terminal", {"command": "cat missing"}), ("terminal", {"command": "date"})),
            says("It is stale."),
        ],
        "and now": [calls(("terminal", {"command": "echo again"})), says("It still is.")],
    }
    program = client_program("hermes")
    environ = {"HERMES_HOME": str(home.folder / ".hermes")}

    def run(proxy: ProxyProcess, *arguments: str) -> None:
        config = HERMES_CONFIG.format(url=proxy.url)
        home.write(".hermes/config.yaml", config)
        home.run(program, "chat", "-Q", *arguments, **environ)

    with ScriptedServer(script) as server:
        with proxy_before(home, server) as proxy:
            run(proxy, "-q", TASK)
        with proxy_before(home, server) as proxy:
            run(proxy, "--continue", "-q", "and now")
    turns = [one for one in server.requests if one.body.get("tools")]
    assert is_the_same(leads(server, "messages"), len(turns))
    home.command.json("import", home.folder / ".hermes/state.db")
    listed = home.command.json("sessions", "list", "--limit", "100")
    (own,) = [one for one in listed if one["session"]["source"] == "hermes"]
    (ours,) = [one for one in listed if one["session"]["source"] == "proxy"]
    assert ours["session"]["opening"]
    assert ours["calls"] == own["calls"] == 4
    for kind in ("input_tokens", "output_tokens"):
        assert ours["tokens"][kind] == own["tokens"][kind]
    ours, own = (
        [
            (call["tool"], call["result"])
            for call in home.command.json("sessions", "show", one["session"]["id"])["calls"]
        ]
        for one in (ours, own)
    )
    assert ours == own


def test_a_proxy_that_is_killed_and_started_again(home: HostHome) -> None:
    """The agent tries again by itself, and its session goes on with the same opening."""
    port = free_port()
    proxies: list[ProxyProcess] = []

    def replace(number: int) -> None:
        if number == 2:
            proxies[-1].process.signal(signal.SIGKILL)
            proxies[-1].process.wait()
            proxies.append(ProxyProcess(home, server.url, port))

    with WatchedServer({TASK: [bash("ls"), bash("date"), says("Stale.")]}, replace) as server:
        proxies.append(ProxyProcess(home, server.url, port))
        report = run_claude(home, "claude_code", proxies[0], TASK, "--allowedTools", "Bash")
        proxies[-1].stop()
    assert report["result"] == "Stale."
    found = leads(server, "messages")
    assert len(found) >= 4
    assert is_the_same(found, len(found))
