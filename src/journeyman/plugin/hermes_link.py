"""The link from Hermes' process to the resident process. Hermes loads this when it starts, so it
imports little, and what fails here is reported and never raised into a session.
"""

import json
import os
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from journeyman.plugin import client
from journeyman.plugin.client import Unanswered

HOST = "hermes"

_REPORT_S = 0.5
"""How long a report may hold up the end of a turn."""

_REMEMBERED = 500


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(OrderedDict[_Key, _Value]):
    """Keeps what was set last, without empty keys."""

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if not key:
            return
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > _REMEMBERED:
            self.popitem(last=False)


class PluginSettings(NamedTuple):
    """The settings of hosts that matter in Hermes' process."""

    gate_tools: tuple[str, ...] = ()
    subagents: bool = False
    start: str = "never"


def home_folder() -> str:
    """Return the home of Journeyman, without reading its settings."""
    named = os.environ.get("JOURNEYMAN_HOME") or "~/.journeyman"
    return os.path.abspath(os.path.expanduser(named))  # noqa: PTH100, PTH111 - imports nothing


class Link:
    """Asks and informs the resident process of one home; a child process where none runs. For a
    run the settings are given, and the process that started it serves every part.
    """

    def __init__(self, home: str, settings: PluginSettings | None = None) -> None:
        self.home = home
        self._settings, self._is_run = settings, settings is not None

    def serves(self, part: str) -> bool:
        """Whether a part (opening, gate or import) is wanted in Hermes, by the record of the
        installation. Without one, every part is.
        """
        if self._is_run:
            return True
        path = os.path.join(self.home, "hosts", f"{HOST}.json")  # noqa: PTH118
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                parts = json.load(file).get("parts")
        except (OSError, ValueError, AttributeError):
            return True
        return not isinstance(parts, list) or not parts or part in parts

    def settings(self) -> PluginSettings:
        """Return the settings of hosts, read at the first call. Problems with other settings do not
        matter here.
        """
        if self._settings is None:
            # Hermes starts faster without them.
            from pathlib import Path  # noqa: PLC0415

            from journeyman.configuration import read_configuration  # noqa: PLC0415

            found = read_configuration(os.environ, Path.home(), home=self.home)
            hosts = found.settings.hosts
            self._settings = PluginSettings(hosts.gate_tools, hosts.subagents, hosts.start)
        return self._settings

    def ask(self, operation: str, body: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """Return the answer to an operation. Raise Unanswered if there is none in time."""
        content = _encode(body)
        answer = client.request_or_run(self.home, operation, HOST, content, timeout_s=timeout_s)
        return _decoded(answer)

    def inform(self, operation: str, body: dict[str, Any]) -> None:
        """Report something without waiting for more than its receipt."""
        content = _encode(body)
        try:
            client.request(self.home, operation, HOST, content, timeout_s=_REPORT_S)
        except Unanswered as error:
            if error.reached:
                client.note_failure(self.home, HOST, operation, str(error))
            else:
                self._run_detached(operation, content)

    def fail(self, session: str, event: str, reason: str) -> None:
        """Report that something failed on this side."""
        body = {"session": session, "event": event, "reason": reason[:500]}
        try:
            client.request(self.home, "failure", HOST, _encode(body), timeout_s=_REPORT_S)
        except Unanswered:
            client.note_failure(self.home, HOST, event, reason)

    def hang_up(self, operation: str, body: dict[str, Any]) -> None:
        """Ask and leave: what the resident process does for this request, it gives up."""
        with suppress(Unanswered):
            client.request(self.home, operation, HOST, _encode(body), timeout_s=0.1)

    def start_resident(self) -> None:
        """Have the resident process started, if none runs and the settings allow it."""
        try:
            client.request(self.home, "status", HOST, b"{}", timeout_s=_REPORT_S)
        except Unanswered as error:
            if not error.reached and self.settings().start == "on-demand":
                self._run_detached("status", b"{}")

    def _run_detached(self, operation: str, content: bytes) -> None:
        """Start an operation in a process that outlives this one."""
        import subprocess  # noqa: PLC0415 - only without a resident process

        command = [*client.PROGRAM, "--home", self.home, "hook", operation, HOST]
        try:
            child = subprocess.Popen(  # noqa: S603 - this program
                command,
                env=client.child_environ(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            if child.stdin is not None:
                child.stdin.write(content)
                child.stdin.close()
        except OSError as error:
            client.note_failure(self.home, HOST, operation, f"{type(error).__name__}: {error}")
            return
        threading.Thread(target=child.wait, name="journeyman-child", daemon=True).start()


def _encode(body: dict[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, default=str).encode("utf-8")
    except (ValueError, RecursionError) as error:  # lone surrogates, circles
        raise Unanswered(f"the request cannot be written as JSON: {error}", reached=True) from error


def _decoded(answer: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(answer)
    except ValueError as error:
        raise Unanswered("the answer is not JSON", reached=True) from error
    if not isinstance(decoded, dict):
        raise Unanswered("the answer is not an object", reached=True)
    return decoded
