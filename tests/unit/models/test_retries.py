"""Error messages of servers about a full context window."""

from tests.tables import table

from journeyman.models.retries import CONTEXT_FULL


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
