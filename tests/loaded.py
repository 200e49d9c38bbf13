"""A process with the program's modules in memory, which forks a run for everyone who asks (see
`tests.asking`). It loads first and answers then; whoever asked before has to wait.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import journeyman
from journeyman import cli
from journeyman.embeddings.embedder import Embedder

_LATE = ("alembic.command", "genai_prices.data", "httpcore2", "rich._emoji_codes")
"""What other libraries load only when it is needed."""


def load() -> None:
    """Load what a run may need."""
    for found in walk_packages(journeyman.__path__, "journeyman."):
        if not found.name.startswith(("journeyman.__main__", "journeyman.store.migrations.")):
            import_module(found.name)
    for name in _LATE:
        import_module(name)
    Embedder().count_tokens("")  # loads its model
    gc.freeze()  # so that the forks do not copy what they never change


class _Runs:
    """The runs that are going on, with the connections of those who asked for them."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._asked: dict[int, socket.socket] = {}
        self._awaited: set[int] = set()
        self._ended, self._ending = os.pipe()
        os.set_blocking(self._ending, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._ending)

    def next(self) -> dict[str, Any]:
        """Fork runs and tell how they end, until standard input is closed. Returns in the forks
        only: what was asked for, with the files of the one who asked in place.
        """
        while True:
            heard: list[Any] = [0, self._door, self._ended, *self._asked.values()]
            ready = select.select(heard, [], [])[0]
            if 0 in ready:
                self._end_all()
                sys.exit()
            if self._ended in ready:
                os.read(self._ended, 1000)
            for process, connection in self._asked.items():
                if connection in ready:
                    if not connection.recv(1):  # closed: nobody waits for the run any more
                        os.kill(process, signal.SIGKILL)
                    self._awaited.add(process)
            self._tell()
            if self._door in ready:
                asked = self._fork(self._door.accept()[0])
                if asked is not None:
                    return asked

    def _tell(self) -> None:
        """How runs ended, once it is asked: until then a process id belongs to its run."""
        for process in list(self._awaited):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                self._awaited.remove(process)
                with self._asked.pop(process) as connection, suppress(BrokenPipeError):
                    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _end_all(self) -> None:
        for process in self._asked:
            os.kill(process, signal.SIGKILL)
        for process in self._asked:
            os.waitpid(process, 0)

    def _fork(self, connection: socket.socket) -> dict[str, Any] | None:
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile() as lines:
            asked: dict[str, Any] = json.loads(next(lines))
        if process := os.fork():
            self._asked[process] = connection
            connection.sendall(b"%d\n" % process)
            for file in files:
                os.close(file)
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (self._door, connection, *self._asked.values()):
            one.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
        for file in (*files, self._ended, self._ending):
            os.close(file)
        return asked


def _become(asked: dict[str, Any]) -> None:
    """Be the program, or a block of Python, in the surroundings of the one who asked."""
    os.environ.clear()
    os.environ.update(asked["environ"])
    time.tzset()
    os.chdir(asked["folder"])
    # As the interpreter opens them when it starts: those from before know other files.
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = os.fdopen(0, encoding=encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding=encoding, errors="backslashreplace", closefd=False)
    if "block" in asked:
        sys.argv = ["-c"]
        exec(asked["block"], {"__name__": "__main__"})
    else:
        sys.argv = ["journeyman", *asked["arguments"]]
        cli.main()


def main() -> None:
    """Serve at the socket that was passed with this number; in a fork, be what was asked for. The
    fork ends as those of `multiprocessing` do: threads are waited for and what was to be done at
    the exit is done, but to take the interpreter apart would copy all of its memory first.
    """
    load()
    asked = _Runs(socket.socket(fileno=int(sys.argv[1]))).next()
    code: object = 1
    try:
        _become(asked)
        code = 0
    except SystemExit as left:
        code = left.code
    except BaseException:  # noqa: BLE001 - told as the interpreter tells it
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
