"""A remote model against a real HTTP server, well-behaved and misbehaving."""

import itertools
import threading
from typing import Any

import pytest
from tests.model_server import (
    Answer,
    Made,
    ModelServer,
    Received,
    calls,
    event,
    fails,
    says,
    sends,
    streamed,
    waits,
    whole,
)
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.models.model import Cancelled, Model, Reply
from journeyman.models.remote import RemoteModel
from journeyman.records import Tokens, ToolCall
from journeyman.records.errors import BadSetting, ContextFull, ModelUnavailable

KEY = "sk-this-is-the-secret-key"
HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


class Pauses(list[float]):
    """Records pauses instead of waiting."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def model_at(server: ModelServer, **chosen: Any) -> RemoteModel:
    settings: dict[str, Any] = {
        "name": "small",
        "base_url": server.base_url,
        "api_key": KEY,
        "attempts": 3,
        "timeout_s": 20,
        "sleep": Pauses(),
        "chance": lambda: 0.0,
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
    heard: list[str] = []
    with ModelServer(says("Hello my friend", reasoning_content="Be kind.")) as server:
        model: Model = model_at(server, temperature=0.5, max_tokens=50)
        reply = model.ask(HELLO, TOOLS, on_text=heard.append)
    assert reply == Reply(
        text="Hello my friend",
        reasoning="Be kind.",
        model="scripted",
        tokens=Tokens(input_tokens=20, output_tokens=7, cache_read_tokens=100),
    )
    assert heard == ["Hello ", "my ", "friend"]
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


def test_a_server_that_does_not_stream() -> None:
    call = {"id": "one", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    reply = ask(whole({"content": "Well.", "tool_calls": [call]}, finish_reason="stop"))
    assert reply.text == "Well."
    assert reply.tool_calls == (ToolCall(id="one", name="look"),)
    assert reply.finish_reason == "tool_calls"
    assert reply.tokens.cache_read_tokens == 100


@table(
    ("words", "left"),
    [
        pytest.param(
            "Unrecognized request argument supplied: stream_options",
            {"stream", "max_tokens", "temperature"},
            id="stream_options",
        ),
        pytest.param(
            "Use 'max_completion_tokens' instead of max_tokens",
            {"stream", "stream_options", "max_completion_tokens", "temperature"},
            id="max_tokens",
        ),
        pytest.param(
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            {"stream", "stream_options", "max_tokens"},
            id="temperature",
        ),
    ],
)
def test_a_rejected_parameter_is_omitted_from_then_on(words: str, left: set[str]) -> None:
    with ModelServer(fails(400, words), says("Hello"), says("Again")) as server:
        model = model_at(server, max_tokens=9, temperature=0, attempts=1)
        assert model.ask(HELLO).text == "Hello"
        assert model.ask(HELLO).text == "Again"
    assert [chat.keys() - {"model", "messages"} for chat in server.chats[1:]] == [left, left]


@table(
    "answer",
    [
        pytest.param(fails(408), id="408"),
        pytest.param(fails(409), id="409"),
        pytest.param(fails(429), id="429"),
        pytest.param(fails(500), id="500"),
        pytest.param(fails(503), id="503"),
        pytest.param(streamed(event({"content": "Hel"}), is_cut=True), id="cut_off"),
        pytest.param(streamed(event({"content": "Hel"}), done=False), id="ended_early"),
        pytest.param(streamed(event({"content": "Hel"})), id="without_finish_reason"),
        pytest.param(streamed("{not json"), id="invalid_event"),
        pytest.param(streamed("[" * 100_000), id="nested_too_deeply"),
        pytest.param(streamed({"error": {"message": "overloaded"}}), id="error_in_stream"),
        pytest.param(streamed({"choices": []}), id="no_choices"),
        pytest.param(streamed(3, None, "[]", {"choices": 7}), id="invalid_events"),
        pytest.param(sends("{not json"), id="invalid_json"),
        pytest.param(sends("", kind="application/json"), id="empty_body"),
        pytest.param(sends({"choices": []}), id="empty_choices"),
        pytest.param(sends({"error": {"code": 502}}), id="error_with_status_200"),
        pytest.param(sends("<html>Welcome</html>", kind="text/html"), id="html"),
        pytest.param(Answer(status=200, is_cut=True), id="no_body"),
        pytest.param(calls(("", {"at": "x"})), id="call_without_a_name"),
    ],
)
def test_transient_failures_are_retried(answer: Answer) -> None:
    pauses = Pauses()
    assert ask(answer, says("Hello"), sleep=pauses).text == "Hello"
    assert sum(pauses) == pytest.approx(0.5)


@table(
    ("headers", "waited"),
    [
        pytest.param({"Retry_After": "7"}, 7, id="seconds"),
        pytest.param({"Retry_After": "86400"}, 120, id="too_long"),
        pytest.param({"Retry_After": "soon"}, 0.5, id="nonsense"),
        pytest.param({"Retry_After": "-1"}, 0.5, id="negative"),
        pytest.param({"Retry_After": "nan"}, 0.5, id="not_a_number"),
    ],
)
def test_retry_after_is_honoured(headers: dict[str, str], waited: float) -> None:
    pauses = Pauses()
    assert ask(fails(429, **headers), says("Hello"), sleep=pauses).text == "Hello"
    assert sum(pauses) == pytest.approx(waited)


def test_the_error_after_the_last_attempt() -> None:
    with ModelServer(always=fails(500, "boiler\x1b[31m\u202e broke\n\n" + "x" * 900)) as server:
        pauses = Pauses()
        with pytest.raises(ModelUnavailable) as raised:
            model_at(server, attempts=4, sleep=pauses).ask(HELLO)
    told = str(raised.value)
    assert len(server.chats) == 4
    assert sum(pauses) == pytest.approx(0.5 + 1 + 2)
    assert told.startswith(f"small at {server.root_url.removeprefix('http://')} gave no reply: ")
    assert "the server returned status 500" in told
    assert "(4 tries)" in told
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
        pytest.param(fails(429, "insufficient_quota"), ("429", "no credit"), id="no_credit"),
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
        pytest.param(fails(500, "the request exceeds the available context size"), id="500"),
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
    with ModelServer(waits()) as server:
        with pytest.raises(Cancelled):
            model_at(server).ask(HELLO, cancelled=lambda: next(asked) > 3)
        assert server.hung_up.wait(LONGEST_S)
        for thread in threading.enumerate():
            if thread.name == "model request":
                thread.join(LONGEST_S)
                assert not thread.is_alive()


def test_cancelled_while_streaming() -> None:
    heard: list[str] = []
    with ModelServer(streamed(event({"content": "Hel"}), lingers=True)) as server:
        with pytest.raises(Cancelled):
            model_at(server).ask(HELLO, on_text=heard.append, cancelled=lambda: bool(heard))
        assert server.hung_up.wait(LONGEST_S)
    assert heard == ["Hel"]


def test_cancelled_between_two_attempts() -> None:
    pauses = Pauses()
    with ModelServer(fails(429, Retry_After="60"), says("Hello")) as server:
        with pytest.raises(Cancelled):
            model_at(server, sleep=pauses).ask(HELLO, cancelled=lambda: len(pauses) > 2)
        assert len(server.chats) == 1
    assert len(pauses) == 3


def test_an_error_in_on_text_is_raised_and_closes_the_connection() -> None:
    def on_text(_text: str) -> None:
        raise ValueError("the terminal is gone")

    with ModelServer(streamed(event({"content": "Hel"}), lingers=True)) as server:
        with pytest.raises(ValueError, match="terminal is gone"):
            model_at(server).ask(HELLO, on_text=on_text)
        assert server.hung_up.wait(LONGEST_S)


def test_a_server_that_sends_only_keep_alives_times_out() -> None:
    ticks = itertools.count(step=8)
    polls = itertools.count()
    with ModelServer(streamed(done=False, lingers=True, drip=b": busy\n\n")) as server:
        model = model_at(server, attempts=1, timeout_s=20, clock=lambda: float(next(ticks)))
        with pytest.raises(ModelUnavailable, match="no data for 20 seconds"):
            model.ask(HELLO, cancelled=lambda: next(polls) > 50)


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
REFUSALS = (
    "System message must be at the beginning.",
    "Only the first message can have the role 'system'",
    "Unexpected role 'system' after role 'assistant'",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "System role not supported",
)


def strict_server(refusal: str) -> Made:
    """Answer only if no system message stands after the first message."""

    def answer(received: Received) -> Answer:
        roles = [message["role"] for message in received.body["messages"]]
        return fails(400, refusal) if "system" in roles[1:] else says("Done.")

    return answer


class TestLaterSystemMessage:
    @table("refusal", REFUSALS)
    def test_it_is_sent_as_a_note_after_a_refusal(self, refusal: str) -> None:
        with ModelServer(always=strict_server(refusal)) as server:
            model = model_at(server)
            for _ in range(2):
                assert model.ask(LATER_SYSTEM, TOOLS).text == "Done."
            bodies = [received.body for received in server.requests]
        assert len(bodies) == 3  # one refusal
        assert bodies[0]["messages"] == LATER_SYSTEM
        for body in bodies[1:]:
            # What stands before the note is the same, so that the cache serves it.
            assert body["messages"][:3] == LATER_SYSTEM[:3]
            assert body["messages"][3]["role"] == "user"
            assert body["messages"][3]["content"].endswith("Review it.")
            assert body["tools"] == bodies[0]["tools"]
