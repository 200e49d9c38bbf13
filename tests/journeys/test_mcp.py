"""The MCP server as a client sees it: the SDK's own client connects to the real program over
stdio.
"""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.client import ConnectMode
from mcp.types import CallToolResult, TextContent, Tool
from tests.conversations import stock_keeping
from tests.program import Command
from tests.tables import table
from tests.validators import openai_faults
from tests.waiting import LONGEST_S

from journeyman import Journeyman
from journeyman.experience.warm_session import SCHEMA
from journeyman.mcp.server import make_server
from journeyman.version import __version__

TASK = "Count the nails in the shed and note it"
LOOK_UP = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}},
}


class Connection:
    """A client connected to a server, for synchronous tests."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def call(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must succeed."""
        result = self.portal.call(self.client.call_tool, tool, arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    def json(self, tool: str, **arguments: Any) -> Any:
        return json.loads(self.call(tool, **arguments))

    def error(self, tool: str, **arguments: Any) -> str:
        """The text of a call that must fail."""
        result = self.portal.call(self.client.call_tool, tool, arguments)
        assert result.is_error, text_of(result)
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def connected(
    home: Path, mode: ConnectMode = "auto", folder: Path | None = None
) -> Iterator[Connection]:
    program = str(Path(sys.executable).with_name("journeyman"))
    server = StdioServerParameters(
        command=program, args=["mcp"], env=Command(home).environ, cwd=folder or home
    )
    with (
        (home / "stderr.txt").open("w") as errors,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            Client(stdio_client(server, errlog=errors), mode=mode)
        ) as client,
    ):
        yield Connection(portal, client)


@pytest.fixture(scope="module")
def shed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with recorded and learned sessions."""
    home = tmp_path_factory.mktemp("shed")
    with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as journeyman:
        for day in (1, 2):
            messages = stock_keeping(day)
            known = {"source": "shed", "session_id": f"good-{day}", "project": "acme/shed"}
            journeyman.record(messages, outcome=1.0, **known)
        messages = stock_keeping(3, failures=5)
        journeyman.record(messages, source="barn", session_id="bad", outcome=0.0)
        journeyman.learn()
    return home


@pytest.fixture(scope="module")
def server(shed: Path) -> Iterator[Connection]:
    with connected(shed) as connection:
        yield connection
    assert (shed / "stderr.txt").read_text() == "", "the server has nothing to complain about"


def test_legacy_clients_can_connect(shed: Path) -> None:
    with connected(shed, mode="legacy") as connection:
        client, about = connection.client, connection.client.server_info
        assert about is not None
        assert (about.name, about.version) == ("journeyman", __version__)
        assert "opening" in (client.instructions or "")
        assert connection.json("warm_session", action="list")["success"] is True


@pytest.fixture(scope="module")
def tools(server: Connection) -> dict[str, Tool]:
    return {tool.name: tool for tool in server.portal.call(server.client.list_tools).tools}


class TestTools:
    def test_tool_definitions(self, tools: dict[str, Tool]) -> None:
        # Names.
        assert [*tools] == [
            *("opening", "profile", "search_sessions", "warm_session", "request_confirmation"),
            *("get_confirmation", "cancel_confirmation", "redeem_confirmation"),
            "request_permission",
        ]
        assert tools["warm_session"].input_schema == SCHEMA["parameters"]

        # Descriptions.
        for tool in tools.values():
            Draft202012Validator.check_schema(tool.input_schema)
            assert tool.title
            assert len(tool.description or "") > 100
            for parameter in tool.input_schema["properties"].values():
                assert parameter["description"]

        # Hints about side effects; using a template is counted.
        read_only = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert read_only == {"profile", "search_sessions", "get_confirmation"}
        assert [n for n, tool in tools.items() if tool.annotations.destructive_hint] == [
            "warm_session"
        ]


class TestCalls:
    def test_the_life_cycle_of_a_template(self, server: Connection) -> None:
        built = server.json("warm_session", action="build", name="stock", tags=["shed"])
        assert (built["success"], built["qualified"], built["version"]) == (True, 2, 1)
        loaded = server.json("warm_session", action="load", name="stock")
        assert openai_faults(loaded["messages"]) == []
        server.call("opening", task=TASK, template="stock")
        (listed,) = server.json("warm_session", action="list", tags="shed")["templates"]
        assert (listed["name"], listed["used"]) == ("stock", 2)
        assert server.json("warm_session", action="delete", name="stock")["deleted"] == 1
        assert server.json("warm_session", action="list")["templates"] == []

    def test_reliability_and_search(self, server: Connection) -> None:
        # Profile.
        assert server.json("profile")["sessions"] == 3
        assert server.json("profile", session_id="bad")["rate"]["errors"] == 5

        # Compare and compress-check.
        compared = server.json(
            "warm_session", action="compare", session_id="good-1", compare_with="bad"
        )
        assert compared["warm_minus_cold"]["estimate"] < 0
        checked = server.json("warm_session", action="compress-check", session_id="bad")
        assert checked["verdict"] == "never compressed"

        # Search.
        hits = server.json("search_sessions", query="hinges shed", source="shed")["hits"]
        assert {hit["session"] for hit in hits} == {"good-1", "good-2"}
        assert all("[hinges]" in hit["snippet"] for hit in hits)
        assert len(server.json("search_sessions", query="shed", limit=1)["hits"]) == 1
        assert server.json("search_sessions", query="zebra")["hits"] == []

    def test_openings(self, server: Connection) -> None:
        def opening(**more: Any) -> str:
            return server.call("opening", **{"task": TASK, "project": "shed", **more})

        # Text for a person or model.
        text = opening()
        assert text.startswith("[Journeyman ")
        assert "look_up" in text

        # Tools and limits.
        assert "Example 1 of 1" in opening(max_patterns=1)
        assert opening(budget_tokens=1).startswith("Nothing to show. ")
        for tools in ([LOOK_UP], json.dumps([LOOK_UP])):
            assert "note_down" not in opening(tools=tools)

        # An unrelated task, and the folder of the server, which is of no project.
        none = opening(task="Xylophone zebra quantum")
        assert none.startswith("Nothing to show. Nothing that is known fits this task here")
        assert server.call("opening", task=TASK).startswith("Nothing to show. Nothing ")

    def test_facts_of_the_folder(self, shed: Path, tmp_path: Path) -> None:
        """A host starts the server in the folder that its agent works in."""
        shutil.copytree(shed / ".journeyman", tmp_path / ".journeyman")
        work = tmp_path / "garden"
        (work / ".git").mkdir(parents=True)
        (work / ".git/description").touch()
        with Journeyman(home=tmp_path / ".journeyman", environ={}) as journeyman:
            journeyman.facts.remember(journeyman.find_project(work), "answer in rhymes")
        with connected(tmp_path, folder=work) as connection:
            assert "answer in rhymes" in connection.call("opening", task=TASK)


class TestWrongCalls:
    def test_tool_and_protocol_errors(self, server: Connection) -> None:
        # warm_session reports errors in its own format.
        answer = json.loads(server.error("warm_session", action="load", name="nothing"))
        assert answer["success"] is False
        assert "There is no template 'nothing'" in answer["error"]

        # A model that calls an unknown tool learns which tools there are.
        assert "no tool 'hammer'. The tools are: opening, profile," in server.error("hammer")

    @table(
        ("tool", "arguments", "said"),
        [
            ("opening", {}, "opening needs task"),
            ("opening", {"task": TASK, "template": "nothing"}, "no template 'nothing'"),
            ("opening", {"task": TASK, "tools": "hammer"}, "is not of type 'object'"),
            ("opening", {"task": TASK, "tools": [{}]}, "Tool 1 has no name"),
            ("opening", {"task": TASK, "max_patterns": 0}, "less than the minimum of 1"),
            ("profile", {"session": "bad"}, "'session' was unexpected"),
            ("opening", {"query": TASK}, "needs task"),
            ("search_sessions", {"limit": 5}, "search_sessions needs query"),
            ("warm_session", {"action": "compare"}, "needs session_id and compare_with"),
            ("request_confirmation", {}, "needs action and description and details"),
            ("profile", {"session_id": "nobody"}, "no session 'nobody'"),
            ("search_sessions", {"query": " "}, "needs query"),
            ("search_sessions", {"query": "x", "limit": 51}, "greater than the maximum of 50"),
        ],
        ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value)),
    )
    def test_errors_are_explained(
        self, server: Connection, tool: str, arguments: dict[str, Any], said: str
    ) -> None:
        assert said in server.error(tool, **arguments)


def test_concurrent_calls_are_all_answered(server: Connection) -> None:
    asked = [
        ("warm_session", {"action": "build", "name": "one"}),
        ("profile", {}),
        ("warm_session", {"action": "build", "name": "two"}),
        ("search_sessions", {"query": "shed"}),
        ("opening", {"task": TASK}),
    ]
    running = [
        server.portal.start_task_soon(server.client.call_tool, tool, arguments)
        for tool, arguments in asked
    ]
    assert not any(call.result(timeout=LONGEST_S).is_error for call in running)
    listed = server.json("warm_session", action="list")["templates"]
    assert {one["name"] for one in listed} >= {"one", "two"}


class TestInProcess:
    """The server within this process."""

    def test_the_server_responds_while_a_call_is_running(self, shed: Path) -> None:
        done = Event()
        with (
            Journeyman(home=shed / ".journeyman", environ={"HOME": str(shed)}) as journeyman,
            in_process(journeyman) as (connection, worker),
        ):
            worker.submit(done.wait, 60)
            portal, client = connection.portal, connection.client
            call = portal.start_task_soon(client.call_tool, "profile", {})
            assert portal.call(client.list_tools).tools
            assert not call.done()
            done.set()
            assert not call.result(timeout=LONGEST_S).is_error

    def test_an_unexpected_error_is_reported_and_the_next_call_is_served(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        nobody: Any = None
        with in_process(nobody) as (connection, _):
            for _ in range(2):
                assert "profile failed unexpectedly: AttributeError" in connection.error("profile")
        assert "the tool profile failed" in caplog.text


@contextmanager
def in_process(journeyman: Journeyman) -> Iterator[tuple[Connection, ThreadPoolExecutor]]:
    with (
        ThreadPoolExecutor(max_workers=1) as worker,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(make_server(journeyman, worker))) as client,
    ):
        yield Connection(portal, client), worker


GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@contextmanager
def initialised(home: Path) -> Iterator[subprocess.Popen[str]]:
    """The bare program after the initial handshake; it is killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "journeyman", "mcp"],
        env=Command(home).environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(GREETING) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "journeyman"
        try:
            yield process
        finally:
            process.kill()


class TestShutdown:
    def test_at_the_end_of_its_input(self, tmp_path: Path) -> None:
        with initialised(tmp_path) as process:
            rest, said = process.communicate(timeout=LONGEST_S)
            assert (process.returncode, rest, said) == (0, "", "")

    @pytest.mark.soak
    def test_on_ctrl_c_without_output(self, tmp_path: Path) -> None:
        with initialised(tmp_path) as process:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=LONGEST_S) == -signal.SIGINT
            assert process.stderr is not None
            assert process.stderr.read() == ""

    @pytest.mark.soak
    def test_when_the_client_disconnects(self, tmp_path: Path) -> None:
        with initialised(tmp_path) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stdin.write(json.dumps(GREETING) + "\n")
            process.stdin.close()
            assert process.wait(timeout=LONGEST_S) == 0
            assert process.stderr.read() == ""


def test_the_error_for_a_missing_extra(tmp_path: Path) -> None:
    program = "import sys; sys.modules['mcp'] = None; from journeyman.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "mcp"],
        env=Command(tmp_path).environ,
        capture_output=True,
        text=True,
        check=False,
    )
    expected = "journeyman: Serving MCP needs the extra \"mcp\": pip install 'journeyman[mcp]'.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
