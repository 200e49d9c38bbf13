"""Error messages of servers, and when a request is retried."""

import pytest
from tests.tables import table

from journeyman.models.retries import (
    ADJUSTMENTS,
    CONTEXT_FULL,
    find_adjustment,
    find_retry_after,
)


@table(
    "text",
    [
        '{"error": {"code": "context_length_exceeded", "message": "…"}}',
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 213462 tokens > 200000 maximum",
        "too many tokens: size limit exceeded by 1200 tokens",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "Please reduce the length of the messages or completion.",
        "This endpoint's maximum context length is 32768 tokens.",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "input length and `max_tokens` exceed context limit: 199211 + 8192 > 200000",
        "request (9000 tokens) exceeds the available context size (4096 tokens)",
        "Your input exceeds the context window of this model.",
        "Input is too long for requested model.",
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    ],
)
def test_messages_about_a_full_window(text: str) -> None:
    assert CONTEXT_FULL.search(text)


@table(
    "text",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Invalid value for 'tools[0].function.name'",
        "Too many tokens per minute, slow down.",
        "Internal server error",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "The context of this call is unknown.",
    ],
)
def test_messages_that_do_not_mean_a_full_window(text: str) -> None:
    assert not CONTEXT_FULL.search(text)


@table(
    ("text", "parameter"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("Unsupported value: 'stream' does not support true with this model.", "stream"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature"),
    ],
)
def test_adjustments(text: str, parameter: str) -> None:
    sent = [one.parameter for one in ADJUSTMENTS]
    row = find_adjustment(text, sent)
    assert row is not None
    assert row.parameter == parameter
    assert find_adjustment(text, [one for one in sent if one != parameter]) is None


@table(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"retry-after": "3"}, 3, id="seconds"),
        pytest.param({"retry-after": "0.25"}, 0.25, id="fraction_of_a_second"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, None, id="date"),
        pytest.param({"retry-after": "-1"}, None, id="negative"),
        pytest.param({"retry-after": "nan"}, None, id="not_a_number"),
        pytest.param({"retry-after": "tomorrow"}, None, id="words"),
        pytest.param({"retry-after": ""}, None, id="empty"),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert find_retry_after(headers) == seconds
