"""Context windows of models, from servers and from the price data."""

from typing import Any

import pytest
from tests.model_server import Answer, ModelServer, fails, sends
from tests.tables import table

from journeyman.models.context_windows import find_context_tokens

NOWHERE = "http://127.0.0.1:9/v1"  # a port on which no service runs


def found_window(pages: dict[str, object], name: str = "small", **chosen: Any) -> int | None:
    with ModelServer() as server:
        server.pages |= pages
        return find_context_tokens(name, server.base_url, "", **chosen)


@table(
    ("fields", "tokens"),
    [
        ({"max_model_len": 32768}, 32768),
        ({"context_length": 262144, "top_provider": {"context_length": 131072}}, 131072),
        ({"context_length": 65536}, 65536),
        ({"context_window": 131072}, 131072),
        ({"loaded_context_length": 4096, "max_context_length": 131072}, 4096),
        ({"max_context_length": 32768}, 32768),
        ({"max_input_tokens": 200000}, 200000),
        ({"meta": {"n_ctx": 8192}}, 8192),
    ],
)
def test_each_field_of_a_model_list(fields: dict[str, object], tokens: int) -> None:
    other = {"id": "other", "max_model_len": 1}
    assert found_window({"/v1/models": {"data": [other, {"id": "small", **fields}]}}) == tokens


def test_llama_cpp_properties() -> None:
    pages = {"/v1/models": {"data": [{"id": "small", "meta": {"n_ctx_train": 9}}]}}
    properties = {"default_generation_settings": {"n_ctx": 4096}}
    assert found_window({**pages, "/props": properties}) == 4096


@table(
    ("listed", "expected"),
    [
        pytest.param([{"id": "small", "context_length": 5000}], 5000, id="a_bare_list"),
        pytest.param(
            {"data": [{"id": "/files/x.gguf", "max_model_len": 512}]}, 512, id="only_entry"
        ),
        pytest.param(
            {"data": [{"id": "Small:latest", "max_model_len": 512}, {}]}, 512, id="similar_name"
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
        pytest.param({"data": "small"}, None, id="not_a_list"),
        pytest.param(7, None, id="a_number"),
        pytest.param(sends("<html>", kind="text/html"), None, id="html"),
        pytest.param(sends("[" * 100_000), None, id="nested_too_deeply"),
        pytest.param(fails(500), None, id="error"),
        pytest.param(Answer(is_cut=True, pieces=(b"{",)), None, id="cut_off"),
    ],
)
def test_model_lists(listed: object, expected: int | None) -> None:
    assert found_window({"/v1/models": listed}) == expected


OLLAMA: dict[str, object] = {
    "parameters": 'stop                           "<|end|>"\nnum_ctx                        8192\n',
    "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
}
LOADED = {"models": [{"name": "small:latest", "context_length": 4096}]}


@table(
    ("shown", "running", "expected"),
    [
        pytest.param(OLLAMA, LOADED, 8192, id="set"),
        pytest.param(OLLAMA | {"parameters": "stop x"}, LOADED, 4096, id="loaded"),
        pytest.param(
            OLLAMA | {"parameters": None},
            {"models": [{"name": "other", "context_length": 1}]},
            131072,
            id="trained",
        ),
        pytest.param({"model_info": 3, "parameters": 3}, None, None, id="nonsense"),
        pytest.param([1], None, None, id="a_list"),
    ],
)
def test_ollama(shown: object, running: object, expected: int | None) -> None:
    assert found_window({"/api/show": shown, "/api/ps": running}) == expected


def test_lm_studio_and_the_endpoint_take_precedence_over_the_tables() -> None:
    loaded = {"data": [{"id": "small", "loaded_context_length": 4096}, {"id": "b"}]}
    assert found_window({"/api/v0/models": loaded}) == 4096
    listed = {"data": [{"id": "gpt-4o", "max_model_len": 4321}]}
    assert found_window({"/v1/models": listed}, "gpt-4o") == 4321


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
    assert find_context_tokens(name, NOWHERE, timeout_s=1) == tokens
