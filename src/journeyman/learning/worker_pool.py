"""The worker processes of learning."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Return an executor with this number of processes, which end with this one however it ends. If
    one dies, all calls raise BrokenExecutor.
    """
    # Not forked: a fork of a process with threads and open databases may hang.
    context = get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker)


def _prepare_worker() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the other cores have their own workers
    # Ctrl-C reaches all processes of a terminal; the main process decides how to handle it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent is gone; otherwise it would wait for calls for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
