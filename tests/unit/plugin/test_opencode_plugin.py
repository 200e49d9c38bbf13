"""opencode's plugin under Node, which speaks to a real resident process. Journeys run it inside the
real opencode.
"""

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.host_service import TASK
from tests.hosts import HostHome
from tests.waiting import LONGEST_S

from journeyman.plugin import client
from journeyman.plugin.installation.record import Record, write_record
from journeyman.plugin.server import HookServer
from journeyman.plugin.service import HostService

PLUGIN = Path(client.__file__).with_name("opencode_plugin.js")
SESSION = "ses_1"

# Stands in for opencode: calls hooks in order, and has what the plugin uses of its client.
DRIVER = """
const { Journeyman } = await import(process.argv[2]);
const steps = JSON.parse(process.argv[3]);
const tools = ["bash", "read", "edit"].map((id) => ({ id, description: id, parameters: {} }));
const session = { id: "ses_1", title: "A title", directory: process.cwd(), time: { created: 5 } };
const client = {
  session: { get: async () => ({ data: { ...session, ...steps[0].session } }) },
  app: { agents: async () => ({ data: [{ name: "title", prompt: "You name sessions." }] }) },
  tool: { list: async () => ({ data: tools }) },
};
const hooks = await Journeyman({ client, directory: process.cwd() });
const results = [];
for (const { hook, input, output } of steps) {
  try {
    await hooks[hook](input, output);
    results.push(output);
  } catch (error) {
    results.push({ error: error.message });
  }
}
await hooks.dispose();
console.log(JSON.stringify(results));
"""


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed")
    return found


class Plugin:
    """The installed plugin; `call` runs some of its hooks in one process."""

    def __init__(self, home: HostHome, node: str) -> None:
        self._home = home
        self._node = node
        constants = {
            "home": str(home.journeyman),
            "socket": client.socket_path(str(home.journeyman)),
            "python": sys.executable,
            "file": str(home.folder / "plugin.mjs"),
            "limits_ms": {"opening": 1_000 * LONGEST_S, "gateInChild": 1},
        }
        source = PLUGIN.read_text()
        assert source.count("__JOURNEYMAN__") == 1
        self._path = home.write(
            "plugin.mjs", source.replace("__JOURNEYMAN__", json.dumps(constants))
        )
        self._driver = home.write("driver.mjs", DRIVER)

    def call(self, *steps: dict[str, Any]) -> list[Any]:
        done = subprocess.run(
            [self._node, str(self._driver), str(self._path), json.dumps(steps)],
            cwd=self._home.work,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=True,
        )
        results: list[Any] = json.loads(done.stdout)
        return results


def transform(**step: Any) -> dict[str, Any]:
    info = {
        "role": "user",
        "sessionID": SESSION,
        "time": {"created": 9},
        "model": {"providerID": "p", "modelID": "m"},
    }
    message = {"info": info, "parts": [{"type": "text", "text": TASK}]}
    hook = "experimental.chat.messages.transform"
    return {"hook": hook, "input": {}, "output": {"messages": [message]}, **step}


def system(text: str, package: str = "@ai-sdk/anthropic") -> dict[str, Any]:
    sent = {"sessionID": SESSION, "model": {"api": {"npm": package}}}
    hook = "experimental.chat.system.transform"
    return {"hook": hook, "input": sent, "output": {"system": [text]}}


def before(command: str, tool: str = "bash") -> dict[str, Any]:
    called = {"tool": tool, "sessionID": SESSION, "callID": "call_1"}
    return {
        "hook": "tool.execute.before",
        "input": called,
        "output": {"args": {"command": command}},
    }


@pytest.fixture
def home(tmp_path: Path) -> HostHome:
    home = HostHome(tmp_path)
    home.configure(start="never")
    home.write_experience("bash")
    return home


@contextmanager
def answering(path: str, answer: bytes) -> Iterator[None]:
    """A process that answers each request on the socket with these bytes."""
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection:
                while connection.recv(65_536):
                    pass
                connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(0.05)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()


def test_facts_follow_the_system_text(home: HostHome, node: str) -> None:
    plugin = Plugin(home, node)
    title = system("You name sessions. Shortly.")
    compatible = system("You help.", "@ai-sdk/openai-compatible")
    step = transform()
    with home.open() as journeyman, HookServer(HostService(journeyman), home.journeyman):
        first, again, own, named, joined, allowed, refused = plugin.call(
            step, step, system("You help."), title, compatible,
            before("echo one"), before("rm -rf /"),
        )  # fmt: skip

    assert first == again == step["output"]
    assert own["system"][0] == "You help."
    assert own["system"][1].startswith("Journeyman")
    assert "build-index" in own["system"][1]
    assert joined["system"] == [f"You help.\n\n{own['system'][1]}"]
    assert named == title["output"]
    assert allowed["args"] == {"command": "echo one"}
    assert "delete.everything" in refused["error"]


def test_examples_become_messages_of_opencode(home: HostHome, node: str) -> None:
    home.use_small_model("m")
    with home.open() as journeyman, HookServer(HostService(journeyman), home.journeyman):
        first, again, own = Plugin(home, node).call(transform(), transform(), system("You help."))

    *examples, prompt = first["messages"]
    assert first == again
    assert prompt["parts"][0]["text"] == TASK
    assert [one["info"]["role"] for one in examples[:2]] == ["user", "assistant"]
    parts = [part for one in examples for part in one["parts"] if part["type"] == "tool"]
    assert parts
    assert {part["tool"] for part in parts} == {"bash"}
    for part in parts:
        outcome = {"completed": "output", "error": "error"}[part["state"]["status"]]
        assert part["state"][outcome]
        assert part["state"]["input"]["command"]
    assert own["system"][1].startswith("Journeyman shows")


def test_a_subagent_gets_no_opening(home: HostHome, node: str) -> None:
    step = transform(session={"parentID": "ses_0"})
    with home.open() as journeyman, HookServer(HostService(journeyman), home.journeyman):
        assert Plugin(home, node).call(step) == [step["output"]]


def test_listed_tools_are_held_also_if_they_only_read(home: HostHome, node: str) -> None:
    home.configure(start="never", gate_tools=["web*"])
    write_record(home.journeyman, Record(host="opencode", gate_tools=("web*",)))
    steps = before("x", "webfetch"), before("x", "read"), before("x", "github_search")
    with home.open() as journeyman, HookServer(HostService(journeyman), home.journeyman):
        held, read, other = Plugin(home, node).call(*steps)
    assert held["error"].startswith("Blocked by Journeyman: no confirmation could be requested")
    assert read == other == {"args": {"command": "x"}}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"ok",
        b"ok\n[]",
        b"ok\nnot JSON",
        b"error\nThe store cannot be written.",
        b'2 ok\n{"decision": "allow", "state": "warm"}',
        b'ok\n{"decision": "perhaps", "state": "warm", "messages": [{"role": "user"}]}',
        b'ok\n{"decision": null, "state": "warm", "messages": 3}',
    ],
)
def test_an_answer_that_cannot_be_used(home: HostHome, node: str, answer: bytes) -> None:
    plugin, step = Plugin(home, node), transform()
    with answering(client.socket_path(str(home.journeyman)), answer):
        opened, own, called = plugin.call(step, system("You help."), before("echo one"))
    assert opened == step["output"]
    assert own["system"] == ["You help."]
    assert called["error"].startswith("Blocked by Journeyman")
