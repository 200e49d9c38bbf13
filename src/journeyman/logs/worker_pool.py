"""A pool of worker processes for learning.

It replaces ProcessPoolExecutor, where all processes share one pipe for their results: if one of
them is killed while writing to it, the others, and the callers waiting for them, hang. Here, the
death of a process costs the call that it was working on.
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
    """An executor with this number of processes, each with its own pipe and a thread that waits
    for it. Processes start on demand. A call whose process dies raises BrokenExecutor, which states
    how the process ended. The owner of a pool ends it with `shutdown(cancel_futures=True)`.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        # Not forked: a fork of a process with threads and open databases may hang.
        self._context = get_context("spawn")
        self._thread_local = threading.local()
        self._workers: list[tuple[BaseProcess, Connection]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        return super().submit(self._call, function, args, named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of its base class
        super().shutdown(wait, cancel_futures=cancel_futures)
        for _, connection in self._workers:
            connection.close()
        for process, _ in self._workers:
            process.join()

    def _call(self, *call: Any) -> Any:
        _, connection = self._worker()
        try:
            connection.send(call)
            answer, error = connection.recv()
        except (EOFError, OSError) as lost:
            code = self._end_worker()
            raise BrokenExecutor(f"a worker process ended with exit code {code}") from lost
        if error is not None:
            raise error
        return answer

    def _worker(self) -> tuple[BaseProcess, Connection]:
        """Return this thread's process and the pipe to it, which are started if necessary."""
        worker: tuple[BaseProcess, Connection] | None
        worker = getattr(self._thread_local, "worker", None)
        if worker is None:
            ours, theirs = self._context.Pipe()
            with theirs:  # closed in this process, so that the pipe ends when the worker does
                process = self._context.Process(target=_run_worker, args=(theirs,), daemon=True)
                process.start()
            worker = self._thread_local.worker = (process, ours)
            self._workers.append(worker)
        return worker

    def _end_worker(self) -> int | None:
        """Give up this thread's process, and return its exit code."""
        process, connection = worker = self._worker()
        self._thread_local.worker = None
        self._workers.remove(worker)
        connection.close()
        process.join()
        exit_code: int | None = process.exitcode
        return exit_code


def _run_worker(connection: Connection) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the other cores have their own workers
    # Ctrl-C reaches all processes of a terminal; the main process decides how to handle it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, args, named = connection.recv()
        except EOFError:
            return
        try:
            connection.send((function(*args, **named), None))
        except Exception as error:  # noqa: BLE001 - raised again in the caller
            connection.send((None, error))


def _end_with_parent() -> None:
    """End this worker when its parent is gone; otherwise it would continue its work."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
