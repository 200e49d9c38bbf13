"""A model with scripted replies for tests of agents: deterministic, without a network, and with a
record of all requests.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.models.model import Cancelled, JsonObject, Reply
from journeyman.records import Tokens, ToolCall
from journeyman.records.errors import ModelUnavailable


class Request(Struct, frozen=True, kw_only=True):
    """A request to the model, copied, so that later additions do not change it."""

    messages: list[JsonObject]
    tools: list[JsonObject]


Line = Reply | BaseException | Callable[[Sequence[JsonObject], Sequence[JsonObject]], Reply]
"""A reply, an error to raise, or a function from messages and tools to a reply."""


class ScriptedModel:
    """Replies with the lines of a script, in order. After the last line it raises ModelUnavailable,
    or repeats that line if `repeats` is set. `requests` lists the requests it received.
    """

    def __init__(
        self,
        lines: Iterable[Line],
        *,
        name: str = "scripted",
        provider: str = "scripted",
        context_tokens: int | None = None,
        repeats: bool = False,
    ) -> None:
        self.name, self.provider = name, provider
        self.context_tokens = context_tokens
        self.requests: list[Request] = []
        self._lines = list(lines)
        self._repeats = repeats

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """Return the next line of the script; see Model."""
        del max_tokens
        if cancelled():
            raise Cancelled
        lines = self._lines[len(self.requests) :] or self._lines[-1:] * self._repeats
        request = Request(messages=deepcopy([*messages]), tools=deepcopy([*tools]))
        self.requests.append(request)
        if not lines:
            raise ModelUnavailable(
                "The scripted model has no reply: its script is at its end. Add lines, or set "
                "repeats=True."
            )
        line = lines[0]
        if isinstance(line, BaseException):
            raise line
        reply = line if isinstance(line, Reply) else line(messages, tools)
        return msgspec.structs.replace(reply, model=reply.model or self.name)


def says(text: str, tokens: Tokens = Tokens(input_tokens=100, output_tokens=10)) -> Reply:  # noqa: B008
    """A reply with text."""
    return Reply(text=text, tokens=tokens)


def calls(
    *requested: tuple[str, dict[str, Any]] | ToolCall,
    text: str = "",
    first: int = 1,
    tokens: Tokens = Tokens(input_tokens=100, output_tokens=10),  # noqa: B008
) -> Reply:
    """A reply that requests calls, passed as pairs of name and arguments. Their ids are numbered
    from `first`.
    """
    tool_calls = []
    for number, call in enumerate(requested, first):
        if isinstance(call, ToolCall):
            tool_calls.append(call)
            continue
        name, arguments = call
        encoded = msgspec.json.encode(arguments).decode()
        tool_calls.append(ToolCall(id=f"call_{number}", name=name, arguments=encoded))
    return Reply(text=text, tool_calls=tuple(tool_calls), finish_reason="tool_calls", tokens=tokens)
