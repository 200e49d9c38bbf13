"""A reply read from what an OpenAI-compatible server sends, event by event: calls are put together
from their pieces, and tokens counted in whichever way the server reports them.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from journeyman.models.model import JsonObject, Reply
from journeyman.records import Tokens, ToolCall

_CALLS_IN_OTHER_WORDS = frozenset({"stop", "function_call", "tool_use"})
"""What servers say at the end of a reply with tool calls, apart from `tool_calls`."""


class NotAReply(Exception):
    """What came cannot be a reply of a chat model. Its text says why, for a person."""


class ReplyReader:
    """One reply as it comes. `is_complete` once the server has said why it ended."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = CallPieces()
        self._finish_reason = ""
        self._model = ""
        self._usage: object = None
        self._timings: object = None
        self._has_choice = False

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_reason)

    def take(self, event: object) -> str:
        """Add an event; the text it brings."""
        if not isinstance(event, Mapping):
            return ""
        if isinstance(model := event.get("model"), str):
            self._model = self._model or model
        # The one choice that was asked for; a server may send more.
        choices = event.get("choices")
        choice = next(
            (
                one
                for one in (choices if isinstance(choices, list) else ())
                if isinstance(one, Mapping) and one.get("index") in (0, None)
            ),
            None,
        )
        # The last count wins: some servers count as they go.
        for place in (choice, event.get("x_groq"), event):  # Moonshot, Groq, and where it belongs
            if isinstance(place, Mapping) and isinstance(place.get("usage"), Mapping):
                self._usage = place["usage"]
        if isinstance(timings := event.get("timings"), Mapping):
            self._timings = timings
        if choice is None:
            return ""
        self._has_choice = True
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish_reason = reason
        said = choice.get("delta")
        if not isinstance(said, Mapping):
            said = choice.get("message")
        return self._take_said(said) if isinstance(said, Mapping) else ""

    def _take_said(self, said: Mapping[str, Any]) -> str:
        text, thoughts = _content(said.get("content"))
        if isinstance(refusal := said.get("refusal"), str):
            text += refusal
        for key in ("reasoning_content", "reasoning"):
            if isinstance(reasoning := said.get(key), str) and reasoning:
                thoughts += reasoning
                break  # servers that use both names say the same under each
        self._calls.take(said.get("tool_calls"))
        self._text.append(text)
        self._reasoning.append(thoughts)
        return text

    def reply(self, used_ids: Collection[str]) -> Reply:
        """The whole reply. Raises NotAReply when what came is none, or not all of it."""
        if not self._has_choice:
            raise NotAReply("the answer has no choices")
        if not self.is_complete:
            raise NotAReply("the answer broke off before its end")
        calls = self._calls.calls(used_ids)
        if any(not call.name for call in calls):
            raise NotAReply("the answer has a tool call without a name")
        reason = self._finish_reason
        return Reply(
            text="".join(self._text),
            tool_calls=calls,
            reasoning="".join(self._reasoning),
            finish_reason="tool_calls" if calls and reason in _CALLS_IN_OTHER_WORDS else reason,
            model=self._model,
            tokens=read_tokens(self._usage, self._timings),
        )


def used_call_ids(messages: Collection[JsonObject]) -> frozenset[str]:
    """The ids of all tool calls in a conversation."""
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    used = {one.get("tool_call_id") for one in messages} | {call.get("id") for call in calls}
    return frozenset(one for one in used if isinstance(one, str) and one)


def _content(content: object) -> tuple[str, str]:
    """The text of a message and the thoughts in it: plain, or in parts with their types."""
    if isinstance(content, str):
        return content, ""
    text, thoughts = "", ""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, Mapping):
            continue
        if isinstance(said := part.get("text"), str):
            text += said
        if isinstance(thought := part.get("thinking"), str | list):
            thoughts += "".join(_content(thought))
    return text, thoughts


class _Call(Struct):
    """A call that is still coming."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_whole(self) -> bool:
        """Whether nothing can be added: the arguments are an object already."""
        with suppress(ValueError, RecursionError):
            return isinstance(json.loads(self.arguments), dict)
        return False


class CallPieces:
    """The calls of one reply as they come."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def take(self, pieces: object) -> None:
        """Add what one event brings: a list of pieces, or what a server sends instead of one."""
        for piece in pieces if isinstance(pieces, list) else [pieces]:
            if isinstance(piece, Mapping):
                self._take_one(piece)

    def _take_one(self, piece: Mapping[str, object]) -> None:
        function = piece.get("function")
        if not isinstance(function, Mapping):
            function = {}
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):  # some servers send the object itself
            arguments = json.dumps(arguments, ensure_ascii=False)
        # The call to which the piece may belong: the last one, or the last of its index.
        may_go_on = (one for one in reversed(self._calls) if index is None or one.index == index)
        call = next(may_go_on, None)
        if call is None or _begins_another(call, index, call_id, name, arguments):
            call = _Call(index)
            self._calls.append(call)
        call.id = call.id or call_id
        if not call.arguments and name != call.name:
            # Some servers send the name in pieces, and some send all of it so far each time.
            call.name = name if name.startswith(call.name) else call.name + name
        call.arguments += arguments

    def calls(self, used: Collection[str]) -> tuple[ToolCall, ...]:
        """The calls, each with an id that is not used; made ids are the same for the same reply."""
        taken = set(used)
        made = []
        for position, call in enumerate(self._calls):
            call_id = call.id
            if not call_id or call_id in taken:
                # Nine letters or digits: some servers accept ids of no other shape.
                seed = f"{len(used)}/{position}/{call.name}/{call.arguments}"
                call_id = hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:9]
            taken.add(call_id)
            arguments = call.arguments if call.arguments.strip() else "{}"
            made.append(ToolCall(id=call_id, name=call.name, arguments=arguments))
        return tuple(made)


def _begins_another(
    call: _Call, index: int | None, call_id: str, name: str, arguments: str
) -> bool:
    """Whether a piece is not for the current call, though nothing but its content says so."""
    if call_id and call.id and call_id != call.id:
        return True
    if call_id and call_id == call.id and index is not None:
        return False
    return bool(name and arguments) and call.is_whole()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


LARGEST = 10**12
"""More tokens than any request has; a number beyond it is no count."""

# Where the same number stands with different servers, the usual place first. llama.cpp has timings
# beside the usage, in which the cache stands even where its usage leaves it out.
_Path = tuple[str, ...]
_PROMPT: tuple[_Path, ...] = (("prompt_tokens",), ("input_tokens",))
_FRESH: tuple[_Path, ...] = (("input_tokens",), ("prompt_n",))
_OUTPUT: tuple[_Path, ...] = (("completion_tokens",), ("output_tokens",), ("predicted_n",))
_CACHE_READ: tuple[_Path, ...] = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, vLLM, OpenRouter, llama.cpp
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cache_read_input_tokens",),  # Anthropic
    ("cached_tokens",),  # Moonshot
    ("cache_n",),  # llama.cpp
)
_CACHE_WRITE: tuple[_Path, ...] = (
    ("prompt_tokens_details", "cache_write_tokens"),  # OpenRouter
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("cache_creation_input_tokens",),  # Anthropic
)
_REASONING: tuple[_Path, ...] = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)


def read_tokens(usage: object, timings: object = None) -> Tokens:
    """The tokens of one request; the input is what the cache neither served nor stored."""
    said: dict[str, Any] = {}
    for given in (timings, usage):
        said |= given if isinstance(given, Mapping) else {}
    prompt, output = _first(said, _PROMPT), _first(said, _OUTPUT)
    cached, stored = _first(said, _CACHE_READ), _first(said, _CACHE_WRITE)
    reasoning = _first(said, _REASONING)
    # Anthropic counts the cache apart.
    is_apart = "prompt_tokens" not in said and "input_tokens_details" not in said
    if prompt is None or is_apart:
        fresh = _first(said, _FRESH)
    else:
        cached = None if (cached or 0) > prompt else cached
        fresh = prompt - (cached or 0)
        stored = None if (stored or 0) > fresh else stored
        fresh -= stored or 0
    if output is not None and reasoning:
        # Some servers leave the reasoning out of the output; the total gives them away.
        if _first(said, (("total_tokens",),)) == (prompt or 0) + output + reasoning:
            output += reasoning
        reasoning = reasoning if reasoning <= output else None
    cost: Any = said.get("cost")
    is_cost = isinstance(cost, int | float) and type(cost) is not bool and 0 <= cost <= LARGEST
    return Tokens(
        input_tokens=fresh,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_tokens=stored,
        reasoning_tokens=reasoning,
        cost_usd=float(cost) if is_cost else None,
    )


def _first(said: Mapping[str, object], paths: Iterable[_Path]) -> int | None:
    """The first believable count at one of these places."""
    for path in paths:
        value: object = said
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
            return value
    return None
