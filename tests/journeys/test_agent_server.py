"""The agent with misbehaving servers: in every case the run ends in an orderly way, explains the
problem and keeps what was done.
"""

import json
import shutil
import socket
from contextlib import ExitStack
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import Struct
from tests.model_server import (
    Answer,
    Made,
    ModelServer,
    calls,
    event,
    fails,
    says,
    sends,
    streamed,
    waits,
)
from tests.program import Command, Process
from tests.tables import table

from journeyman import Journeyman
from journeyman.cli import command_line
from journeyman.outcomes.judge import judge
from journeyman.records import Call, Message, SessionOverview

_AT_ONCE = {"Retry_After": "0"}
KEY = "key-that-nobody-may-see"
TOO_LONG = fails(400, "This model's maximum context length is 10 tokens.")


def look(number: int = 0) -> tuple[str, dict[str, Any]]:
    return "terminal", {"command": f"echo {number} >> looked.txt; echo {number}"}


def looks_once() -> Answer:
    return calls(look(), ids=["first"])


def cut(delta: dict[str, Any]) -> Answer:
    return streamed(event({"role": "assistant", **delta}), done=False, is_cut=True)


def never_ends() -> Answer:
    """An endless stream of words."""
    word = f"data: {json.dumps(event({'content': 'word '}))}\n\n".encode()
    return Answer(
        headers={"Content-Type": "text/event-stream"}, pieces=(word,), lingers=True, drip=word
    )


class Case(Struct, frozen=True, kw_only=True):
    """A server, and the expected result of a run with it. `says` lists texts that the run
    prints.
    """

    script: tuple[Made, ...] = ()
    always: Made | None = None
    options: tuple[str, ...] = ()
    code: int = 1
    says: tuple[str, ...]
    ended: str
    verdicts: tuple[str, ...] = ()
    requests: int | None = None


def half_call(arguments: str) -> Answer:
    function = {"name": "terminal", "arguments": arguments}
    return cut({"tool_calls": [{"index": 0, "id": "half", "function": function}]})


HALF = half_call('{"command": "echo half >> looked.txt')
CASES = {
    "429_then_success": Case(
        script=(
            fails(429, "slow down", **_AT_ONCE),
            looks_once(),
            fails(429, "slow down", retry_after_ms="1"),
            fails(503, "busy", **_AT_ONCE),
            says("Done."),
        ),
        code=0,
        says=("Done.",),
        ended="agent_stop",
        verdicts=("ok",),
        requests=5,
    ),
    "500_at_every_attempt": Case(
        script=(looks_once(),),
        always=fails(500, "out of order", **_AT_ONCE),
        says=("Stopped (", "500", "out of order", "try again later"),
        ended="error",
        verdicts=("ok",),
        requests=6,
    ),
    "connection_cut": Case(
        script=(looks_once(), cut({"content": "Half an ans"}), HALF, says("Whole.")),
        code=0,
        says=("Whole.",),
        ended="agent_stop",
        verdicts=("ok",),
        requests=4,
    ),
    "duplicate_ids": Case(
        script=(
            calls(look(1), look(2), ids=["same", "same"]),
            calls(look(3), ids=["same"]),
            calls(look(4), look(5), ids=["", ""]),
            says("Done."),
        ),
        code=0,
        says=("Done.",),
        ended="agent_stop",
        verdicts=("ok",) * 5,
    ),
    "endless_answer": Case(
        script=(looks_once(),),
        always=never_ends(),
        options=("--seconds", "3"),
        says=("Stopped (", "limit of 3 seconds is reached"),
        ended="timeout",
        verdicts=("ok",),
        requests=2,
    ),
    "no_answer": Case(
        script=(looks_once(),),
        always=waits(),
        options=("--seconds", "3"),
        says=("Stopped (", "limit of 3 seconds is reached"),
        ended="timeout",
        verdicts=("ok",),
        requests=2,
    ),
    "401": Case(
        always=fails(401, "no such key"),
        says=("Stopped (", "401", "no such key", "Check model.api_key"),
        ended="error",
        requests=1,
    ),
    "too_long_later": Case(
        script=(looks_once(),),
        always=TOO_LONG,
        says=(
            "Stopped (",
            "larger window",
        ),
        ended="context_window_exceeded",
        verdicts=("ok",),
    ),
}

SLOW = {
    "html": Case(
        always=sends("<html><body>Welcome!</body></html>", kind="text/html"),
        says=("the response is not a chat reply", "often ends in /v1"),
        ended="error",
        requests=1,
    ),
    "connection_cut_each_time": Case(
        script=(looks_once(),),
        always=HALF,
        says=("the connection failed", "Check that the server is running"),
        ended="error",
        verdicts=("ok",),
        requests=4,
    ),
}
"""Servers that do not state when to retry: the program waits longer each time."""


class Run:
    """A run of the program with a server, in its own home."""

    def __init__(self, home: Path, tables: Path, address: str, *options: str) -> None:
        (home / "work").mkdir(parents=True)
        (home / ".journeyman").mkdir(mode=0o700)
        shutil.copyfile(tables, home / ".journeyman" / "journeyman.db")
        (home / "work" / "notes.txt").write_text("one\n")
        self.command = Command(home)
        self.address = address
        self._task = ("run", "Look around.", "--workspace", "work", "--warm", "off", *options)

    def do(self, code: int = 0) -> CompletedProcess[str]:
        """Run until it ends."""
        return self.command(*self._task, code=code, **self.environ)

    def start(self) -> Process:
        return self.command.start(*self._task, **self.environ)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "JOURNEYMAN_MODEL_NAME": "scripted",
            "JOURNEYMAN_MODEL_BASE_URL": self.address,
            "JOURNEYMAN_MODEL_API_KEY": KEY,
        }

    def check(
        self, done: CompletedProcess[str], case: Case, server: ModelServer | None = None
    ) -> None:
        """Check that the run ended as expected."""
        told = " ".join(done.stdout.split())
        for words in case.says:
            assert words in told
        assert KEY not in done.stdout + done.stderr
        last = self.sessions()[-1]
        assert last.session.end_reason == case.ended
        assert tuple(judge(call).status for call in self.calls()) == case.verdicts
        assert all(one.calls == one.answered for one in self.sessions())
        assert "half" not in self.looked()
        assert self.shown()
        if server is not None and case.requests is not None:
            assert len(server.chats) == case.requests

    def looked(self) -> list[str]:
        """The effects of the calls."""
        file = self.command.home / "work" / "looked.txt"
        return file.read_text().split() if file.exists() else []

    def sessions(self) -> list[SessionOverview]:
        with self._journeyman() as journeyman:
            found = journeyman.sessions.list()
        return sorted(found, key=lambda one: one.session.lineage is not None)

    def messages(self) -> list[Message]:
        with self._journeyman() as journeyman:
            ids = [one.session.id for one in self.sessions()]
            return [message for one in ids for message in journeyman.sessions.messages(one)]

    def calls(self) -> list[Call]:
        with self._journeyman() as journeyman:
            ids = [one.session.id for one in self.sessions()]
            return [call for one in ids for call in journeyman.sessions.calls(one)]

    def shown(self) -> str:
        """The session as shown to a person."""
        session = self.sessions()[-1].session.id
        arguments = ["--home", str(self._home), "sessions", "show", session]
        return CliRunner().invoke(command_line, arguments, catch_exceptions=False).output

    @property
    def _home(self) -> Path:
        return self.command.home / ".journeyman"

    def _journeyman(self) -> Journeyman:
        return Journeyman(home=self._home, environ={"HOME": str(self.command.home)})


@table("name", CASES)
def test_a_server_that_misbehaves(name: str, tables: Path, tmp_path: Path) -> None:
    case = CASES[name]
    with ModelServer(*case.script, always=case.always) as server:
        run = Run(tmp_path / name, tables, server.base_url, *case.options)
        run.check(run.do(case.code), case, server)


@pytest.mark.soak
def test_servers_that_never_give_a_valid_answer(tables: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    with ExitStack() as stack:
        alone = Run(tmp_path / "alone", tables, nowhere)
        refused = alone.start()
        runs = []
        for name, case in SLOW.items():
            server = stack.enter_context(ModelServer(*case.script, always=case.always))
            run = Run(tmp_path / name, tables, server.base_url)
            runs.append((run, run.start(), case, server))
        for run, process, case, server in runs:
            run.check(process.wait(code=case.code), case, server)
        says_so = ("the connection failed", "refused", "Check that the server", nowhere)
        case = Case(says=says_so, ended="error")
        alone.check(refused.wait(code=case.code), case)
