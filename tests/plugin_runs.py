"""Runs of opencode and Hermes by Journeyman, for tests: the real programs in a home of their own,
against a scripted model server.
"""

import json
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

from msgspec import Struct
from tests.clients import ClientHome, Imported, client_program
from tests.hosts import tokens_of
from tests.opencode_host import OFFLINE, model_config
from tests.program import Command

from journeyman.hosts.host import HostPage, Plug
from journeyman.hosts.opencode import OpenCode
from journeyman.hosts.process import HostRunner
from journeyman.hosts.runner import RunCall, RunRequest, RunResult, RunStep


class Ran(Struct, frozen=True, kw_only=True):
    """A run that has ended: its result and the steps that were reported."""

    result: RunResult
    steps: list[RunStep]

    @property
    def calls(self) -> list[RunCall]:
        return [step for step in self.steps if isinstance(step, RunCall)]


class RunHome(ClientHome):
    """A home with a host that has a model, and Journeyman that runs it."""

    page: HostPage
    log: str

    def __init__(self, folder: Path, program: Path, **environ: str) -> None:
        super().__init__(folder)
        self.environ = {
            "HOME": str(folder),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **environ,
        }

    def ask(
        self,
        prompt: str,
        *,
        plug: Plug | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        nested: dict[str, str] | None = None,
        **fields: Any,
    ) -> Ran:
        """Do a run in the work folder."""
        steps: list[RunStep] = []
        runner = HostRunner(self.page, plug=plug, environ=self.environ | (nested or {}))
        request = RunRequest(prompt=prompt, folder=self.work, **fields)
        result = runner.run(request, on_step=steps.append, cancelled=cancelled)
        return Ran(result=result, steps=steps)

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Select from the host's database."""
        with closing(connect(self.folder / self.log)) as connection:
            return connection.execute(statement, values).fetchall()

    def stored(self, session: str) -> Any:
        """Import the log of a session, and return the session as `sessions list` shows it."""
        log = self.page.find_log(session, self.environ)
        assert log == self.folder / self.log
        listed = Imported(Command(self.folder), log).sessions
        return next(one for one in listed if one["session"]["id"] == session)

    def verdicts(self, session: str) -> list[str]:
        """The verdicts on the calls of an imported session."""
        shown = Command(self.folder).json("sessions", "show", session)
        return [one["status"] for one in shown["verdicts"]]


class OpencodeRuns(RunHome):
    page = OpenCode()
    log = ".local/share/opencode/opencode.db"

    def __init__(self, folder: Path, base_url: str, **settings: Any) -> None:
        super().__init__(folder, client_program("opencode"), **OFFLINE)
        self.write(".config/opencode/opencode.json", {**model_config(base_url), **settings})

    def record(self, session: str) -> list[Any]:
        """Everything that opencode keeps of a session."""
        columns = {"session": "id", "message": "session_id", "part": "session_id"}
        return [
            self.rows(f"SELECT * FROM {table} WHERE {column} = ?", session)
            for table, column in columns.items()
        ]


def tokens_in(ran: Ran) -> tuple[int, ...]:
    """The tokens of a run, as `tokens_of` returns those of a stored session."""
    return tokens_of({"tokens": {name: getattr(ran.result.tokens, name) for name in _KINDS}})


_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def prefix_share(original: Any, other: Any) -> float:
    """The share of a request that another one begins with, byte for byte, in the order in which
    providers cache: tools, then messages.
    """
    first, second = (json.dumps([body["tools"], body["messages"]]) for body in (original, other))
    first = first.removesuffix("]]")
    pairs = zip(first, second, strict=False)
    same = next((at for at, (one, two) in enumerate(pairs) if one != two), len(first))
    return same / len(first)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Do several things at the same time; return what each returned."""
    results: list[Any] = [None] * len(works)

    def do(number: int) -> None:
        results[number] = works[number]()

    threads = [threading.Thread(target=do, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
