"""A remote model against a real HTTP server, well-behaved and misbehaving."""

import itertools
import json
import threading
from typing import Any

import pytest
from tests.model_server import (
    Answer,
    Made,
    ModelServer,
    calls,
    event,
    fails,
    says,
    sends,
    streamed,
    waits,
)
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.models.failures import CONTEXT_FULL
from journeyman.models.model import Cancelled, Model, Reply
from journeyman.models.remote import RemoteModel
from journeyman.records import Tokens, ToolCall
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

KEY = "sk-this-is-the-secret-key"
HELLO = [{"role": "user", "content": "Hello"}]
AT_ONCE = {"Retry_After_ms": "1"}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def endless() -> Answer:
    """A stream of words that does not end."""
    word = f"data: {json.dumps(event({'content': 'Hel'}))}\n\n".encode()
    headers = {"Content-Type": "text/event-stream"}
    return Answer(headers=headers, pieces=(word,), lingers=True, drip=word)


def model_at(server: ModelServer, **chosen: Any) -> RemoteModel:
    settings: dict[str, Any] = {
        "name": "small",
        "base_url": server.base_url,
        "api_key": KEY,
        "timeout_s": 20,
    }
    return RemoteModel(**settings | chosen)


def ask(*script: Made, **chosen: Any) -> Reply:
    with ModelServer(*script) as server:
        return model_at(server, **chosen).ask(HELLO)


def refused(*script: Made, **chosen: Any) -> str:
    with pytest.raises(ModelUnavailable) as raised:
        ask(*script, **chosen)
    assert KEY not in str(raised.value)
    return str(raised.value)


def test_a_reply_is_streamed_and_counted() -> None:
    with ModelServer(says("Hello my friend", reasoning_content="Be kind.")) as server:
        model: Model = model_at(server, temperature=0.5, max_tokens=50)
        reply = model.ask(HELLO, TOOLS)
    assert reply == Reply(
        text="Hello my friend",
        reasoning="Be kind.",
        model="scripted",
        tokens=Tokens(input_tokens=20, output_tokens=7, cache_read_tokens=100),
    )
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.chats == [
        {
            "model": "small",
            "messages": HELLO,
            "tools": TOOLS,
            "max_tokens": 50,
            "temperature": 0.5,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


def test_the_request_body() -> None:
    with ModelServer(says("Hello"), says("Hello")) as server:
        model_at(server).ask([{"role": "user", "content": "file \udce4 näme"}])
        model_at(server, max_tokens=50).ask(HELLO, max_tokens=9)
    plain, limited = server.chats
    assert plain.keys() == {"model", "messages", "stream", "stream_options"}
    assert plain["messages"][0]["content"] == "file ? näme"
    assert limited["max_tokens"] == 9


def test_tool_calls_streamed_in_pieces() -> None:
    reply = ask(calls(("look", {"at": "here"}), ("look", {"at": "there"})))
    assert reply.finish_reason == "tool_calls"
    assert reply.tool_calls == (
        ToolCall(id="call_look_0", name="look", arguments='{"at": "here"}'),
        ToolCall(id="call_look_1", name="look", arguments='{"at": "there"}'),
    )


@table(
    "answer",
    [
        pytest.param(fails(429, **AT_ONCE), id="429"),
        pytest.param(fails(503, **AT_ONCE), id="503"),
        pytest.param(streamed(event({"content": "Hel"}), is_cut=True), id="cut_off"),
        pytest.param(streamed(event({"content": "Hel"}), done=False), id="ended_early"),
        pytest.param(streamed(event({"content": "Hel"})), id="without_finish_reason"),
        pytest.param(streamed(event({"content": "Hel"}), "{not json"), id="invalid_event"),
        pytest.param(streamed(event({}), {"error": {"message": "busy"}}), id="error_in_stream"),
        pytest.param(calls(("", {"at": "x"})), id="call_without_a_name"),
    ],
)
def test_transient_failures_are_retried(answer: Answer) -> None:
    assert ask(answer, says("Hello")).text == "Hello"


@table(
    ("answer", "words"),
    [
        pytest.param(streamed("{not json"), "the response is not JSON", id="invalid_event"),
        pytest.param(streamed({"error": {"message": "overloaded"}}), "overloaded", id="error"),
        pytest.param(streamed(3, None, "[]", {"choices": 7}), "not a chat reply", id="events"),
        pytest.param(sends({"choices": []}), "often ends in /v1", id="no_choices"),
        pytest.param(sends("<html>", kind="text/html"), "often ends in /v1", id="html"),
        pytest.param(Answer(status=200, is_cut=True), "the connection failed", id="no_body"),
    ],
)
def test_what_is_no_reply_at_all(answer: Answer, words: str) -> None:
    assert words in refused(answer, says("Hello"))


def test_the_error_after_the_last_attempt() -> None:
    broken = "boiler\x1b[31m\u202e broke\n\n" + "x" * 900
    always = fails(500, broken, **AT_ONCE)
    with ModelServer(always=always) as server, pytest.raises(ModelUnavailable) as raised:
        model_at(server, retries=2).ask(HELLO)
    told = str(raised.value)
    assert len(server.chats) == 3
    assert told.startswith(f"small at {server.root_url.removeprefix('http://')} gave no reply: ")
    assert "the server returned status 500" in told
    assert "try again later" in told
    assert "boiler" in told
    assert "x" * 200 in told
    assert len(told) < 600
    assert told.isprintable()


@table(
    ("answer", "words"),
    [
        pytest.param(
            fails(401, f"wrong key {KEY}"), ("[api key]", "401", "Check model.api_key"), id="401"
        ),
        pytest.param(fails(403), ("403", "Check model.api_key"), id="403"),
        pytest.param(fails(402), ("402", "no credit"), id="402"),
        pytest.param(
            fails(404), ("404", "model.name (small)", "model.base_url (http://127.0.0.1:"), id="404"
        ),
        pytest.param(fails(400, "bad tool"), ("400", "bad tool", "and tools"), id="400"),
        pytest.param(
            fails(429, "insufficient_quota", x_should_retry="false"),
            ("429", "no credit"),
            id="no_credit",
        ),
    ],
)
def test_permanent_failures_are_not_retried(answer: Answer, words: tuple[str, ...]) -> None:
    told = refused(answer, says("Hello"))
    for word in words:
        assert word in told


def test_no_chained_error_can_reveal_the_key() -> None:
    with pytest.raises(ModelUnavailable) as raised:
        ask(fails(401, f"wrong key {KEY}"))
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@table(
    "answer",
    [
        pytest.param(fails(400, "maximum context length is 8 tokens"), id="400"),
        pytest.param(fails(413), id="413"),
        pytest.param(
            streamed({"error": {"code": 400, "message": "prompt is too long: 9 > 8"}}), id="stream"
        ),
    ],
)
def test_a_conversation_that_exceeds_the_window(answer: Answer) -> None:
    with pytest.raises(ContextFull, match="does not fit the context window of small at 127"):
        ask(answer, says("Hello"))


def test_cancelled_before_the_first_byte() -> None:
    asked = itertools.count()
    with ModelServer(waits()) as server, pytest.raises(Cancelled):
        model_at(server).ask(HELLO, cancelled=lambda: next(asked) > 3)


def test_cancelled_while_streaming() -> None:
    with ModelServer(endless()) as server:
        with pytest.raises(Cancelled):
            model_at(server).ask(HELLO, cancelled=lambda: bool(server.chats))
        assert server.hung_up.wait(LONGEST_S)


def test_cancelled_between_two_attempts() -> None:
    with ModelServer(fails(429, Retry_After="1"), says("Hello")) as server:
        with pytest.raises(Cancelled):
            model_at(server, retries=1).ask(HELLO, cancelled=lambda: bool(server.chats))
        for thread in threading.enumerate():
            if thread.name == "model request":
                thread.join(LONGEST_S)
                assert not thread.is_alive()
        assert len(server.chats) == 1


@table(
    "url",
    ["", "api.example.org/v1", "ftp://example.org", "http://", "http://[::1", "http://a:x/v1"],
)
def test_invalid_addresses(url: str) -> None:
    with pytest.raises(BadSetting, match=r"model\.base_url"):
        RemoteModel(name="small", base_url=url)


@table("key", ["sk-a\nb", "sk-ключ"])
def test_keys_that_a_header_cannot_carry(key: str) -> None:
    with pytest.raises(BadSetting, match=r"model\.api_key") as raised:
        RemoteModel(name="small", base_url="http://127.0.0.1/v1", api_key=key)
    assert key not in repr(raised.value)


LATER_SYSTEM = [
    {"role": "system", "content": "You work."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "system", "content": "Review it."},
]


@table(
    "refusal",
    [
        "System message must be at the beginning.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
    ],
)
def test_a_later_system_message_is_sent_as_a_note_after_a_refusal(refusal: str) -> None:
    with ModelServer(fails(400, refusal), says("Done."), says("Done.")) as server:
        model = model_at(server)
        for _ in range(2):
            assert model.ask(LATER_SYSTEM).text == "Done."
        refused, *others = server.chats
    assert refused["messages"] == LATER_SYSTEM
    assert len(others) == 2
    for body in others:
        # What stands before the note is the same, so that the cache serves it.
        assert body["messages"][:3] == LATER_SYSTEM[:3]
        assert body["messages"][3]["role"] == "user"
        assert body["messages"][3]["content"].endswith("Review it.")


@table(
    "text",
    [
        '{"error": {"code": "context_length_exceeded", "message": "…"}}',
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "input length and `max_tokens` exceed context limit: 199211 + 8192 > 200000",
        "request (9000 tokens) exceeds the available context size (4096 tokens)",
        "Your input exceeds the context window of this model.",
    ],
)
def test_messages_about_a_full_window(text: str) -> None:
    assert CONTEXT_FULL.search(text)


@table(
    "text",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Too many tokens per minute, slow down.",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "The context of this call is unknown.",
    ],
)
def test_messages_that_do_not_mean_a_full_window(text: str) -> None:
    assert not CONTEXT_FULL.search(text)
