"""The operations for hosts: what each answers, and what happens with requests that are wrong."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.host_service import TASK, Desk, Experience, conversation, opened
from tests.waiting import LONGEST_S, deadline, until

from journeyman.plugin import client
from journeyman.plugin.client import Unanswered, request, socket_path
from journeyman.plugin.imports import ImportSpool, ImportWorker, Reported
from journeyman.plugin.installation.record import Record, write_record
from journeyman.plugin.server import HookServer
from journeyman.plugin.service import OPERATIONS, Exchange
from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.records.host import HOSTS

NOTHING = (sys.executable, "-c", "")
"""In the place of this program: an import that does nothing."""


class TestRequests:
    def test_requests_that_cannot_be_read_are_refused(self, desk: Desk) -> None:
        bad = [
            ("nonsense", "hermes", b"{}"),
            ("", "hermes", b"{}"),
            ("opening", "somebody", b"{}"),
            ("opening", "", b"{}"),
            ("opening", "claude_code", b"{}"),
            ("opening", "hermes", b"not JSON"),
            ("opening", "hermes", b'{"session": 3}'),
            ("opening", "hermes", b'{"session": "s", "form": "other"}'),
            ("opening", "hermes", b'{"session": "s", "tools": [3]}'),
            ("opening", "hermes", b'["session"]'),
            ("opening", "hermes", b'{"session": "\xff"}'),
            ("opening", "hermes", b'{"session": "\\ud800"}'),
            ("opening", "hermes", b'{"session": ""}'),
            ("opening", "hermes", b'{"session": "s", "tools": ' + b"[" * 100_000),
            ("opening", "hermes", b""),
            ("hook", "codex", b'{"hook_event_name": "SessionStart"}'),
            ("hook", "codex", b'{"hook_event_name": "SessionStart", "session_id": ""}'),
            ("gate", "codex", b'{"session": "s"}'),
            ("tool", "codex", b'{"name": "other"}'),
            ("usage", "codex", b'{"session": "s", "input_tokens": "many"}'),
            ("status", "codex", b"[]"),
        ]
        misses = []
        for operation, host, body in bad:
            exchange = Exchange(host=host, ends=deadline())
            try:
                answer = desk.service.handle(operation, body, exchange)
                misses.append(f"{operation} {body[:60]!r}: {answer!r}")
            except WrongInput:
                pass
        assert not misses, "\n".join(misses)
        assert desk.events == []

    def test_every_operation_answers_every_host(self, desk: Desk) -> None:
        bodies: dict[str, dict[str, Any]] = {
            "hook": {"session_id": "s", "hook_event_name": "Notification"},
            "opening": {"session": "s"},
            "gate": {"session": "s", "tool": "Bash", "arguments": {"command": "ls"}},
            "import": {"session": "s", "path": "/nowhere/x.jsonl"},
            "tool": {"name": "warm_session", "arguments": {"action": "list"}},
            "failure": {"session": "s", "event": "opening", "reason": "it broke"},
            "status": {},
            "learned": {},
        }
        assert bodies.keys() | {"usage"} == set(OPERATIONS)
        for host in HOSTS:
            for operation, body in bodies.items():
                answer = desk.ask(operation, host, **body)
                assert answer is None if operation == "hook" else isinstance(answer, dict)
            assert (host, "s", "failure", "host") in desk.events


class TestOperations:
    def test_gate(self, desk: Desk) -> None:
        call = {"session": "s", "tool": "Bash", "cwd": desk.project}
        assert desk.ask("gate", "codex", **call, arguments={"command": "ls"}) == {
            "decision": "allow"
        }
        refused = desk.ask("gate", "codex", **call, arguments={"command": "rm -rf /"})
        assert refused["decision"] == "deny"
        assert desk.events == [("codex", "s", "gate", "deny")]  # what passes is no event
        detail = desk.journeyman.host_sessions.events()[0].detail
        assert detail.startswith("Bash: Blocked by Journeyman")

    def test_what_is_not_installed_is_not_served(self, desk: Desk) -> None:
        home = desk.journeyman.settings.home
        write_record(home, Record(host="codex", parts=("import",)))
        delete = {"session": "s", "tool": "Bash", "arguments": {"command": "rm -rf /"}}
        assert desk.open("s", "codex")["state"] == "cold"
        assert desk.ask("gate", "codex", **delete)["decision"] == "allow"
        assert desk.ask("gate", "hermes", **delete)["decision"] == "deny"
        # A record that cannot be read leaves the gate closed.
        (home / "hosts" / "codex.json").write_text("{")
        assert desk.ask("gate", "codex", **delete)["decision"] == "deny"

    def test_tool(self, desk: Desk) -> None:
        def ask(**arguments: Any) -> Any:
            text = desk.ask("tool", name="warm_session", arguments=arguments)["text"]
            return json.loads(text)

        assert ask(action="list")["success"] is True
        assert ask(action="unheard of")["success"] is False

    def test_usage_waits_for_its_session(self, experience: Experience, tmp_path: Path) -> None:
        tokens = {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 7}
        with opened(experience, tmp_path) as desk:
            for key in ("one", "one", "two"):
                answer = desk.ask("usage", session="later", key=key, model="m", **tokens)
                assert answer == {}
            desk.ask("usage", "codex", session="later", key="three", **tokens)
            desk.ask("usage", session="never", key="four", **tokens)
            sessions = desk.journeyman.sessions
            desk.journeyman.record(conversation(TASK, []), source="hermes", session_id="later")
            assert [one for one in sessions.usage("later") if one.task] == []
            spool = ImportSpool(tmp_path / "home", "", program=NOTHING)
            spool.add(Reported(path="/some/log"))
            ImportWorker(
                desk.journeyman, spool, quiet_s=0.0, learn_quiet_s=0.0, program=NOTHING
            ).run()
            stored = [one for one in sessions.usage("later") if one.task == "background_review"]
            assert sorted(one.key.rpartition("/")[2] for one in stored) == ["one", "two"]
            assert {(one.input_tokens, one.output_tokens) for one in stored} == {(100, 20)}
            assert [one.session for one in spool.read()] == ["never"]

    def test_a_session_that_is_there_gets_its_usage_at_once(self, desk: Desk) -> None:
        desk.journeyman.record(conversation(TASK, []), source="hermes", session_id="known")
        desk.ask("usage", session="known", input_tokens=5)
        assert [one.input_tokens for one in desk.journeyman.sessions.usage("known")] == [5]


class TestServer:
    """The same through the socket."""

    @pytest.fixture
    def served(self, desk: Desk, tmp_path: Path) -> Iterator[Desk]:
        with HookServer(desk.service, tmp_path / "home"):
            yield desk

    def send(self, desk: Desk, operation: str, body: Any) -> Any:
        home = str(desk.journeyman.settings.home)
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return json.loads(request(home, operation, "hermes", sent, timeout_s=LONGEST_S))

    def test_answers_and_errors(self, served: Desk) -> None:
        asked = {"session": "s1", "task": TASK, "cwd": served.project}
        first = self.send(served, "opening", asked)
        assert first["state"] == "warm"
        assert self.send(served, "opening", asked) == first
        with pytest.raises(Unanswered, match="cannot be read") as failure:
            self.send(served, "opening", b"{")
        assert failure.value.reached
        with pytest.raises(Unanswered, match="no operation"):
            self.send(served, "other", {})
        until(lambda: served.events == [("hermes", "s1", "opening", "warm")])

    def test_another_version_of_the_protocol_is_refused(self, served: Desk) -> None:
        for head in (b"2 status hermes 1000\n", b"1 status hermes\n", b"GET / HTTP/1.1\n", b""):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(socket_path(str(served.journeyman.settings.home)))
                connection.sendall(head + b"{}")
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1_000).startswith(b"error\n")

    def test_an_opening_that_takes_too_long_is_none(self, served: Desk) -> None:
        building = served.service.openings._building
        asked = {"session": "s1", "task": TASK, "cwd": served.project}
        with building, socket.socket(socket.AF_UNIX) as connection:
            connection.connect(socket_path(str(served.journeyman.settings.home)))
            connection.sendall(b"1 opening hermes 300\n" + json.dumps(asked).encode())
            connection.shutdown(socket.SHUT_WR)
            first = json.loads(connection.makefile("rb").read().removeprefix(b"ok\n"))
        assert (first["state"], first["reason"]) == ("cold", "it was not ready in time")
        assert self.send(served, "opening", asked) == first

    def test_who_hangs_up_before_the_answer_starts_cold(self, served: Desk) -> None:
        body = json.dumps({"session": "s1", "task": TASK, "cwd": served.project}).encode()
        with served.service.openings._building, socket.socket(socket.AF_UNIX) as connection:
            connection.connect(socket_path(str(served.journeyman.settings.home)))
            connection.sendall(b"1 opening hermes 10000\n" + body)
            connection.shutdown(socket.SHUT_WR)
        find = served.journeyman.host_sessions.find
        until(lambda: (found := find("hermes", "s1")) is not None and found.state == "cold")
        stored = find("hermes", "s1")
        assert stored is not None
        assert stored.reason == "it was not ready in time"

    def test_only_one_server_has_a_home(self, served: Desk, tmp_path: Path) -> None:
        home = tmp_path / "home"
        with pytest.raises(JourneymanError, match="already answers hooks"):
            HookServer(served.service, home)
        assert self.send(served, "status", {})["answered"] > 0

    def test_a_home_that_cannot_hold_a_socket_is_explained(
        self, desk: Desk, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(JourneymanError, match="Hooks cannot be answered"):
            HookServer(desk.service, tmp_path / "file")

    def test_a_stopped_server_leaves_nothing_and_can_be_replaced(
        self, desk: Desk, tmp_path: Path
    ) -> None:
        home = tmp_path / "home"
        with HookServer(desk.service, home) as first:
            pass
        assert not Path(first.path).exists()
        with HookServer(desk.service, home) as second:
            first.stop()  # a second time
            assert Path(second.path).exists()
            assert self.send(desk, "status", {})["answered"] > 0


def test_the_client_imports_little() -> None:
    """Every hook waits for what its client imports."""
    script = (
        "import sys\n"
        f"code = compile(open({client.__file__!r}).read(), 'client', 'exec')\n"
        "exec(code, {'__name__': 'client'})\n"
        "print(*(name for name in ('json', 'subprocess', 'journeyman', 'hashlib', 'ssl', 're',"
        " 'threading', 'site', 'pathlib', 'typing') if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
