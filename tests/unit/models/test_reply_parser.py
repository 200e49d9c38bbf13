"""Replies of OpenAI-compatible servers: their text, tool calls in pieces, and counted tokens."""

from typing import Any

import pytest
from tests.tables import table

from journeyman.models.reply_parser import (
    NotAReply,
    ReplyParser,
    read_tokens,
)
from journeyman.records import Tokens, ToolCall


def read(*events: object) -> ReplyParser:
    reader = ReplyParser()
    for event in events:
        reader.feed(event)
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
        pytest.param({"reasoning_content": "Hm"}, "", "Hm", id="reasoning_content"),
        pytest.param({"reasoning": "Hm"}, "", "Hm", id="reasoning"),
        pytest.param({"reasoning_content": "Hm", "reasoning": "Hm"}, "", "Hm", id="both_names"),
        pytest.param({"content": None, "refusal": "No."}, "No.", "", id="refusal"),
        pytest.param("Hi", "", "", id="not_an_object"),
    ],
)
def test_text_and_reasoning(delta: object, text: str, reasoning: str) -> None:
    reply = read(choice(delta), END).reply()
    assert (reply.text, reply.reasoning) == (text, reasoning)


@table(
    ("events", "why"),
    [
        pytest.param([], "not a chat reply", id="nothing"),
        pytest.param([{"choices": []}], "not a chat reply", id="empty_choices"),
        pytest.param([choice({"content": "Hi"})], "ended early", id="no_reason"),
        pytest.param([choice({}, finish_reason="")], "ended early", id="empty_reason"),
        pytest.param([choice({"tool_calls": [{"id": "p"}]}), END], "without a name", id="nameless"),
    ],
)
def test_invalid_replies(events: list[object], why: str) -> None:
    with pytest.raises(NotAReply, match=why):
        read(*events).reply()


def piece(
    index: object = None, call_id: object = None, name: object = None, arguments: object = None
) -> dict[str, Any]:
    given = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in given.items() if value is not None}


def put_together(*events: object, used: frozenset[str] = frozenset()) -> tuple[ToolCall, ...]:
    parser = ReplyParser(used)
    for event in events:
        parser.feed(choice({"tool_calls": event}))
    parser.feed(END)
    return parser.reply().tool_calls


A1 = ("a", '{"x": 1}')
B2 = ("b", '{"y": 2}')


@table(
    ("events", "expected"),
    [
        pytest.param(
            [
                [piece(0, "p", "a", "")],
                [piece(0, None, None, '{"x"')],
                [piece(0, None, None, ": 1}")],
            ],
            [("p", *A1)],
            id="as_openai_does",
        ),
        pytest.param(
            [
                [piece(0, "p", "a", '{"x"'), piece(1, "q", "b", '{"y": ')],
                [piece(1, None, None, "2}"), piece(0, None, None, ": 1}")],
            ],
            [("p", *A1), ("q", *B2)],
            id="two_at_once",
        ),
        pytest.param(
            [[piece(0, "p", *A1)], [piece(1, "q", *B2)]],
            [("p", *A1), ("q", *B2)],
            id="whole_calls",
        ),
        pytest.param(
            [[piece(0, "p", *A1), piece(0, "q", *B2)]],
            [("p", *A1), ("q", *B2)],
            id="whole_calls_under_one_index",
        ),
        pytest.param(
            [[piece(None, "p", "a", '{"x"')], [piece(None, None, None, ": 1}")]],
            [("p", *A1)],
            id="without_index_in_pieces",
        ),
        pytest.param([[piece(0, "p", "a")]], [("p", "a", "{}")], id="no_arguments"),
        pytest.param(
            [[piece(0, "p", "a", '{"x": ')]], [("p", "a", '{"x": ')], id="malformed_arguments"
        ),
    ],
)
def test_shapes_of_calls(events: list[object], expected: list[tuple[str, str, str]]) -> None:
    assert [(call.id, call.name, call.arguments) for call in put_together(*events)] == expected


@table(
    "events",
    [
        pytest.param([[piece(0, "p", *A1)], [piece(1, "p", *B2)]], id="one_id_two_indices"),
        pytest.param([[piece(0, "", *A1), piece(1, "", *B2)]], id="empty_ids"),
        pytest.param([[piece(0, 7, *A1), piece(1, 7, *B2)]], id="numeric_ids"),
    ],
)
def test_missing_or_duplicate_ids_are_replaced(events: list[object]) -> None:
    made = put_together(*events)
    assert [(call.name, call.arguments) for call in made] == [A1, B2]
    assert len({call.id for call in made} - {""}) == 2
    assert put_together(*events) == made


@table(
    ("usage", "expected"),
    [
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 12},
            },
            Tokens(input_tokens=36, output_tokens=20, cache_read_tokens=64, reasoning_tokens=12),
            id="openai",
        ),
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "cost": 0.0125,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
            },
            Tokens(
                input_tokens=10,
                output_tokens=20,
                cache_read_tokens=60,
                cache_write_tokens=30,
                cost_usd=0.0125,
            ),
            id="openrouter",
        ),
        pytest.param(
            {"prompt_tokens": 0, "completion_tokens": 0, "cost": 0},
            Tokens(input_tokens=0, output_tokens=0, cost_usd=0.0),
            id="zero_is_known",
        ),
        *(
            pytest.param({"cost": cost}, Tokens(), id=f"cost_{cost!r}")
            for cost in (-0.1, float("nan"), float("inf"), "0.1", True, None)
        ),
    ],
)
def test_shapes_of_usage(usage: dict[str, Any], expected: Tokens) -> None:
    assert read_tokens(usage) == expected
