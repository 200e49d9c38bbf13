"""The real opencode with Journeyman's plugin, for tests: a home with experience of the work folder,
a resident process, a confirmation service that is decided by its HTTP API, and opencode against a
scripted model server.
"""

import json
import os
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.clients import ClientHome, client_program
from tests.confirm_server import bearer, plain_client, until
from tests.program import Command, Process

import journeyman.hosts
from journeyman import Journeyman
from journeyman.hosts import client
from journeyman.hosts.installation.record import Record, write_record
from journeyman.testing import ScriptedServer, calls
from journeyman.testing.model_server import ServedRequest

PLUGIN = Path(journeyman.hosts.__file__).with_name("opencode_plugin.js")
OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
TASK = "Fix the typo in the parser and run the tests"
_POLICY = 'requester_limit = 100000\n[[rules]]\naction = "*"\ntier = "ask"\nedits = true\n'
_PACKAGES = {"openai": "@ai-sdk/openai-compatible", "anthropic": "@ai-sdk/anthropic"}

Message = dict[str, Any]


def shell(line: str) -> tuple[str, dict[str, Any]]:
    """A call of opencode's shell."""
    return "bash", {"command": line, "description": "a command"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _recorded_session(number: int, folder: Path) -> list[Message]:
    """A session of Claude Code with a mistake and its remedy."""

    def ran(id_: str, tool: str, result: str, **arguments: str) -> Iterator[Message]:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": id_, "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": id_, "content": result}

    return [
        {"role": "user", "content": TASK},
        *ran("a", "Read", "1\tdef parse(): pass", file_path=f"{folder}/src/parser.py"),
        *ran("b", "Bash", "exit code 127: pytst: command not found", command="pytst -q"),
        *ran("c", "Bash", f"{12 + number} passed in 0.3s", command="mise run test 2>&1 | tail -5"),
        {"role": "assistant", "content": "Fixed."},
    ]


class OpencodeHost:
    """opencode and Journeyman in one home. `settings` are lines for sections of config.toml."""

    def __init__(
        self,
        folder: Path,
        model: ScriptedServer,
        *,
        api: str = "openai",
        start: str = "never",
        settings: Mapping[str, str] | None = None,
        **limits_ms: int,
    ) -> None:
        self.model = model
        self.home = ClientHome(folder)
        self.command = Command(folder)
        self.journeyman_home = folder / ".journeyman"
        self.port = _free_port()
        self._configure({"hosts": f'start = "{start}"\nlearn = false', **(settings or {})})
        with self.open_journeyman() as opened:
            for number in range(4):
                opened.record(
                    _recorded_session(number, self.home.work),
                    source="claude_code",
                    session_id=f"earlier{number}",
                    cwd=str(self.home.work),
                )
            opened.learn()
            token = opened.confirmations.add_agent("opencode", by="test")[1]
            self.key = opened.confirmations.add_approver("ann", by="test")[1]
        write_record(self.journeyman_home, Record(host="opencode", token=token, agent="opencode"))
        self.install(**limits_ms)
        self.home.write(".config/opencode/opencode.json", _config(model, api))

    def _configure(self, sections: Mapping[str, str]) -> None:
        policy = self.home.write(".journeyman/policy.toml", _POLICY)
        confirm = f'port = {self.port}\npage_port = {_free_port()}\npolicy = "{policy}"'
        texts = [f"[{name}]\n{lines}\n" for name, lines in {"confirm": confirm, **sections}.items()]
        self.home.write(".journeyman/config.toml", "\n".join(texts))

    def open_journeyman(self) -> Journeyman:
        return Journeyman(home=self.journeyman_home, environ={"HOME": str(self.home.folder)})

    @property
    def socket(self) -> str:
        return client.socket_path(str(self.journeyman_home))

    def install(self, *, python: str = sys.executable, **limits_ms: int) -> None:
        """Write the plugin as the installer does."""
        constants = {
            "home": str(self.journeyman_home),
            "socket": self.socket,
            "python": python,
            "client": client.__file__,
            "limits_ms": limits_ms,
        }
        text = PLUGIN.read_text().replace("__JOURNEYMAN__", json.dumps(constants), 1)
        self.home.write(".config/opencode/plugin/journeyman.js", text)

    @contextmanager
    def serving(self) -> Iterator[Process]:
        """Run the resident process, with confirmations and without jobs."""
        process = self.command.start("serve", "--no-jobs", "--no-page")
        try:
            until(lambda: "Serving." in process.printed or not process.running, within_s=60)
            assert "  confirmations" in process.printed, process.printed
            yield process
        finally:
            if process.running:
                process.signal(signal.SIGTERM)
            process.wait()

    def status(self) -> dict[str, Any]:
        answer = client.request(str(self.journeyman_home), "status", "opencode", b"", timeout_s=10)
        found: dict[str, Any] = json.loads(answer)
        return found

    def run(self, *arguments: str, code: int | None = 0, **environ: str) -> str:
        """Run `opencode run`."""
        program = client_program("opencode")
        return self.home.run(program, "run", *arguments, code=code, **OFFLINE, **environ)

    def start(self, *arguments: str) -> Process:
        """Start opencode without waiting for it."""
        environ = self.command.environ | OFFLINE | {"TERM": "dumb"}
        program = [str(client_program("opencode")), *arguments]
        return Process(program, environ, self.home.work)

    def turns(self, since: int = 0) -> list[ServedRequest]:
        """The requests for turns of the agent: those with tools."""
        return [one for one in self.model.requests[since:] if one.body.get("tools")]

    # What opencode and Journeyman have recorded

    @property
    def database(self) -> Path:
        return self.home.folder / ".local/share/opencode/opencode.db"

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(statement).fetchall()

    def parts(self, kind: str) -> list[dict[str, Any]]:
        """The parts of one kind in opencode's database, in order."""
        found = [json.loads(data) for (data,) in self.rows("SELECT data FROM part ORDER BY id")]
        return [part for part in found if part["type"] == kind]

    def tool_states(self) -> list[dict[str, Any]]:
        return [part["state"] for part in self.parts("tool")]

    def session_ids(self) -> list[str]:
        """opencode's sessions, oldest first."""
        return [id_ for (id_,) in self.rows("SELECT id FROM session ORDER BY time_created")]

    def stored(self, session: str, within_s: float = 10.0) -> dict[str, Any]:
        """A session as Journeyman has it, as soon as it has it."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            listed = self.command.json("sessions", "list", "--source", "opencode", code=None)
            found[:] = [one for one in listed if one["session"]["id"] == session]
            return bool(found)

        until(is_there, within_s)
        return found[0]

    # Confirmations, by the HTTP API

    def pending(self, within_s: float = 30.0) -> dict[str, Any]:
        """The confirmation that waits for a decision."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found[:] = self._send("GET", "/confirm?status=pending")["confirmations"]
            return bool(found)

        until(is_there, within_s)
        return found[0]

    def decide(self, card: Mapping[str, Any], verb: str, **fields: Any) -> None:
        """Approve or deny a confirmation with the approver's key."""
        self._send("POST", f"/confirm/{card['id']}/{verb}", {"digest": card["digest"], **fields})

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        with plain_client(base_url=f"http://127.0.0.1:{self.port}") as http:
            answer = http.request(method, path, headers=bearer(self.key), json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()


def _config(model: ScriptedServer, api: str) -> dict[str, Any]:
    limit = {"context": 128_000, "output": 8_192}
    provider = {
        "npm": _PACKAGES[api],
        "name": "Scripted",
        "options": {"baseURL": model.base_url, "apiKey": "none"},
        "models": {"m1": {"name": "m1", "tool_call": True, "limit": limit}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
    }
