"""A pool of worker processes for learning."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process


class WorkerPool(ProcessPoolExecutor):
    """An executor with this number of processes. If one of them dies, waiting calls raise
    BrokenExecutor. The owner of a pool ends it with `shutdown(cancel_futures=True)`.
    """

    def __init__(self, workers: int) -> None:
        # Not forked: a fork of a process with threads and open databases may hang.
        super().__init__(workers, mp_context=get_context("spawn"), initializer=_prepare_worker)


def _prepare_worker() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the other cores have their own workers
    # Ctrl-C reaches all processes of a terminal; the main process decides how to handle it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent is gone; otherwise it would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
