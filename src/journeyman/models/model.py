"""A model to the rest of the program: messages and tool definitions go in, a reply comes out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from journeyman.records import Tokens, ToolCall

JsonObject = Mapping[str, Any]


class Reply(Struct, frozen=True, kw_only=True):
    """One answer of a model. `tool_calls` have unique ids, and arguments as they came, perhaps
    malformed. `tokens` is what the request used, as the model says. `finish_reason` is `stop`,
    `tool_calls`, `length`, `content_filter`, or what the model says.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish_reason: str = "stop"
    model: str = ""
    tokens: Tokens = Tokens()


class Model(Protocol):
    """A model that can be asked. `name` is its own name, `provider` who runs it (a host name, or
    `embedded`), `context_tokens` the size of its window, None where nobody knows.
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
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """The reply to these messages. `on_text` hears its text as it comes; when `cancelled` says
        so, the request is given up and Cancelled is raised. Raises ContextFull when the messages
        do not fit the window, ModelUnavailable when no reply can be had.
        """
        ...


class Cancelled(Exception):
    """The request was given up because the caller said so."""
