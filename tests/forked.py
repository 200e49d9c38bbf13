"""The program forked from a process that has loaded its modules already (`tests.loaded`). Loading
takes longer than most runs do; a fork changes nothing else: each run is a process of its own, with
its own home and its own files for what it says.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from tests.asking import ask
from tests.conftest import LONGEST_S, Command

_ROOT = Path(__file__).parent.parent
_SERVING = "import tests.loaded; tests.loaded.main()"


class Run:
    """A run that was started. Its process id is its own until it has been waited for."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile()
        self.process = int(next(self._answers))

    def wait(self, within_s: float = LONGEST_S) -> int:
        """Wait for it to end, or end it when that takes too long; its exit code, negative for a
        signal.
        """
        giving_up = Timer(within_s, os.kill, (self.process, signal.SIGKILL))
        giving_up.start()
        self._connection.sendall(b".")
        code = int(next(self._answers))
        giving_up.cancel()
        self.close()
        return code

    def close(self) -> None:
        """Nobody waits for it any more: if it is not over, it is ended."""
        self._answers.close()
        self._connection.close()


class Loaded:
    """A process with the program's modules in memory, from which runs are forked."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="journeyman-loaded-")
        self.programs = Path(self._folder.name) / "bin"
        """A folder for PATH with a `journeyman` whose runs are forked too."""
        self._address = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(self._address)
            door.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVING, str(door.fileno())],
                stdin=subprocess.PIPE,
                cwd=_ROOT,
                pass_fds=[door.fileno()],
            )
        self.programs.mkdir()
        program = self.programs / "journeyman"
        asking = f"'{sys.executable}' -I -S '{_ROOT / 'tests' / 'asking.py'}' '{self._address}'"
        program.write_text(f'#!/bin/sh\nexec {asking} "$@"\n')
        program.chmod(0o700)

    def fork(self, files: tuple[int, int, int], **asked: Any) -> Run:
        """Start a run with these files as its input, output and errors."""
        return Run(ask(self._address, files, **asked))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=LONGEST_S)  # it ends what tests that failed left
        self._folder.cleanup()


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
        return self._begin(typed, environ, arguments=[str(one) for one in arguments])

    def end(
        self, *, code: int | None = None, within_s: float = LONGEST_S
    ) -> subprocess.CompletedProcess[str]:
        """Wait until the run is over, or end it when that takes too long; what it said."""
        ended = self._run.wait(within_s)
        output, errors = (self._files[name].read_text() for name in ("output", "errors"))
        assert "Traceback" not in errors, errors
        assert code in (None, ended), f"ended with {ended}\n{output}\n{errors}"
        return subprocess.CompletedProcess([], ended, output, errors)

    def python(self, block: str) -> None:
        """Run a block of Python that uses the library; it must end without an error."""
        self._begin("", {}, block=block)
        self.end(code=0)

    def __call__(
        self, *arguments: object, code: int = 0, typed: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        if "PYTHONPATH" in environ:  # which a process reads when it starts
            return super().__call__(*arguments, code=code, typed=typed, **environ)
        self.begin(*arguments, typed=typed, **environ)
        return self.end(code=code)

    def _begin(self, typed: str, environ: dict[str, str], **asked: object) -> int:
        self._runs += 1
        self._files = {
            name: self._place / f"run{self._runs}.{name}" for name in ("input", "output", "errors")
        }
        self._files["input"].write_text(typed)
        with (
            self._files["input"].open() as read,
            self._files["output"].open("w") as told,
            self._files["errors"].open("w") as wrong,
        ):
            self._run = self._loaded.fork(
                (read.fileno(), told.fileno(), wrong.fileno()),
                environ=self.environ | environ,
                folder=str(self.home),
                **asked,
            )
        return self._run.process
