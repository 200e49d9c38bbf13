"""Whatever is sent to the hook socket: the server goes on, and whoever finishes a request gets an
answer or an error.
"""

import json
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.waiting import LONGEST_S, until, until_cut_off

from journeyman import Journeyman
from journeyman.plugin.client import WAITING
from journeyman.plugin.imports import ImportSpool
from journeyman.plugin.server import HookServer
from journeyman.plugin.service import OPERATIONS, HostService
from journeyman.records.host import HOSTS

_SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


class Line:
    """A server in this process, and plain connections to it. `surprises` are the errors that no
    one foresaw.
    """

    def __init__(self, server: HookServer) -> None:
        self.path = server.path
        self.surprises: list[logging.LogRecord] = []

    def send(self, content: bytes, *, pieces: int = 1) -> bytes:
        """Send exactly this in pieces, end sending, and return all that comes back."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(LONGEST_S)
            connection.connect(self.path)
            size = len(content) // pieces + 1
            try:
                for at in range(0, len(content), size):
                    connection.sendall(content[at : at + size])
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # it has heard enough
                return b""
            answer = b""
            while chunk := connection.recv(65_536):
                answer += chunk
            return answer

    def ask(self, operation: str, host: str, body: bytes) -> tuple[str, bytes]:
        answer = self.send(f"1 {operation} {host} 60000\n".encode() + body)
        status, newline, content = answer.removeprefix(WAITING).partition(b"\n")
        assert newline, (operation, body, answer)
        return status.decode(), content

    @property
    def threads(self) -> list[str]:
        """The threads that answer a request."""
        names = [thread.name for thread in threading.enumerate()]
        return [name for name in names if "process_request" in name]


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    home = tmp_path_factory.mktemp("protocol")
    with Journeyman(home=home, environ={"HOME": str(home)}) as journeyman:
        queue = ImportSpool(home, "", program=(sys.executable, "-c", ""))
        with HookServer(HostService(journeyman, imports=queue), home) as server:
            line = Line(server)
            noting = logging.Handler(logging.ERROR)
            noting.emit = line.surprises.append  # type: ignore[method-assign]
            logging.getLogger("journeyman.plugin").addHandler(noting)
            try:
                yield line
            finally:
                logging.getLogger("journeyman.plugin").removeHandler(noting)


@pytest.fixture(autouse=True)
def alive(line: Line) -> Iterator[None]:
    """After each test the server answers, no thread is left, and every error was foreseen."""
    yield
    assert [record.exc_info for record in line.surprises] == []
    until(lambda: not line.threads)
    assert line.ask("status", "hermes", b"{}")[0] == "ok"


@_SHARED
@given(st.binary(max_size=2_000), st.integers(1, 5))
def test_any_bytes(line: Line, content: bytes, pieces: int) -> None:
    answer = line.send(content, pieces=pieces)
    assert answer.startswith((b"ok\n", b"error\n"))


_words = st.text(st.characters(max_codepoint=255, exclude_characters="\n"), max_size=30)


@_SHARED
@given(st.lists(_words, max_size=6), st.binary(max_size=200))
def test_any_head(line: Line, words: list[str], body: bytes) -> None:
    answer = line.send(" ".join(words).encode("latin-1") + b"\n" + body)
    assert answer.startswith((b"ok\n", b"error\n"))


_keys = st.sampled_from(
    [
        *(
            "session",
            "task",
            "cwd",
            "tools",
            "model",
            "form",
            "fresh",
            "parent",
            "platform",
            "path",
        ),
        *(
            "tool",
            "arguments",
            "call_id",
            "wait_s",
            "always",
            "event",
            "reason",
            "name",
            "on",
            "key",
        ),
        *("input_tokens", "session_id", "hook_event_name", "prompt", "tool_name", "tool_input"),
        *("tool_response", "error", "agent_id", "transcript_path", "source", "command", "x"),
    ]
)
_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(
        ["Bash", "PreToolUse", "SessionStart", "startup", "ls", "a\x00b", "/", "~", "s1"]
    ),
)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_keys | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=12,
)
_bodies = st.dictionaries(_keys, _values, max_size=8) | _values


@_SHARED
@given(st.sampled_from(OPERATIONS), st.sampled_from(HOSTS), _bodies)
def test_any_json_to_any_operation(line: Line, operation: str, host: str, body: Any) -> None:
    status, content = line.ask(operation, host, encoded(body))
    if status == "ok":
        assert isinstance(json.loads(content or b"{}"), dict)
        assert content or operation == "hook"
    else:
        assert status == "error"
        assert content.decode()


_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("Stop", "SessionEnd", "Other"),
)
_RIGHT: dict[str, Any] = {
    "session_id": "s1",
    "transcript_path": "/nowhere/log.jsonl",
    "cwd": "/srv/app",
    "source": "startup",
    "prompt": "Run the tests",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t1",
    "tool_response": "done",
    "error": "Exit code 1",
    "agent_id": None,
}


@_SHARED
@given(
    st.sampled_from(_EVENTS),
    st.sampled_from(("claude-code", "codex")),
    st.dictionaries(st.sampled_from(sorted(_RIGHT)), _values, max_size=3),
    st.sets(st.sampled_from(sorted(_RIGHT)), max_size=3),
)
def test_hooks_with_wrong_values(
    line: Line, event: str, host: str, wrong: dict[str, Any], missing: set[str]
) -> None:
    body = {"hook_event_name": event, **_RIGHT, **wrong}
    for name in missing:
        del body[name]
    status, content = line.ask("hook", host, encoded(body))
    assert status in ("ok", "error")
    if status == "ok" and content:
        output = json.loads(content)["hookSpecificOutput"]
        assert output["hookEventName"] == event
        # Nobody can be asked here, so nothing is ever allowed outright.
        assert output.get("permissionDecision", "deny") == "deny"


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def test_a_client_that_stops_in_the_middle_holds_a_thread_only_for_a_while(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.plugin.server._READ_S", 0.3)
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(line.path)
        slow.sendall(b"1 status")
        assert until_cut_off(slow, b" ") == b""  # a byte now and then does not help


def test_a_request_that_is_too_long_is_cut_off(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("journeyman.plugin.server._BODY_LIMIT", 100_000)
    assert not line.send(b"1 opening hermes 1000\n" + b"x" * 2_000_000).startswith(b"ok")
