"""Tokens from what servers report."""

from typing import Any

import pytest
from tests.tables import table

from journeyman.models.reported_usage import read_tokens
from journeyman.records import Tokens


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
            {"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64},
            Tokens(input_tokens=36, output_tokens=20, cache_read_tokens=64),
            id="deepseek",
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
            {
                "input_tokens": 10,
                "output_tokens": 20,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 50,
            },
            Tokens(input_tokens=10, output_tokens=20, cache_read_tokens=900, cache_write_tokens=50),
            id="anthropic",
        ),
        pytest.param(
            {
                "prompt_tokens": 960,
                "completion_tokens": 20,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 50,
            },
            Tokens(input_tokens=10, output_tokens=20, cache_read_tokens=900, cache_write_tokens=50),
            id="anthropic_behind_a_gateway",
        ),
        pytest.param(
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 64},
            },
            Tokens(input_tokens=36, output_tokens=20, cache_read_tokens=64),
            id="responses",
        ),
        pytest.param(
            {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 64},
            Tokens(input_tokens=36, output_tokens=20, cache_read_tokens=64),
            id="moonshot",
        ),
        pytest.param(
            {
                "prompt_tokens": 30,
                "completion_tokens": 9,
                "total_tokens": 339,
                "completion_tokens_details": {"reasoning_tokens": 300},
            },
            Tokens(input_tokens=30, output_tokens=309, reasoning_tokens=300),
            id="reasoning_beside_the_output",
        ),
        pytest.param(
            {"prompt_tokens": 0, "completion_tokens": 0, "cost": 0},
            Tokens(input_tokens=0, output_tokens=0, cost_usd=0.0),
            id="zero_is_known",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 11, "cache_write_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 6},
            },
            Tokens(input_tokens=6, output_tokens=5, cache_write_tokens=4),
            id="parts_that_are_more_than_the_whole",
        ),
        *(
            pytest.param({"cost": cost}, Tokens(), id=f"cost_{cost!r}")
            for cost in (-0.1, float("nan"), float("inf"), "0.1", True, None)
        ),
    ],
)
def test_shapes(usage: dict[str, Any], expected: Tokens) -> None:
    assert read_tokens(usage) == expected


def test_llama_cpp_names_the_cache_in_its_timings() -> None:
    timings = {"cache_n": 236, "prompt_n": 1, "predicted_n": 35}
    counted = Tokens(input_tokens=1, output_tokens=35, cache_read_tokens=236)
    assert read_tokens({"prompt_tokens": 237, "completion_tokens": 35}, timings) == counted
    assert read_tokens(None, timings) == counted


@table(
    "usage",
    [None, {}, [], "many", 7, {"prompt_tokens": None}, {"prompt_tokens_details": 3}],
    ids=repr,
)
def test_nothing_said_is_nothing_known(usage: object) -> None:
    assert read_tokens(usage, usage) == Tokens()


@table("nonsense", [-1, 1.5, "12", True, 10**30, [1], {"a": 1}], ids=repr)
def test_what_cannot_be_believed_is_unknown(nonsense: object) -> None:
    usage = {
        "prompt_tokens": nonsense,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": nonsense},
        "completion_tokens_details": {"reasoning_tokens": nonsense},
    }
    assert read_tokens(usage) == Tokens(output_tokens=3)
