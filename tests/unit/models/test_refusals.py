"""The words of refusals: each row is a test case."""

import pytest
from tests.tables import table

from journeyman.models.failure import Failure, excerpt
from journeyman.models.refusals import (
    ADJUSTMENTS,
    CONTEXT_FULL,
    NO_CREDIT,
    Adjustment,
    Wording,
    find_adjustment,
    says_one_of,
)


@table("row", CONTEXT_FULL + NO_CREDIT, ids=lambda row: row.id)
def test_each_row_fits_its_example(row: Wording) -> None:
    assert says_one_of((row,), row.example)


@table(
    "text",
    [
        "This endpoint's maximum context length is 32768 tokens.",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "input length and `max_tokens` exceed context limit: 199211 + 8192 > 200000",
        "request (9000 tokens) exceeds the available context size (4096 tokens)",
        "Your input exceeds the context window of this model.",
        "Input is too long for requested model.",
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    ],
)
def test_other_ways_to_say_that_it_does_not_fit(text: str) -> None:
    assert says_one_of(CONTEXT_FULL, text)


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
def test_what_is_no_full_window(text: str) -> None:
    assert not says_one_of(CONTEXT_FULL, text)


def test_a_busy_minute_is_no_lack_of_credit() -> None:
    assert not says_one_of(NO_CREDIT, "You exceeded your current quota, please retry in 12s.")


@table("row", ADJUSTMENTS, ids=lambda row: row.id)
def test_each_adjustment_fits_its_example(row: Adjustment) -> None:
    sent = [one.parameter for one in ADJUSTMENTS]
    assert find_adjustment(row.example, sent) is row
    assert find_adjustment(row.example, [one for one in sent if one != row.parameter]) is not row


def test_a_refusal_that_names_no_parameter() -> None:
    assert find_adjustment("no such model", ["stream", "max_tokens"]) is None


@table("status", [401, 403, 404, 429])
def test_other_reasons_go_before_the_window(status: int) -> None:
    full = "maximum context length"
    assert not Failure(told="", next_step="", status=status, body=full).is_context_full
    assert Failure(told="", next_step="", status=400, body=full).is_context_full


@table(
    ("text", "shown"),
    [
        pytest.param("one\n\n two\tthree", "one two three", id="one_line"),
        pytest.param("a\x1b[31mb\x00c\u202ed\u200be", "a [31mb c d e", id="controls"),
        pytest.param("half \udce4 character", "half character", id="half_characters"),
        pytest.param("the key is secret!", "the key is [api key]!", id="secret"),
        pytest.param("x" * 301, "x" * 299 + "…", id="long"),
        pytest.param("x" * 298 + "secret", "x" * 298 + "[…", id="secret_at_the_limit"),
    ],
)
def test_excerpt(text: str, shown: str) -> None:
    assert excerpt(text, "secret") == shown
