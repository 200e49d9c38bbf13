"""A scripted model server that speaks Google's generateContent, for Gemini CLI."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from journeyman.models.model import Reply
from journeyman.testing import ScriptedServer
from journeyman.testing.wire_formats import Endpoint, Event, Exchange, plain_text

_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generate|streamGenerate)Content")


class GeminiContent:
    """Google's generateContent API, whose paths name the model and whether to stream."""

    def turns(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for content in body.get("contents", ()):
            parts = content.get("parts", [])
            role = "assistant" if content.get("role") == "model" else "user"
            has_results = any("functionResponse" in part for part in parts)
            yield ("tool" if has_results else role), plain_text(parts)

    def events(self, reply: Reply, exchange: Exchange) -> Iterator[Event]:
        yield Event(data=self.whole(reply, exchange))

    def whole(self, reply: Reply, exchange: Exchange) -> Any:
        tokens = reply.tokens
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        parts += [
            {"functionCall": {"name": call.name, "args": json.loads(call.arguments)}}
            for call in reply.tool_calls
        ]
        content = {"role": "model", "parts": parts}
        cached, thoughts = tokens.cache_read_tokens or 0, tokens.reasoning_tokens or 0
        prompt, answer = (tokens.input_tokens or 0) + cached, tokens.output_tokens or 0
        return {
            "responseId": exchange.id,
            "modelVersion": exchange.model,
            "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": prompt,
                "cachedContentTokenCount": cached,
                "candidatesTokenCount": answer - thoughts,
                "thoughtsTokenCount": thoughts,
                "totalTokenCount": prompt + answer,
            },
        }


class GeminiServer(ScriptedServer):
    """A scripted server with Google's API."""

    def find_endpoint(self, path: str) -> Endpoint | None:
        if found := _PATH.fullmatch(path):
            streams = found[2] == "streamGenerate"
            return Endpoint(wire_format=GeminiContent(), model=found[1], streams=streams)
        return super().find_endpoint(path)
