"""The cost of requests according to the price list."""

import pytest
from tests.tables import table

from journeyman.models.prices import estimated_cost
from journeyman.records import Tokens

MILLION = 1_000_000
USED = Tokens(input_tokens=MILLION, output_tokens=MILLION)
STORED = Tokens(input_tokens=0, output_tokens=0, cache_write_tokens=100_000)
AT = 1_750_000_000.0  # in June 2025, so that later price changes have no effect on these tests


def cost(tokens: Tokens, model: str = "gpt-4o", base_url: str = "") -> float | None:
    return estimated_cost(model, tokens, base_url=base_url, at=AT)


@table(
    ("model", "tokens", "expected"),
    [
        ("gpt-4o", USED, 2.5 + 10),
        ("gpt-4o", Tokens(input_tokens=0, output_tokens=0, cache_read_tokens=MILLION), 1.25),
        ("claude-sonnet-4-5", STORED, 0.375),
        ("o3", Tokens(input_tokens=0, output_tokens=MILLION), 8),
        ("o3", Tokens(input_tokens=0, output_tokens=MILLION, reasoning_tokens=MILLION), 8),
    ],
    ids=["input_and_output", "cache_read", "cache_write", "output", "reasoning_is_output"],
)
def test_each_kind_of_token_has_its_price(model: str, tokens: Tokens, expected: float) -> None:
    assert cost(tokens, model) == pytest.approx(expected)


def test_the_price_depends_on_the_provider_at_the_address() -> None:
    assert cost(USED, base_url="https://api.openai.com/v1") == pytest.approx(12.5)
    assert cost(USED, "openai/gpt-4o", "https://openrouter.ai/api/v1") == pytest.approx(12.5)


def test_a_model_missing_from_the_price_list() -> None:
    assert cost(USED, "gpt-oss-20b", "http://127.0.0.1:8080/v1") is None
    for model in ("", "a-model-of-tomorrow", "\x00"):
        assert cost(USED, model) is None


@table(
    "tokens",
    [
        pytest.param(Tokens(), id="nothing"),
        pytest.param(Tokens(input_tokens=5), id="no_output"),
        pytest.param(Tokens(output_tokens=5), id="no_input"),
        pytest.param(Tokens(input_tokens=-5, output_tokens=1), id="negative"),
        pytest.param(Tokens(input_tokens=5, output_tokens=1, cache_read_tokens=-9), id="odd_cache"),
        pytest.param(Tokens(input_tokens=10**400, output_tokens=1), id="huge"),
    ],
)
def test_incomplete_or_invalid_counts_have_no_price(tokens: Tokens) -> None:
    assert cost(tokens) is None
