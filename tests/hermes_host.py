"""The real Hermes Agent with Journeyman's plugin in its environment, for tests, against a scripted
model server.
"""

import fcntl
import hashlib
import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.clients import CLIENTS, client_program
from tests.hosts import HostHome
from tests.waiting import until

import journeyman
from journeyman.testing import ScriptedServer
from journeyman.testing.model_server import ServedRequest

PROJECT = Path(journeyman.__file__).parents[2]
LEARNED = "build-index"
"""What only an opening knows."""

_ANTHROPIC = "anthropic==0.87.0"
"""What Hermes' extra for Anthropic pins."""

_CONFIG = """
model:
  default: scripted-1
  provider: custom:standin
  context_length: 64000
custom_providers:
- {{name: standin, base_url: "{url}", api_key: none, api_mode: {mode}, model: scripted-1}}
compression: {{threshold: 0.75, protect_first_n: 1, protect_last_n: 4, in_place: {in_place}}}
approvals: {{mode: "off", destructive_slash_confirm: false}}
security: {{allow_lazy_installs: false, tirith_enabled: false}}
{more}
plugins: {{enabled: [{plugins}]}}
"""
RUN_CONFIG = """
model: {default: scripted/one, provider: openrouter, context_length: 64000}
agent: {api_max_retries: 1}
approvals: {mode: "off", timeout: 1}
security: {allow_lazy_installs: false, tirith_enabled: false}
"""
"""Settings for a server that only variables name."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]")


@cache
def hermes_program() -> Path:
    """Return the program of a Hermes with this Journeyman in its environment. It is made where it
    is not in the cache; the test is skipped if it cannot be.
    """
    hermes = CLIENTS["hermes"]
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache_folder / "journeyman-test-clients" / f"hermes-{hermes.version}-journeyman"
    folder.mkdir(parents=True, exist_ok=True)
    pip = [str(folder / "bin/pip"), "--disable-pip-version-check", "install", "-q"]
    definition = (PROJECT / "pyproject.toml").read_bytes() + str(PROJECT).encode()
    steps = {
        "hermes": [
            [sys.executable, "-m", "venv", str(folder)],
            [*pip, f"{hermes.package}=={hermes.version}", _ANTHROPIC],
        ],
        hashlib.sha256(definition).hexdigest()[:16]: [[*pip, "-e", f"{PROJECT}[confirm]"]],
    }
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, commands in steps.items():
            done = folder / f"complete-{name}"
            for command in commands if not done.exists() else ():
                ran = subprocess.run(command, capture_output=True, text=True, check=False)
                if ran.returncode:
                    pytest.skip(f"{hermes.package} cannot be installed: {ran.stderr[-500:]}")
            done.touch()
    return folder / "bin" / "hermes"


def run_environ(base_url: str) -> dict[str, str]:
    """The variables by which Hermes finds a scripted model, with `RUN_CONFIG`."""
    return {"OPENROUTER_API_KEY": "none", "OPENROUTER_BASE_URL": base_url}


def shell(line: str) -> tuple[str, dict[str, Any]]:
    """A call of Hermes' shell."""
    return "terminal", {"command": line}


class HermesHome(HostHome):
    """A home with Hermes, the plugin and experience of the work folder. `key` is an approver's;
    `hosts` are settings. A `small` model gets examples in place of facts.
    """

    def __init__(
        self,
        folder: Path,
        model: ScriptedServer,
        *,
        mode: str = "chat_completions",
        in_place: bool = True,
        plugins: str = "journeyman",
        small: bool = False,
        more: str = "",
        **hosts: object,
    ) -> None:
        super().__init__(folder)
        self.model = model
        self.program = hermes_program()
        self.configure(**{"start": "never", **hosts})
        if small:
            self.use_small_model("scripted-1")
        self.write_experience("terminal")
        self.key = self.authorize("hermes")
        url = model.url if mode == "anthropic_messages" else model.base_url
        config = _CONFIG.format(
            url=url, mode=mode, in_place=str(in_place).lower(), plugins=plugins, more=more
        )
        self.write(".hermes/config.yaml", config)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "HERMES_HOME": str(self.folder / ".hermes"),
            "JOURNEYMAN_HOME": str(self.journeyman),
        }

    def hermes(self, *arguments: str, code: int | None = 0) -> str:
        """Run Hermes, and return what it printed."""
        return self.run(self.program, *arguments, code=code, **self.environ)

    def uninstall(self) -> None:
        self.program = client_program("hermes")

    def ask(self, prompt: str, *arguments: str) -> str:
        """Have Hermes answer one prompt."""
        return self.hermes("chat", "-Q", *arguments, "-q", prompt)

    def type(
        self,
        lines: Sequence[str],
        is_answered: Callable[[], bool],
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> str:
        """Type lines into Hermes' terminal interface, each when it has been quiet for a while, and
        return what was on the screen. `/quit` follows when `is_answered`; Ctrl-C is pressed once
        when `is_interrupted`.
        """
        environ = {
            "HOME": str(self.folder),
            "PATH": f"{self.program.parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            **self.environ,
        }
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.work)
            os.execvpe(self.program, [str(self.program), "chat", "--cli"], environ)
        screen, waiting, quiet, was_interrupted = "", [*lines], 0, False

        def is_over() -> bool:
            nonlocal screen, quiet, was_interrupted
            if not was_interrupted and is_interrupted():
                os.write(terminal, b"\x03")
                was_interrupted = True
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    received = os.read(terminal, 65_536)
                except OSError:
                    return True
                screen += received.decode("utf-8", "replace")
                os.write(terminal, b"\x1b[1;1R" * received.count(b"\x1b[6n"))
                quiet = 0
            elif (quiet := quiet + 1) > 12 and (waiting or is_answered()):
                line = waiting.pop(0) if waiting else "/quit"
                os.write(terminal, line.encode())
                time.sleep(0.2)
                os.write(terminal, b"\r")
                quiet = 0
            return False

        try:
            until(is_over)
        except AssertionError:
            os.kill(process, signal.SIGTERM)
            raise
        finally:
            os.waitpid(process, 0)
            os.close(terminal)
        return _ESCAPES.sub("", screen)

    def rows(self, statement: str) -> list[Any]:
        """Select from Hermes' database."""
        with closing(sqlite3.connect(self.folder / ".hermes/state.db")) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(statement).fetchall()

    def sessions(self) -> list[str]:
        """The ids of Hermes' sessions without subagents, the oldest first."""
        statement = "SELECT id FROM sessions WHERE source <> 'subagent' ORDER BY rowid"
        return [row["id"] for row in self.rows(statement)]

    def results(self) -> list[Any]:
        """The results of the tools, in order, without copies."""
        rows = self.rows(
            "SELECT tool_call_id, content FROM messages WHERE role = 'tool' ORDER BY id"
        )
        contents = {row["tool_call_id"]: row["content"] for row in reversed(rows)}
        return [json.JSONDecoder().raw_decode(contents[id_])[0] for id_ in reversed(contents)]

    @property
    def turns(self) -> list[ServedRequest]:
        """The requests of the main loop: with tools."""
        return [one for one in self.model.requests if one.body.get("tools")]
