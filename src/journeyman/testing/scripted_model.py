"""A model that says what it is told to say, for tests of agents: deterministic, without a network,
and with a memory of what it was asked.
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
    """What the model was asked: copies, so that what is appended later does not show."""

    messages: list[JsonObject]
    tools: list[JsonObject]


Line = Reply | BaseException | Callable[[Sequence[JsonObject], Sequence[JsonObject]], Reply]
"""One answer: a reply, an error to raise, or what makes a reply from messages and tools."""


class ScriptedModel:
    """Answers with the lines of a script, one after the other. After the last line it raises
    ModelUnavailable, or says it again and again if it `repeats`. `requests` is what it was asked.
    """

    provider = "scripted"

    def __init__(
        self,
        lines: Iterable[Line],
        *,
        name: str = "scripted",
        context_tokens: int | None = None,
        repeats: bool = False,
    ) -> None:
        self.name = name
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
        on_text: Callable[[str], None] = lambda _text: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Reply:
        """The next line of the script; see Model."""
        del max_tokens
        if cancelled():
            raise Cancelled
        lines = self._lines[len(self.requests) :] or self._lines[-1:] * self._repeats
        asked = Request(messages=deepcopy([*messages]), tools=deepcopy([*tools]))
        self.requests.append(asked)
        if not lines:
            raise ModelUnavailable("The script of the model is at its end.")
        line = lines[0]
        if isinstance(line, BaseException):
            raise line
        reply = line if isinstance(line, Reply) else line(messages, tools)
        if reply.text:
            on_text(reply.text)
        return msgspec.structs.replace(reply, model=reply.model or self.name)


def says(text: str, tokens: Tokens = Tokens(input_tokens=100, output_tokens=10)) -> Reply:  # noqa: B008
    """A reply in words."""
    return Reply(text=text, tokens=tokens)


def calls(
    *asked: tuple[str, dict[str, Any]] | ToolCall,
    text: str = "",
    first: int = 1,
    tokens: Tokens = Tokens(input_tokens=100, output_tokens=10),  # noqa: B008
) -> Reply:
    """A reply that asks for calls, given as names and arguments; their ids count from `first`."""
    made = []
    for number, one in enumerate(asked, first):
        if not isinstance(one, ToolCall):
            name, arguments = one[0], msgspec.json.encode(one[1]).decode()
            one = ToolCall(id=f"call_{number}", name=name, arguments=arguments)  # noqa: PLW2901
        made.append(one)
    return Reply(text=text, tool_calls=tuple(made), finish_reason="tool_calls", tokens=tokens)
