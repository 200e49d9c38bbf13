"""Context windows of models, from servers and from the price data."""

import pytest
from tests.model_server import Answer, ModelServer, fails, sends
from tests.tables import table

from journeyman.models.context_windows import find_context_tokens

NOWHERE = "http://127.0.0.1:9/v1"  # a port on which no service runs


def found_window(pages: dict[str, object], name: str = "small") -> int | None:
    with ModelServer() as server:
        server.pages |= pages
        return find_context_tokens(name, server.base_url)


@table(
    ("fields", "tokens"),
    [
        ({"max_model_len": 32768}, 32768),
        ({"context_length": 262144, "top_provider": {"context_length": 131072}}, 131072),
        ({"context_length": 65536}, 65536),
        ({"meta": {"n_ctx": 8192}}, 8192),
    ],
)
def test_each_field_of_a_model_list(fields: dict[str, object], tokens: int) -> None:
    other = {"id": "other", "max_model_len": 1}
    assert found_window({"/v1/models": {"data": [other, {"id": "small", **fields}]}}) == tokens


@table(
    ("listed", "expected"),
    [
        pytest.param(
            {"data": [{"id": "/files/x.gguf", "max_model_len": 512}]}, 512, id="only_entry"
        ),
        pytest.param(
            {"data": [{"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2}]},
            None,
            id="not_listed",
        ),
        pytest.param({"data": [{"id": "small", "max_model_len": 0}]}, None, id="zero"),
        pytest.param({"data": [{"id": "small", "max_model_len": "512"}]}, None, id="text"),
        pytest.param({"data": [{"id": "small", "max_model_len": True}]}, None, id="boolean"),
        pytest.param({"data": [{"id": "small", "max_model_len": 10**12}]}, None, id="too_large"),
        pytest.param({"models": []}, None, id="no_data"),
        pytest.param(7, None, id="a_number"),
        pytest.param(sends("<html>", kind="text/html"), None, id="html"),
        pytest.param(fails(500), None, id="error"),
        pytest.param(Answer(is_cut=True, pieces=(b"{",)), None, id="cut_off"),
    ],
)
def test_model_lists(listed: object, expected: int | None) -> None:
    assert found_window({"/v1/models": listed}) == expected


def test_the_endpoint_takes_precedence_over_the_tables() -> None:
    listed = {"data": [{"id": "gpt-4o", "max_model_len": 4321}]}
    assert found_window({"/v1/models": listed}, "gpt-4o") == 4321


def test_an_endpoint_in_the_price_data_is_not_asked() -> None:
    assert find_context_tokens("gpt-4o", "https://api.openai.com/v1") == 128_000


@table(
    ("name", "tokens"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o", 128_000),
        ("claude-sonnet-4-5", 200_000),
        ("a-model-of-tomorrow", None),
        ("", None),
    ],
)
def test_the_price_data_is_the_fallback(name: str, tokens: int | None) -> None:
    assert find_context_tokens(name, NOWHERE) == tokens
