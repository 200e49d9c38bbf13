"""Parses the reply of an OpenAI-compatible server event by event: assembles tool calls from their
fragments, and reads token usage in whichever way the server reports it.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from journeyman.models.model import JsonObject, Reply
from journeyman.records import Tokens, ToolCall

_TOOL_CALL_REASONS = frozenset({"stop", "function_call", "tool_use"})
"""Finish reasons that servers use for tool calls, apart from `tool_calls`."""


class NotAReply(Exception):
    """The response is not a reply of a chat model. The message says why."""


class ReplyParser:
    """One reply as it arrives. It is complete once the server has sent a finish reason."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = CallAssembler()
        self._finish_reason = ""
        self._model = ""
        self._usage: JsonObject = {}
        self._timings: JsonObject = {}
        self._has_choice = False

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_reason)

    def feed(self, event: object) -> str:
        """Add an event, and return the text in it."""
        event = _object(event)
        self._model = self._model or _text(event.get("model"))
        # One choice is requested, but a server may send more.
        choices = map(_object, _list(event.get("choices")))
        choice = next((item for item in choices if item and item.get("index") in (0, None)), {})
        # The last count wins: some servers report running totals. Moonshot, Groq, everyone else:
        for holder in (choice, _object(event.get("x_groq")), event):
            self._usage = _object(holder.get("usage")) or self._usage
        self._timings = _object(event.get("timings")) or self._timings
        if not choice:
            return ""
        self._has_choice = True
        self._finish_reason = _text(choice.get("finish_reason")) or self._finish_reason
        message = _object(choice.get("delta")) or _object(choice.get("message"))
        text, thoughts = _content(message.get("content"))
        text += _text(message.get("refusal"))
        # Servers that use both names send the same text under each.
        thoughts += _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
        self._calls.feed(message.get("tool_calls"))
        self._text.append(text)
        self._reasoning.append(thoughts)
        return text

    def reply(self, used_ids: Collection[str]) -> Reply:
        """Return the whole reply. Raise NotAReply if it is incomplete or not a reply."""
        if not self._has_choice:
            raise NotAReply("the response has no choices")
        if not self.is_complete:
            raise NotAReply("the response ended early")
        calls = self._calls.calls(used_ids)
        if any(not call.name for call in calls):
            raise NotAReply("the response has a tool call without a name")
        reason = self._finish_reason
        return Reply(
            text="".join(self._text),
            tool_calls=calls,
            reasoning="".join(self._reasoning),
            finish_reason="tool_calls" if calls and reason in _TOOL_CALL_REASONS else reason,
            model=self._model,
            tokens=read_tokens(self._usage, self._timings),
        )


def used_call_ids(messages: Collection[JsonObject]) -> frozenset[str]:
    """Return the ids of all tool calls in a conversation."""
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    ids = {message.get("tool_call_id") for message in messages} | {call.get("id") for call in calls}
    return frozenset(id_ for id_ in ids if isinstance(id_, str) and id_)


def _content(content: object) -> tuple[str, str]:
    """Return the text and the reasoning in the content of a message, plain or in typed parts."""
    if isinstance(content, str):
        return content, ""
    parts = [*map(_object, _list(content))]
    thoughts = ("".join(_content(part.get("thinking"))) for part in parts)
    return "".join(_text(part.get("text")) for part in parts), "".join(thoughts)


class _PartialCall(Struct):
    """A tool call that is still arriving."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_continued_by(self, index: int | None, call_id: str, *, may_be_whole: bool) -> bool:
        """Return whether a fragment adds to this call. One that `may_be_whole` does not, if the
        arguments are complete: some servers send several whole calls with one index or id.
        """
        if call_id and self.id and call_id != self.id:
            return False
        if not may_be_whole or (call_id and call_id == self.id and index is not None):
            return True
        with suppress(ValueError, RecursionError):
            return not isinstance(json.loads(self.arguments), dict)
        return True


class CallAssembler:
    """Assembles the tool calls of one reply from their fragments."""

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []

    def feed(self, fragments: object) -> None:
        """Add the fragments of one event: a list, or what a server sends instead of one."""
        for fragment in map(_object, _list(fragments) or [fragments]):
            if fragment:
                self._feed_fragment(fragment)

    def _feed_fragment(self, fragment: JsonObject) -> None:
        function, index = _object(fragment.get("function")), fragment.get("index")
        index = index if type(index) is int else None
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):  # some servers send the object itself
            arguments = json.dumps(arguments, ensure_ascii=False)
        # The fragment may continue the last call, or the last one with its index.
        earlier = [call for call in self._calls if index is None or call.index == index]
        call = earlier[-1] if earlier else None
        if call is None or not call.is_continued_by(
            index, call_id, may_be_whole=bool(name and arguments)
        ):
            call = _PartialCall(index)
            self._calls.append(call)
        call.id = call.id or call_id
        if not call.arguments and name != call.name:
            # Some servers send the name in fragments, others repeat it from the start each time.
            call.name = name if name.startswith(call.name) else call.name + name
        call.arguments += arguments

    def calls(self, used: Collection[str]) -> tuple[ToolCall, ...]:
        """Return the calls, each with an unused id. Generated ids are deterministic."""
        taken = set(used)
        calls = []
        for position, call in enumerate(self._calls):
            call_id = call.id
            if not call_id or call_id in taken:
                # Nine letters or digits: some servers accept no other ids.
                seed = f"{len(used)}/{position}/{call.name}/{call.arguments}"
                call_id = hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:9]
            taken.add(call_id)
            arguments = call.arguments if call.arguments.strip() else "{}"
            calls.append(ToolCall(id=call_id, name=call.name, arguments=arguments))
        return tuple(calls)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


LARGEST = 10**12
"""No request has more tokens; a larger number is not a count."""

# Where servers report each count, the most common field first.
_Path = tuple[str, ...]
_CACHE_READ: tuple[_Path, ...] = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, vLLM, OpenRouter, llama.cpp
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cache_read_input_tokens",),  # Anthropic's models behind a gateway
    ("cached_tokens",),  # Moonshot
    ("cache_n",),  # llama.cpp, in its timings
)
_CACHE_WRITE: tuple[_Path, ...] = (
    ("prompt_tokens_details", "cache_write_tokens"),  # OpenRouter
    ("cache_creation_input_tokens",),  # Anthropic's models behind a gateway
)
_REASONING: tuple[_Path, ...] = (("completion_tokens_details", "reasoning_tokens"),)


def read_tokens(usage: object, timings: object = None) -> Tokens:
    """Return the tokens of one request. The input excludes what the cache served or stored, which
    servers include. A part that is larger than its whole is not a count.
    """
    counts = {**_object(timings), **_object(usage)}
    uncached, output = _first(counts, ("prompt_tokens",)), _first(counts, ("completion_tokens",))
    cached, stored = _first(counts, *_CACHE_READ), _first(counts, *_CACHE_WRITE)
    reasoning = _first(counts, *_REASONING)
    if uncached is not None:
        cached = None if (cached or 0) > uncached else cached
        uncached -= cached or 0
        stored = None if (stored or 0) > uncached else stored
        uncached -= stored or 0
    if output is not None and reasoning:
        # Some servers exclude the reasoning from the output; the total reveals that.
        total, prompt = _first(counts, ("total_tokens",)), _first(counts, ("prompt_tokens",)) or 0
        output += reasoning if total == prompt + output + reasoning else 0
        reasoning = reasoning if reasoning <= output else None
    cost: Any = counts.get("cost")
    is_cost = isinstance(cost, int | float) and type(cost) is not bool and 0 <= cost <= LARGEST
    return Tokens(
        input_tokens=uncached,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_tokens=stored,
        reasoning_tokens=reasoning,
        cost_usd=float(cost) if is_cost else None,
    )


def _first(counts: Mapping[str, object], *paths: _Path) -> int | None:
    """Return the first plausible count at one of these paths."""
    for path in paths:
        value: object = counts
        for step in path:
            value = _object(value).get(step)
        if type(value) is int and 0 <= value <= LARGEST:
            return value
    return None
