"""The protocol of a language model: messages and tool definitions in, a reply out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from journeyman.records import Tokens, ToolCall

JsonObject = Mapping[str, Any]


class Reply(Struct, frozen=True, kw_only=True):
    """One reply of a model. `tool_calls` have unique ids, and arguments as received, possibly
    malformed. `tokens` is the usage that the model reports. `finish_reason` is `stop`,
    `tool_calls`, `length`, `content_filter`, or whatever the model reports.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish_reason: str = "stop"
    model: str = ""
    tokens: Tokens = Tokens()


class Model(Protocol):
    """A language model. `name` is the model's own name, `provider` who runs it (a host name, or
    `embedded`), `context_tokens` the size of its context window, None if unknown.
    """

    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def context_tokens(self) -> int | None: ...

    def ask(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject] = (),
        *,
        max_tokens: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """Return the reply to these messages. When `cancelled` returns true, abort the request and
        raise Cancelled. Raise ContextFull if the messages do not fit the context window,
        ModelUnavailable if there is no reply.
        """
        ...


class Cancelled(Exception):
    """The caller cancelled the request."""
