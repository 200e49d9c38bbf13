"""Processes that import and learning spread their work over.

Not a ProcessPoolExecutor: its processes share one pipe for their answers, and one that is killed
while it writes there leaves the others, and whoever waits for them, hanging.
"""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any


class WorkerPool(ThreadPoolExecutor):
    """An executor of so many processes, each with a pipe of its own and a thread that waits for
    it. They start when there is something to do. A call whose process is lost raises
    BrokenExecutor. Who makes a pool ends it with `shutdown(cancel_futures=True)`.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        # Not forked: a copy of a process that has threads and open databases may hang.
        self._context = get_context("spawn")
        self._own = threading.local()
        self._started: list[tuple[BaseProcess, Connection]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        return super().submit(self._call, function, args, named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its parent has it
        super().shutdown(wait, cancel_futures=cancel_futures)
        for _, connection in self._started:
            connection.close()
        for process, _ in self._started:
            process.join()

    def _call(self, *call: Any) -> Any:
        try:
            connection = self._connection()
            connection.send(call)
            answer, error = connection.recv()
        except (EOFError, OSError) as lost:
            raise BrokenExecutor("A worker process ended abruptly.") from lost
        if error is not None:
            raise error
        return answer

    def _connection(self) -> Connection:
        """The pipe to this thread's process."""
        if not hasattr(self._own, "connection"):
            ours, theirs = self._context.Pipe()
            with theirs:  # closed here, so that the pipe ends with the process
                process = self._context.Process(target=_work, args=(theirs,), daemon=True)
                process.start()
            self._started.append((process, ours))
            self._own.connection = ours
        connection: Connection = self._own.connection
        return connection


def _work(connection: Connection) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the other cores have workers of their own
    # Ctrl-C reaches all processes of a terminal; what it means is for the first of them to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, args, named = connection.recv()
        except EOFError:
            return
        try:
            connection.send((function(*args, **named), None))
        except Exception as error:  # noqa: BLE001 - it is raised where the call was made
            connection.send((None, error))


def _end_with_parent() -> None:
    """A worker whose parent was killed would go on with its work."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
