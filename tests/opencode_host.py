"""The real opencode with Journeyman's plugin, for tests, against a scripted model server."""

import json
import signal
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.clients import client_program
from tests.confirm_server import plain_client
from tests.hosts import HostHome, free_port
from tests.program import Process
from tests.waiting import LONGEST_S, until

import journeyman.plugin
from journeyman.plugin import client
from journeyman.testing import ScriptedServer
from journeyman.testing.model_server import ServedRequest

PLUGIN = Path(journeyman.plugin.__file__).with_name("opencode_plugin.js")
OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "TERM": "dumb",
}
_PACKAGES = {"openai": "@ai-sdk/openai-compatible", "anthropic": "@ai-sdk/anthropic"}


def shell(line: str) -> tuple[str, dict[str, Any]]:
    """A call of opencode's shell."""
    return "bash", {"command": line, "description": "a command"}


class OpencodeHome(HostHome):
    """A home with opencode, the plugin and experience of the work folder. `key` is an approver's;
    `hosts` are settings, and `limits_ms` changes the plugin's deadlines. A `small` model gets
    examples in place of facts.
    """

    def __init__(
        self,
        folder: Path,
        model: ScriptedServer,
        *,
        api: str = "openai",
        small: bool = False,
        limits_ms: Mapping[str, int] | None = None,
        **hosts: object,
    ) -> None:
        super().__init__(folder)
        self.model = model
        self.configure(**{"start": "never", **hosts})
        if small:
            self.use_small_model("m1")
        self.write_experience("bash")
        self.key = self.authorize("opencode")
        self._limits_ms = limits_ms or {}
        self.install(limits_ms=self._limits_ms)
        self.write(".config/opencode/opencode.json", model_config(model.base_url, api))

    def install(self, **changes: Any) -> None:
        """Write the plugin as the installer does."""
        constants = {
            "home": str(self.journeyman),
            "socket": client.socket_path(str(self.journeyman)),
            "python": sys.executable,
            "file": str(self.folder / ".config/opencode/plugin/journeyman.js"),
        }
        text = PLUGIN.read_text().replace("__JOURNEYMAN__", json.dumps(constants | changes), 1)
        self.write(".config/opencode/plugin/journeyman.js", text)

    def uninstall(self) -> None:
        self.install(python=str(Path(sys.executable).resolve()), limits_ms=self._limits_ms)

    def opencode(self, *arguments: str) -> str:
        """Run `opencode run`, and return what it printed."""
        return self.run(client_program("opencode"), "run", *arguments, **OFFLINE)

    def api(self) -> AbstractContextManager["OpencodeApi"]:
        """Run `opencode serve`, which opencode's terminal interface talks to as well."""
        return serve(self.command.environ | OFFLINE, self.work)

    @property
    def turns(self) -> list[ServedRequest]:
        """The requests for turns of an agent: those with tools."""
        return [one for one in self.model.requests if one.body.get("tools")]

    # What opencode has recorded

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        database = self.folder / ".local/share/opencode/opencode.db"
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute(statement).fetchall()

    def tool_states(self) -> list[dict[str, Any]]:
        """What became of the calls, in order."""
        parts = [json.loads(data) for (data,) in self.rows("SELECT data FROM part ORDER BY id")]
        return [part["state"] for part in parts if part["type"] == "tool"]

    def session_ids(self) -> list[str]:
        """The sessions, oldest first."""
        return [id_ for (id_,) in self.rows("SELECT id FROM session ORDER BY time_created")]


class OpencodeApi:
    """opencode's HTTP interface."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def post(self, path: str, **body: Any) -> Any:
        answer = self._http.post(path, json=body)
        assert answer.status_code < httpx2.codes.BAD_REQUEST, answer.text
        return answer.json() if answer.content else None

    def create(self) -> str:
        return str(self.post("/session")["id"])

    def fork(self, session: str) -> str:
        return str(self.post(f"/session/{session}/fork")["id"])

    def prompt(self, session: str, text: str, *, waits: bool = True) -> None:
        """Send a prompt; wait for the end of the turn unless told otherwise."""
        way = "message" if waits else "prompt_async"
        self.post(f"/session/{session}/{way}", parts=[{"type": "text", "text": text}])

    def summarise(self, session: str) -> None:
        self.post(f"/session/{session}/summarize", providerID="scripted", modelID="m1")

    def abort(self, session: str) -> None:
        self.post(f"/session/{session}/abort")


@contextmanager
def serve(environ: Mapping[str, str], folder: Path) -> Iterator[OpencodeApi]:
    """Run `opencode serve` in a folder for the duration of the block."""
    port = free_port()
    program = [str(client_program("opencode")), "serve", "--port", str(port)]
    process = Process(program, environ, folder)
    try:
        with plain_client(base_url=f"http://127.0.0.1:{port}", timeout=LONGEST_S) as http:
            until(lambda: "listening" in process.printed or not process.running)
            assert process.running, process.printed
            yield OpencodeApi(http)
    finally:
        process.signal(signal.SIGTERM)
        process.wait()


def model_config(base_url: str, api: str = "openai") -> dict[str, Any]:
    """Settings of opencode with one model."""
    limit = {"context": 128_000, "output": 8_192}
    provider = {
        "npm": _PACKAGES[api],
        "name": "Scripted",
        "options": {"baseURL": base_url, "apiKey": "none"},
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
