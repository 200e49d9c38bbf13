"""Answers of model APIs: put together from the events of a stream, or read from a whole body. The
proxy passes an answer on as it comes and reads its copy afterwards.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from journeyman.hosts.proxy.requests import chat_messages
from journeyman.logs.fields import only_object, only_text
from journeyman.templates.opening import MessageForm

READABLE_ENCODINGS = ("gzip", "deflate", "identity")
"""The encodings of content that the proxy can undo."""

_LARGEST = 256 * 1024 * 1024
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}

Events = Iterator[dict[str, Any]]


class Answer(Struct, frozen=True, kw_only=True):
    """What a model answered, as a message of a chat or of Anthropic's API, with the tokens that the
    API reported. Without `message`, it was cut off before it was complete.
    """

    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    id: str = ""
    model: str = ""


def read_answer(form: MessageForm, body: bytes, *, is_stream: bool) -> Answer:
    """Return the answer in a body. One that cannot be read is an empty answer."""
    try:
        if is_stream:
            return _STREAMS[form](_events(body))
        return _WHOLE[form](only_object(json.loads(body)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Answer()


def decompressed(body: bytes, encoding: str) -> bytes | None:
    """Return content without its encoding; None if that cannot be undone. An end that is missing
    is no error: streams are cut.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding == "zstd":
        return _without_zstd(body)
    if encoding not in _WINDOWS:
        return None
    for window in (_WINDOWS[encoding], -zlib.MAX_WBITS):  # some servers send deflate without head
        try:
            content = zlib.decompressobj(window).decompress(body, _LARGEST)
        except zlib.error:
            continue
        return content if len(content) < _LARGEST else None
    return None


def _without_zstd(body: bytes) -> bytes | None:
    for name in ("compression.zstd", "backports.zstd"):  # the first is part of Python 3.14
        try:
            zstd = import_module(name)
        except ImportError:
            continue
        try:
            content: bytes = zstd.ZstdDecompressor().decompress(body, max_length=_LARGEST)
        except (zstd.ZstdError, EOFError):
            return None
        return content if len(content) < _LARGEST else None
    return None


def _events(body: bytes) -> Events:
    """Yield the data of server-sent events; a last one without its end was cut off."""
    for block in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
        data = b"\n".join(lines)
        if not data or data == b"[DONE]":
            continue
        try:
            event = json.loads(data)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _chat_stream(events: Events) -> Answer:
    id_ = model = finish = ""
    usage = None
    texts: defaultdict[str, list[str]] = defaultdict(list)
    calls: dict[int, _StreamedCall] = {}
    for event in events:
        id_, model = only_text(event.get("id")) or id_, only_text(event.get("model")) or model
        usage = event.get("usage") or usage
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            finish = only_text(choice.get("finish_reason")) or finish
            delta = only_object(choice.get("delta"))
            for name in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(text := delta.get(name), str):
                    texts[name].append(text)
            for part in delta.get("tool_calls") or ():
                _add_to_call(calls, part)
    if not finish or "error" in finish:
        return Answer(usage=usage, id=id_, model=model)
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    message |= {name: "".join(pieces) for name, pieces in texts.items()}
    if calls:
        message["tool_calls"] = [calls[index].whole() for index in sorted(calls)]
    return Answer(message=message, usage=usage, id=id_, model=model)


class _StreamedCall(Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = []

    def whole(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "function": function}


def _add_to_call(calls: dict[int, _StreamedCall], part: Mapping[str, Any]) -> None:
    """Add a part of a tool call. Some servers number no parts, and send each call as one."""
    index = part.get("index")
    if not isinstance(index, int):
        index = len(calls)
    call = calls.setdefault(index, _StreamedCall())
    function = only_object(part.get("function"))
    call.id = call.id or only_text(part.get("id"))
    call.name = call.name or only_text(function.get("name"))
    call.arguments.append(only_text(function.get("arguments")))


def _chat_whole(body: Mapping[str, Any]) -> Answer:
    choices = [one for one in body.get("choices") or () if one.get("index", 0) == 0]
    message = choices[0].get("message") if choices else None
    return _answer(body, message)


def _anthropic_stream(events: Events) -> Answer:
    start: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    pieces: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    usage: dict[str, Any] = {}
    stop = None
    for event in events:
        kind, delta = event.get("type"), only_object(event.get("delta"))
        if kind == "message_start":
            start = only_object(event.get("message"))
            usage |= only_object(start.get("usage"))
        elif kind == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            for name in ("text", "thinking", "partial_json"):
                if name in delta:
                    pieces[event["index"], name].append(only_text(delta[name]))
        elif kind == "message_delta":
            stop = delta.get("stop_reason") or stop
            counts = only_object(event.get("usage"))
            usage |= {name: count for name, count in counts.items() if count is not None}
    for (index, name), texts in pieces.items():
        block, text = blocks[index], "".join(texts)
        if name == "partial_json":
            block["input"] = _arguments(text)
        else:
            block[name] = only_text(block.get(name)) + text
    content = [blocks[index] for index in sorted(blocks)]
    message = {"role": "assistant", "content": content, "stop_reason": stop} if stop else None
    return _answer({**start, "usage": usage}, message)


def _arguments(text: str) -> Any:
    """Return the arguments of a call; text that is not JSON stays text, as the model wrote it."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return text


def _anthropic_whole(body: Mapping[str, Any]) -> Answer:
    names = ("role", "content", "stop_reason")
    is_message = body.get("type") == "message"
    return _answer(body, {name: body.get(name) for name in names} if is_message else None)


def _responses_stream(events: Events) -> Answer:
    items: list[dict[str, Any]] = []
    for event in events:
        kind = only_text(event.get("type"))
        if kind == "response.output_item.done":
            items.append(only_object(event.get("item")))
        elif kind in ("response.completed", "response.incomplete"):
            # Some servers leave the output out here: what the stream has said counts.
            response = only_object(event.get("response"))
            return _responses_whole({**response, "output": items or response.get("output")})
    return Answer()


def _responses_whole(body: Mapping[str, Any]) -> Answer:
    if body.get("status") not in (None, "completed", "incomplete"):
        return Answer()
    messages = chat_messages([item for item in body.get("output") or () if isinstance(item, dict)])
    return _answer(body, messages[0] if messages else None)


def _answer(body: Mapping[str, Any], message: Any) -> Answer:
    usage = body.get("usage")
    return Answer(
        message=message if isinstance(message, dict) else None,
        usage=usage if isinstance(usage, dict) else None,
        id=only_text(body.get("id")),
        model=only_text(body.get("model")),
    )


_STREAMS: dict[MessageForm, Callable[[Events], Answer]] = {
    "openai": _chat_stream,
    "anthropic": _anthropic_stream,
    "responses": _responses_stream,
}
_WHOLE: dict[MessageForm, Callable[[Mapping[str, Any]], Answer]] = {
    "openai": _chat_whole,
    "anthropic": _anthropic_whole,
    "responses": _responses_whole,
}
