"""What a request costs by the price list."""

import pytest
from tests.tables import table

from journeyman.models.prices import estimated_cost
from journeyman.records import Tokens

MILLION = 1_000_000
USED = Tokens(input_tokens=MILLION, output_tokens=MILLION)
AT = 1_750_000_000.0  # in June 2025, so that later prices change nothing here


def cost(tokens: Tokens, model: str = "gpt-4o", base_url: str = "") -> float | None:
    return estimated_cost(model, tokens, base_url=base_url, at=AT)


def test_input_and_output_have_their_prices() -> None:
    assert cost(USED) == pytest.approx(2.5 + 10)


def test_what_the_cache_served_is_not_paid_twice() -> None:
    half = Tokens(input_tokens=MILLION, output_tokens=0, cache_read_tokens=MILLION)
    assert cost(half) == pytest.approx(2.5 + 1.25)


def test_what_the_cache_stored_has_its_own_price() -> None:
    stored = Tokens(input_tokens=0, output_tokens=0, cache_write_tokens=100_000)
    assert cost(stored, "claude-sonnet-4-5") == pytest.approx(0.375)


def test_reasoning_is_part_of_the_output() -> None:
    thought = Tokens(input_tokens=0, output_tokens=MILLION, reasoning_tokens=MILLION)
    assert cost(thought, "o3") == cost(Tokens(input_tokens=0, output_tokens=MILLION), "o3")


def test_the_provider_behind_the_address_sets_the_price() -> None:
    assert cost(USED, base_url="https://api.openai.com/v1") == pytest.approx(12.5)
    assert cost(USED, "openai/gpt-4o", "https://openrouter.ai/api/v1") == pytest.approx(12.5)


def test_a_model_on_a_server_of_ones_own_has_no_price() -> None:
    assert cost(USED, "gpt-oss-20b", "http://127.0.0.1:8080/v1") is None


@table("model", ["", "a-model-of-tomorrow", "\x00"], ids=repr)
def test_a_model_that_is_not_on_the_list(model: str) -> None:
    assert cost(USED, model) is None


@table(
    "tokens",
    [
        pytest.param(Tokens(), id="nothing"),
        pytest.param(Tokens(input_tokens=5), id="no_output"),
        pytest.param(Tokens(output_tokens=5), id="no_input"),
        pytest.param(Tokens(input_tokens=-5, output_tokens=1), id="negative"),
        pytest.param(Tokens(input_tokens=5, output_tokens=1, cache_read_tokens=-9), id="odd_cache"),
        pytest.param(Tokens(input_tokens=10**400, output_tokens=1), id="endless"),
    ],
)
def test_what_is_not_known_has_no_price(tokens: Tokens) -> None:
    assert cost(tokens) is None


@table("at", [1e300, float("nan"), -1e18], ids=repr)
def test_a_time_that_is_none(at: float) -> None:
    assert estimated_cost("gpt-4o", USED, at=at) is None


def test_without_a_time_it_is_now() -> None:
    assert estimated_cost("gpt-4o", USED)
