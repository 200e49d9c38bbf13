"""Journeyman inside real hosts, for tests: a home with experience of the project that the host
works in, the resident process, a person who decides, and the openings in what the model received.
"""

import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.clients import ClientHome
from tests.confirm_server import bearer, plain_client
from tests.host_service import FOUND, NOTES, conversation, write_file
from tests.program import Command, Process
from tests.waiting import LONGEST_S, until

from journeyman import Journeyman
from journeyman.models.model import Reply
from journeyman.plugin import client
from journeyman.plugin.installation.record import Record, write_record
from journeyman.testing import ScriptedServer
from journeyman.testing.wire_formats import Endpoint, Exchange

AGAIN = "Look again for notes/july.md: is the index of the notes complete now?"
"""The same task in other words."""

PUSH = "git push --force origin {0}; touch {0}.ran"
"""A command that needs an approval, and leaves a file if it ran."""

CONFIRM_S, GATE_S = 30, 6
"""How long a person has to decide, and how long the gate waits where no one can."""

_GONE = "/no/such/journeyman/plugin/client.py"
_CHECK = """#!/bin/sh
[ -e .index ] && echo "index ok" && exit 0
echo "error: the index of $1 is stale" >&2
exit 3
"""
_BUILD = """#!/bin/sh
wc -l < "$1" > .index && cat .index
"""
_OPENING = re.compile(r"\[Journeyman (\w{16}):\].*?\[end of \1\]", re.DOTALL)


class HostHome(ClientHome):
    """A person's home: a host with a repository to work in, and Journeyman."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.journeyman = folder / ".journeyman"
        self.command = Command(folder)
        for name, text in (("check-index", _CHECK), ("build-index", _BUILD)):
            script = self.work / name
            script.write_text(text)
            script.chmod(0o700)
        write_file(self.work / FOUND, "It rained.\n")

    def open(self) -> Journeyman:
        """Journeyman in this home. The caller closes it."""
        return Journeyman(home=self.journeyman, environ={"HOME": str(self.folder)})

    def write_experience(self, shell: str = "Bash") -> None:
        """Record and learn earlier sessions in the repository, which ran their commands with this
        tool.
        """
        with self.open() as journeyman:
            for number, (request, commands) in enumerate(NOTES):
                journeyman.record(
                    conversation(request, commands, shell),
                    source="claude_code",
                    session_id=f"earlier-{number}",
                    cwd=self.work,
                )
            journeyman.learn()

    def configure(self, **hosts: object) -> None:
        """Write the settings: free ports, and those of [hosts]."""
        lines = ["[confirm]", f"port = {free_port()}", f"page_port = {free_port()}"]
        lines += ["[hosts]", "learn = false"]
        values = {"confirm_timeout_s": CONFIRM_S, **hosts}
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        self.write(".journeyman/config.toml", "\n".join(lines) + "\n")
        self.write(".journeyman/confirm.toml", _POLICY)

    def use_small_model(self, name: str) -> None:
        """Give examples in place of facts to a model."""
        settings = self.journeyman / "config.toml"
        settings.write_text(f'{settings.read_text()}[opening]\nsmall_models = ["{name}"]\n')

    def authorize(self, host: str) -> str:
        """Give a host its confirmation token, and return the key of a person who may decide."""
        with self.open() as journeyman:
            token = journeyman.confirmations.add_agent(host, by="test")[1]
            write_record(self.journeyman, Record(host=host, token=token))
            return journeyman.confirmations.add_approver("ann", by="test")[1]

    def install(self, host: str) -> str:
        """Install Journeyman into Claude Code or Codex, and return the key of a person who may
        decide.
        """
        self.command("hosts", "install", host, "--yes")
        with self.open() as journeyman:
            return journeyman.confirmations.add_approver("ann", by="test")[1]

    def uninstall(self) -> None:
        """Take the package away from under the hooks that call it."""
        for path in (".claude/settings.json", ".codex/hooks.json"):
            if (self.folder / path).exists():
                self.change_hooks(path, re.escape(client.__file__), _GONE)

    def change_hooks(self, file: str, pattern: str, text: str) -> None:
        """Change the installed hooks: all that matches a pattern becomes a text."""
        path = self.folder / file
        changed, count = re.subn(pattern, text, path.read_text())
        assert count
        path.write_text(changed)

    @property
    def ran(self) -> set[str]:
        """The commands that ran, by the files that they left."""
        return {path.stem for path in self.work.glob("*.ran")}

    @property
    def failures(self) -> list[str]:
        """What hooks could not do, as they noted it."""
        path = self.journeyman / "hook-failures.log"
        return path.read_text().splitlines() if path.exists() else []

    def stored(self, session: str, is_complete: Callable[[Any], bool] = bool) -> Any:
        """Wait for a session in the store, and return it as `sessions list` shows it. Nobody
        imports it but the resident process.
        """

        def found() -> Any:
            for one in self.command.json("sessions", "list", "--limit", "1000"):
                if one["session"]["id"] == session and is_complete(one):
                    return one
            return None

        return until(found)


_POLICY = """
[[rules]]
action = "run_command"
tier = "ask"
edits = ["arguments"]
"""


class WatchedServer(ScriptedServer):
    """A scripted model server that does something before it replies: the client waits for the
    reply, so that it happens at a certain moment of the session.
    """

    def __init__(
        self,
        script: Mapping[str, Sequence[Reply]],
        before_reply: Callable[[int], None] = lambda _number: None,
    ) -> None:
        super().__init__(script)
        self._replies = 0
        self._before_reply = before_reply

    def answer(
        self, target: Endpoint, path: str, headers: dict[str, str], body: Mapping[str, Any]
    ) -> tuple[Reply, Exchange]:
        self._replies += 1
        self._before_reply(self._replies)
        return super().answer(target, path, headers, body)


class Resident:
    """A running `journeyman serve`, and the person who decides on its confirmations."""

    def __init__(self, home: HostHome, process: Process, key: str = "") -> None:
        self.home = home
        self.process = process
        self.key = key
        self.status = ask(home, "status", {})
        self._client = plain_client(base_url=self.status["parts"]["confirmations"])

    @property
    def url(self) -> str:
        """The address of the page for approvers."""
        url: str = self.status["parts"]["page"]
        return url

    def pending(self) -> dict[str, Any]:
        """Wait for the next call that is held, and return its confirmation."""
        path, headers = "/confirmations?status=pending", bearer(self.key)
        cards = until(lambda: self._client.get(path, headers=headers).json()["confirmations"])
        card: dict[str, Any] = cards[0]
        return card

    def card(self, card: Mapping[str, Any]) -> dict[str, Any]:
        """Return a confirmation as it is now."""
        answer = self._client.get(f"/confirm/{card['id']}", headers=bearer(self.key))
        found: dict[str, Any] = answer.json()
        return found

    def decide(self, card: Mapping[str, Any], choice: str, **fields: Any) -> None:
        """Approve or deny by the API."""
        if choice == "approve":
            fields["digest"] = card["digest"]
        answer = self._client.post(
            f"/confirm/{card['id']}/{choice}", headers=bearer(self.key), json=fields
        )
        assert answer.status_code == httpx2.codes.OK, answer.text

    def close(self) -> None:
        self._client.close()


@contextmanager
def serving(home: HostHome, key: str = "") -> Iterator[Resident]:
    """Run `journeyman serve` in a process of its own for the duration of the block."""
    process = home.command.start("serve", "--no-jobs")
    try:
        until(lambda: "Serving." in process.printed or not process.running)
        assert process.running, process.printed
        resident = Resident(home, process, key)
        try:
            yield resident
        finally:
            resident.close()
    finally:
        if process.running:
            process.signal(signal.SIGTERM)
        process.wait()


def ask(home: HostHome, operation: str, body: Any, host: str = "claude-code") -> Any:
    """Send one request to the resident process."""
    sent = json.dumps(body).encode()
    return json.loads(
        client.request(str(home.journeyman), operation, host, sent, timeout_s=LONGEST_S)
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def openings_in(body: Any) -> list[str]:
    """The openings in a request to the model, in order, each with its marks."""
    return [found[0] for text in _texts(body) for found in _OPENING.finditer(text)]


def count_in(body: Any, part: str) -> int:
    """How often a text occurs in a request to the model."""
    return sum(text.count(part) for text in _texts(body))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one)


def end_process(pid: int) -> None:
    """End a process that a hook started, and wait until it is gone."""
    os.kill(pid, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{pid}").exists() or "State:\tZ" in _state(pid))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "State:\tZ"


def tokens_of(listed: Any) -> tuple[int, ...]:
    """The tokens of a session in `sessions list`, as hosts record them: unknown is 0."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return tuple(listed["tokens"][name] or 0 for name in names)
