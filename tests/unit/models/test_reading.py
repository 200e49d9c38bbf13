"""Replies read from events."""

from typing import Any

import pytest
from tests.tables import table

from journeyman.models.reading import NotAReply, ReplyReader, used_call_ids
from journeyman.records import Tokens


def read(*events: object) -> ReplyReader:
    reader = ReplyReader()
    for event in events:
        reader.take(event)
    return reader


def choice(delta: object, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **more}]}


END = choice({}, finish_reason="stop")


@table(
    ("delta", "text", "reasoning"),
    [
        pytest.param({"content": "Hi"}, "Hi", "", id="text"),
        pytest.param({"content": None}, "", "", id="none"),
        pytest.param({"content": 7}, "", "", id="number"),
        pytest.param({"content": [{"type": "text", "text": "Hi"}, 3]}, "Hi", "", id="parts"),
        pytest.param(
            {"content": [{"thinking": [{"text": "Hm"}]}, {"text": "Hi"}]}, "Hi", "Hm", id="thoughts"
        ),
        pytest.param({"reasoning_content": "Hm"}, "", "Hm", id="reasoning_content"),
        pytest.param({"reasoning": "Hm"}, "", "Hm", id="reasoning"),
        pytest.param({"reasoning_content": "Hm", "reasoning": "Hm"}, "", "Hm", id="both_names"),
        pytest.param({"content": None, "refusal": "No."}, "No.", "", id="refusal"),
        pytest.param("Hi", "", "", id="no_object"),
    ],
)
def test_what_is_said(delta: object, text: str, reasoning: str) -> None:
    reply = read(choice(delta), END).reply(())
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_text_is_handed_on_as_it_comes() -> None:
    reader = ReplyReader()
    assert [reader.take(one) for one in (choice({"content": "a"}), END, None)] == ["a", "", ""]


def test_only_the_first_choice_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}
    assert read(choice({"content": "one"}), other, END).reply(()).text == "one"


@table(
    ("said", "reason"),
    [("stop", "tool_calls"), ("function_call", "tool_calls"), ("length", "length")],
)
def test_the_reason_of_a_reply_with_calls(said: str, reason: str) -> None:
    call = {"index": 0, "id": "p", "function": {"name": "a", "arguments": "{}"}}
    reader = read(choice({"tool_calls": [call]}), choice({}, finish_reason=said))
    assert reader.reply(()).finish_reason == reason


@table(
    "event",
    [
        pytest.param({"choices": [], "usage": {"prompt_tokens": 5}}, id="usual"),
        pytest.param({"choices": [], "x_groq": {"usage": {"prompt_tokens": 5}}}, id="groq"),
        pytest.param(choice({}, usage={"prompt_tokens": 5}), id="moonshot"),
        pytest.param({"choices": [], "timings": {"prompt_n": 5}}, id="llama_cpp"),
    ],
)
def test_where_the_count_stands(event: object) -> None:
    assert read(END, event).reply(()).tokens == Tokens(input_tokens=5)


def test_the_last_count_wins() -> None:
    counts = [{"usage": {"completion_tokens": 1}}, {"usage": {"completion_tokens": 9}}]
    reader = read(END, *counts, {"usage": None})
    assert reader.reply(()).tokens == Tokens(output_tokens=9)


@table(
    ("events", "why"),
    [
        pytest.param([], "no choices", id="nothing"),
        pytest.param([{"choices": []}], "no choices", id="empty_choices"),
        pytest.param([choice({"content": "Hi"})], "broke off", id="no_reason"),
        pytest.param([choice({}, finish_reason="")], "broke off", id="empty_reason"),
        pytest.param([choice({"tool_calls": [{"id": "p"}]}), END], "without a name", id="nameless"),
    ],
)
def test_what_is_no_reply(events: list[object], why: str) -> None:
    with pytest.raises(NotAReply, match=why):
        read(*events).reply(())


def test_used_ids() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "p"}, {"id": None}, {}]},
        {"role": "assistant", "tool_calls": None},
        {"role": "tool", "tool_call_id": "q"},
    ]
    assert used_call_ids(messages) == {"p", "q"}
