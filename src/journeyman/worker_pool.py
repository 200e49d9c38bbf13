"""Processes that import and learning spread their work over."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """An executor whose processes start when there is something to do. Who makes it ends it with
    `shutdown(cancel_futures=True)`.
    """
    # Not forked: a copy of a process that has threads and open databases may hang.
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start_worker)


def _start_worker() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the other cores have workers of their own
    # Ctrl-C reaches all processes of a terminal; what it means is for the first of them to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
