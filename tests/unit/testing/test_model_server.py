"""The scripted server, asked by OpenAI's own client and by plain HTTP."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from journeyman.records import Tokens
from journeyman.testing import ScriptedServer, calls, says

_TOKENS = Tokens(input_tokens=30, cache_read_tokens=70, output_tokens=9)
_SCRIPT = {
    "count the files": [
        calls(("shell", {"command": "ls"}), ("shell", {"command": "date"}), tokens=_TOKENS),
        says("There are three.", tokens=_TOKENS),
    ]
}
_TOOL: Any = {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(_SCRIPT) as server:
        yield server


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
        yield client


class TestChatCompletions:
    def test_streamed(self, client: openai.OpenAI) -> None:
        stream = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "count the files"}],
            tools=[_TOOL],
            stream=True,
        )
        chunks = [*stream]
        asked = [
            call.function
            for chunk in chunks
            for choice in chunk.choices
            for call in choice.delta.tool_calls or ()
        ]
        assert [one.arguments for one in asked if one] == ['{"command":"ls"}', '{"command":"date"}']
        usage = chunks[-1].usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (100, 9)

    def test_whole_and_by_the_number_of_answers(self, client: openai.OpenAI) -> None:
        conversation: list[Any] = [{"role": "user", "content": "please count the files"}]
        texts = []
        for _ in range(3):
            answer = client.chat.completions.create(model="m", messages=conversation)
            message = answer.choices[0].message
            texts.append(message.content)
            conversation.append(message.to_dict())
            conversation += [
                {"role": "tool", "tool_call_id": call.id, "content": "3"}
                for call in message.tool_calls or ()
            ]
        assert texts == ["", "There are three.", "Done."]


class TestResponses:
    def test_streamed(self, client: openai.OpenAI) -> None:
        stream = client.responses.create(model="m", input="count the files", stream=True)
        response = next(event.response for event in stream if event.type == "response.completed")
        assert [item.type for item in response.output] == ["function_call", "function_call"]
        assert response.usage is not None
        assert response.usage.input_tokens_details.cached_tokens == 70


def _post(address: str, **body: Any) -> bytes:
    request = urllib.request.Request(address, json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        received: bytes = answer.read()
        return received


def _events(stream: bytes) -> list[Any]:
    lines = stream.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


class TestMessages:
    def _post(self, server: ScriptedServer, **body: Any) -> bytes:
        return _post(f"{server.url}/v1/messages?beta=true", model="m", **body)

    def test_streamed(self, server: ScriptedServer) -> None:
        content = [{"type": "text", "text": "count the files"}]
        messages = [{"role": "user", "content": content}]
        events = _events(self._post(server, messages=messages, stream=True))
        parts = [one["delta"].get("partial_json") for one in events if "delta" in one]
        assert parts[:2] == ['{"command":"ls"}', '{"command":"date"}']
        assert events[-2]["usage"] == {"output_tokens": 9}
        assert events[0]["message"]["usage"]["cache_read_input_tokens"] == 70

    def test_whole(self, server: ScriptedServer) -> None:
        answer = json.loads(self._post(server, messages=[{"role": "user", "content": "hello"}]))
        assert answer["content"] == [{"type": "text", "text": "Done."}]
        (request,) = server.requests
        assert request.reply.text == "Done."
        assert request.path == "/v1/messages"
