"""The wire formats of model APIs, as far as agents rely on them: what a request asks, and a reply
as the server-sent events or the whole body that an API would send.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from journeyman.models.model import Reply


class Exchange(Struct, frozen=True, kw_only=True):
    """What a reply needs to be encoded: a unique `id`, and the `model` that the request named."""

    id: str
    model: str


class Event(Struct, frozen=True, kw_only=True):
    """A server-sent event; without a `name` only its data is sent."""

    data: Any
    name: str = ""

    def encoded(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        name = f"event: {self.name}\n" if self.name else ""
        return f"{name}data: {data}\n\n".encode()


class WireFormat(Protocol):
    """One API. `turns` yields a request's conversation as pairs of role (user, assistant or tool)
    and text, with a model's whole answer as one turn.
    """

    def turns(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]: ...
    def events(self, reply: Reply, exchange: Exchange) -> Iterator[Event]: ...
    def whole(self, reply: Reply, exchange: Exchange) -> Any: ...


def plain_text(content: Any) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


class AnthropicMessages:
    """Anthropic's Messages API."""

    def turns(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for message in body.get("messages", ()):
            role, content = message.get("role"), message.get("content")
            has_results = isinstance(content, list) and any(
                part.get("type") == "tool_result" for part in content
            )
            yield ("tool" if has_results else role), plain_text(content)

    def events(self, reply: Reply, exchange: Exchange) -> Iterator[Event]:
        tokens = reply.tokens
        message = self.whole(reply, exchange)
        usage = {**message["usage"], "output_tokens": 1}
        start = {**message, "content": [], "stop_reason": None, "usage": usage}
        yield self._event("message_start", message=start)
        for index, block in enumerate(message["content"]):
            begin, delta = dict(block), {"type": "text_delta", "text": block.get("text")}
            if block["type"] == "text":
                begin["text"] = ""
            else:
                encoded = reply.tool_calls[index - bool(reply.text)].arguments
                begin["input"] = {}
                delta = {"type": "input_json_delta", "partial_json": encoded}
            yield self._event("content_block_start", index=index, content_block=begin)
            yield self._event("content_block_delta", index=index, delta=delta)
            yield self._event("content_block_stop", index=index)
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        used = {"output_tokens": tokens.output_tokens or 0}
        yield self._event("message_delta", delta=end, usage=used)
        yield self._event("message_stop")

    def whole(self, reply: Reply, exchange: Exchange) -> Any:
        tokens = reply.tokens
        content: list[dict[str, Any]] = []
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        content += [
            {
                "type": "tool_use",
                "id": f"toolu_{exchange.id}_{number}",
                "name": call.name,
                "input": json.loads(call.arguments),
            }
            for number, call in enumerate(reply.tool_calls)
        ]
        return {
            "id": f"msg_{exchange.id}",
            "type": "message",
            "role": "assistant",
            "model": exchange.model,
            "content": content,
            "stop_reason": "tool_use" if reply.tool_calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": tokens.input_tokens or 0,
                "cache_read_input_tokens": tokens.cache_read_tokens or 0,
                "cache_creation_input_tokens": tokens.cache_write_tokens or 0,
                "output_tokens": tokens.output_tokens or 0,
            },
        }

    def _event(self, name: str, **data: Any) -> Event:
        return Event(name=name, data={"type": name, **data})


class ChatCompletions:
    """OpenAI's Chat Completions API."""

    def turns(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for message in body.get("messages", ()):
            yield message.get("role"), plain_text(message.get("content"))

    def events(self, reply: Reply, exchange: Exchange) -> Iterator[Event]:
        yield self._chunk(exchange, {"role": "assistant", "content": reply.text})
        for index, call in enumerate(self._calls(reply, exchange)):
            yield self._chunk(exchange, {"tool_calls": [{"index": index, **call}]})
        yield self._chunk(exchange, {}, self._finish(reply))
        head = self._head(exchange, "chat.completion.chunk")
        yield Event(data={**head, "choices": [], "usage": self._usage(reply)})
        yield Event(data="[DONE]")

    def whole(self, reply: Reply, exchange: Exchange) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if calls := self._calls(reply, exchange):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish(reply)}
        head = self._head(exchange, "chat.completion")
        return {**head, "choices": [choice], "usage": self._usage(reply)}

    def _calls(self, reply: Reply, exchange: Exchange) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{exchange.id}_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for number, call in enumerate(reply.tool_calls)
        ]

    def _chunk(self, exchange: Exchange, delta: Any, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return Event(data={**self._head(exchange, "chat.completion.chunk"), "choices": [choice]})

    def _head(self, exchange: Exchange, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{exchange.id}", "object": kind, "model": exchange.model}

    def _finish(self, reply: Reply) -> str:
        return "tool_calls" if reply.tool_calls else "stop"

    def _usage(self, reply: Reply) -> dict[str, Any]:
        tokens = reply.tokens
        cached, answer = tokens.cache_read_tokens or 0, tokens.output_tokens or 0
        prompt = (tokens.input_tokens or 0) + cached
        return {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


_RESULT_ITEMS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_ANSWER_ITEMS = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")


class Responses:
    """OpenAI's Responses API."""

    def turns(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        items = body.get("input") or ()
        if isinstance(items, str):
            items = ({"role": "user", "content": items},)
        for role, group in itertools.groupby(items, key=_role_of_item):
            if role == "assistant":
                yield role, ""
            else:
                yield from ((role, plain_text(item.get("content"))) for item in group)

    def events(self, reply: Reply, exchange: Exchange) -> Iterator[Event]:
        done = self.whole(reply, exchange)
        begun = {**done, "status": "in_progress", "output": [], "usage": None}
        yield self._event("response.created", response=begun)
        for index, item in enumerate(done["output"]):
            added = {**item, "status": "in_progress"}
            if item["type"] == "message":
                added["content"] = []
            yield self._event("response.output_item.added", output_index=index, item=added)
            if item["type"] == "message":
                where = {"output_index": index, "content_index": 0, "item_id": item["id"]}
                part = {"type": "output_text", "text": "", "annotations": []}
                yield self._event("response.content_part.added", part=part, **where)
                yield self._event("response.output_text.delta", delta=reply.text, **where)
            yield self._event("response.output_item.done", output_index=index, item=item)
        yield self._event("response.completed", response=done)

    def whole(self, reply: Reply, exchange: Exchange) -> Any:
        tokens = reply.tokens
        output: list[dict[str, Any]] = []
        if reply.text:
            part = {"type": "output_text", "text": reply.text, "annotations": []}
            head = {"type": "message", "id": f"msg_{exchange.id}", "role": "assistant"}
            output.append({**head, "status": "completed", "content": [part]})
        output += [
            {
                "type": "function_call",
                "id": f"fc_{exchange.id}_{number}",
                "call_id": f"call_{exchange.id}_{number}",
                "name": call.name,
                "arguments": call.arguments,
                "status": "completed",
            }
            for number, call in enumerate(reply.tool_calls)
        ]
        cached, answer = tokens.cache_read_tokens or 0, tokens.output_tokens or 0
        prompt = (tokens.input_tokens or 0) + cached
        return {
            "id": f"resp_{exchange.id}",
            "object": "response",
            "status": "completed",
            "model": exchange.model,
            "output": output,
            "usage": {
                "input_tokens": prompt,
                "input_tokens_details": {"cached_tokens": cached},
                "output_tokens": answer,
                "output_tokens_details": {"reasoning_tokens": tokens.reasoning_tokens or 0},
                "total_tokens": prompt + answer,
            },
        }

    def _event(self, name: str, **data: Any) -> Event:
        return Event(name=name, data={"type": name, **data})


def _role_of_item(item: Mapping[str, Any]) -> str:
    kind = item.get("type", "message")
    if kind in _RESULT_ITEMS:
        return "tool"
    return "assistant" if kind in _ANSWER_ITEMS else str(item.get("role"))


class Endpoint(Struct, frozen=True, kw_only=True):
    """What a path asks for: an API, and where the path says so instead of the body, the `model`
    and whether the answer `streams`.
    """

    wire_format: WireFormat
    model: str | None = None
    streams: bool | None = None


ENDPOINTS = {
    "/v1/messages": Endpoint(wire_format=AnthropicMessages()),
    "/v1/chat/completions": Endpoint(wire_format=ChatCompletions()),
    "/v1/responses": Endpoint(wire_format=Responses()),
}
