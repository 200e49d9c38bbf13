"""The program forked from a process that has loaded its modules already. Loading takes longer than
most runs do; a fork changes nothing else: each run is a process of its own, with its own home and
its own files for what it says.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from tests.conftest import Command

LONGEST_S = 120.0

_LOADED = """
import gc, json, os, sys, time
import alembic.command, genai_prices
import journeyman.agent_making, journeyman.models.remote, journeyman.templates.learning
import journeyman.cli.confirming, journeyman.confirm.client, journeyman.confirm.running
from journeyman.cli import main, opening, profiling, reviewing, running, sessions, usage

gc.freeze()  # so that the forks do not copy what they never change

while line := sys.stdin.readline():
    asked = json.loads(line)
    if isinstance(asked, int):
        print(os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1]), flush=True)
    elif child := os.fork():
        print(child, flush=True)
    else:
        for number, name in enumerate(("input", "output", "errors")):
            os.dup2(os.open(asked[name], os.O_RDWR | os.O_CREAT, 0o600), number)
        os.environ.clear()
        os.environ.update(asked["environ"])
        time.tzset()
        os.chdir(asked["home"])
        sys.argv = ["journeyman", *asked["arguments"]]
        main()
"""


class Loaded:
    """A process with the program's modules in memory, from which runs are forked."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running: set[int] = set()

    def fork(self, **asked: Any) -> int:
        """Start a run; its process id, which is its own until it has been waited for."""
        started = self._answer(asked)
        self._running.add(started)
        return started

    def wait(self, process: int) -> int:
        """Wait for a run to end; its exit code, negative for a signal."""
        ended = self._answer(process)
        self._running.remove(process)
        return ended

    def _answer(self, asked: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._running:  # of tests that failed
            os.kill(process, signal.SIGKILL)
        self._process.communicate(timeout=LONGEST_S)


class Forked(Command):
    """The program in a home of its own, forked from one that is loaded."""

    def __init__(self, home: Path, loaded: Loaded) -> None:
        super().__init__(home)
        self._loaded = loaded
        self._place = Path(tempfile.mkdtemp(prefix="journeyman-run-"))
        weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        self._runs = 0

    def begin(self, *arguments: object, typed: str = "", **environ: str) -> int:
        """Start a run and do not wait for it; its process id. `end` must follow."""
        self._runs += 1
        self._files = {
            name: self._place / f"run{self._runs}.{name}" for name in ("input", "output", "errors")
        }
        self._files["input"].write_text(typed)
        self._process = self._loaded.fork(
            arguments=[str(one) for one in arguments],
            environ=self.environ | environ,
            home=str(self.home),
            **{name: str(path) for name, path in self._files.items()},
        )
        return self._process

    def end(
        self, *, code: int | None = None, within_s: float = LONGEST_S
    ) -> subprocess.CompletedProcess[str]:
        """Wait until the run is over, or end it when that takes too long; what it said."""
        giving_up = Timer(within_s, os.kill, (self._process, signal.SIGKILL))
        giving_up.start()
        ended = self._loaded.wait(self._process)
        giving_up.cancel()
        output, errors = (self._files[name].read_text() for name in ("output", "errors"))
        assert "Traceback" not in errors, errors
        assert code in (None, ended), f"ended with {ended}\n{output}\n{errors}"
        return subprocess.CompletedProcess([], ended, output, errors)

    def __call__(
        self, *arguments: object, code: int = 0, typed: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        if "PYTHONPATH" in environ:  # which a process reads when it starts
            return super().__call__(*arguments, code=code, typed=typed, **environ)
        self.begin(*arguments, typed=typed, **environ)
        return self.end(code=code)
