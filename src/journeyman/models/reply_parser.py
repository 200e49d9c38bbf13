"""Parses the streamed reply of an OpenAI-compatible server event by event: assembles tool calls
from their fragments, and reads token usage.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from journeyman.models.model import JsonObject, Reply
from journeyman.records import Tokens, ToolCall


class NotAReply(Exception):
    """The response is not a reply of a chat model. The message says why."""


class _PartialCall(Struct):
    """A tool call that is still arriving."""

    index: object
    id: str = ""
    name: str = ""
    arguments: str = ""


class ReplyParser:
    """One reply as it arrives, in a conversation with these call ids. It is complete once the
    server has sent a finish reason.
    """

    def __init__(self, used_ids: Collection[str] = ()) -> None:
        self._used_ids = used_ids
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_PartialCall] = []
        self._finish_reason = ""
        self._model = ""
        self._usage: JsonObject = {}
        self.has_begun = False

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_reason)

    def feed(self, event: object) -> None:
        """Add an event."""
        event = _object(event)
        self._model = self._model or _text(event.get("model"))
        self._usage = _object(event.get("usage")) or self._usage
        choices = event.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        if not choice:
            return
        self.has_begun = True
        self._finish_reason = _text(choice.get("finish_reason")) or self._finish_reason
        delta = _object(choice.get("delta"))
        self._text.append(_text(delta.get("content")) + _text(delta.get("refusal")))
        # llama.cpp, vLLM and LM Studio use the first name, OpenRouter and Ollama the second.
        thoughts = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        self._reasoning.append(thoughts)
        for fragment in delta.get("tool_calls") or ():
            self._add_fragment(fragment)

    def _add_fragment(self, fragment: JsonObject) -> None:
        function, index = _object(fragment.get("function")), fragment.get("index")
        call_id = _text(fragment.get("id"))
        call = next((call for call in reversed(self._calls) if call.index == index), None)
        # Some versions of Ollama send several calls with one index.
        if call is None or (call_id and call.id and call_id != call.id):
            call = _PartialCall(index)
            self._calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or _text(function.get("name"))
        call.arguments += _text(function.get("arguments"))

    def reply(self) -> Reply:
        """Return the whole reply. Raise NotAReply if it is incomplete or not a reply."""
        if not self.has_begun:
            raise NotAReply("the response is not a chat reply")
        if not self.is_complete:
            raise NotAReply("the response ended early")
        if any(not call.name for call in self._calls):
            raise NotAReply("the response has a tool call without a name")
        calls, reason = self._unique_calls(), self._finish_reason
        return Reply(
            text="".join(self._text),
            tool_calls=calls,
            reasoning="".join(self._reasoning),
            finish_reason="tool_calls" if calls and reason == "stop" else reason,
            model=self._model,
            tokens=read_tokens(self._usage),
        )

    def _unique_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls, each with an unused id. Generated ids are deterministic."""
        taken = set(self._used_ids)
        calls = []
        for position, call in enumerate(self._calls):
            call_id = call.id
            if not call_id or call_id in taken:
                seed = f"{len(self._used_ids)}/{position}/{call.name}/{call.arguments}"
                call_id = hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:9]
            taken.add(call_id)
            arguments = call.arguments if call.arguments.strip() else "{}"
            calls.append(ToolCall(id=call_id, name=call.name, arguments=arguments))
        return tuple(calls)


def used_call_ids(messages: Collection[JsonObject]) -> frozenset[str]:
    """Return the ids of all tool calls in a conversation."""
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    ids = {message.get("tool_call_id") for message in messages} | {call.get("id") for call in calls}
    return frozenset(id_ for id_ in ids if isinstance(id_, str) and id_)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


LARGEST = 10**12
"""No request has more tokens; a larger number is not a count."""


def read_tokens(usage: JsonObject) -> Tokens:
    """Return the tokens of one request. The input excludes what the cache served or stored, which
    servers include. A part that is larger than its whole is not a count.
    """
    prompt, output = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    parts = _object(usage.get("prompt_tokens_details"))
    cached, stored = _count(parts.get("cached_tokens")), _count(parts.get("cache_write_tokens"))
    reasoning = _object(usage.get("completion_tokens_details")).get("reasoning_tokens")
    if prompt is not None:
        if (cached or 0) + (stored or 0) > prompt:
            cached = stored = None
        prompt -= (cached or 0) + (stored or 0)
    cost: Any = usage.get("cost")  # OpenRouter
    is_cost = isinstance(cost, int | float) and type(cost) is not bool and 0 <= cost <= LARGEST
    return Tokens(
        input_tokens=prompt,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_tokens=stored,
        reasoning_tokens=_count(reasoning),
        cost_usd=float(cost) if is_cost else None,
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= LARGEST else None
