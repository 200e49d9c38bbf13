"""What is known about the models of an endpoint: their names and context windows."""

import json
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any

from journeyman.models.model import JsonObject

_TIMEOUT_S = 5.0
_LARGEST_ANSWER = 1_000_000
LARGEST_WINDOW = 10**9

# Where common servers list the context window of a model, the most reliable field first.
_LISTED = (
    ("max_model_len",),  # vLLM
    ("top_provider", "context_length"),  # OpenRouter: as served
    ("context_length",),  # OpenRouter
    ("meta", "n_ctx"),  # llama.cpp
)


def find_context_tokens(name: str, base_url: str, api_key: str = "") -> int | None:
    """Return the context window of a model in tokens, or None: by the price data if they list this
    endpoint, else as the endpoint says, else by the price data of the model's maker.
    """
    entries: list[JsonObject] = []
    if tokens := _priced_tokens(name, base_url):
        return tokens
    with suppress(OSError, HTTPException, ValueError):
        entries = request_models(base_url, api_key)
    # A server with only one model answers to any name.
    named = [entry for entry in entries if len(entries) == 1 or entry.get("id") == name]
    for path in _LISTED if named else ():
        value: Any = named[0]
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if tokens := _plausible(value):
            return tokens
    return known_context_tokens(name)


def request_models(base_url: str, api_key: str = "") -> list[JsonObject]:
    """Return an endpoint's list of models, which costs nothing. Raise OSError (HTTPError for an
    error status), HTTPException or ValueError.
    """
    if not base_url.startswith(("http://", "https://")):
        raise ValueError("the address has to begin with http:// or https://")
    request = urllib.request.Request(f"{base_url.rstrip('/')}/models")  # noqa: S310 - checked
    if api_key:
        # A redirection to another address must not take the key along.
        request.add_unredirected_header("Authorization", f"Bearer {api_key}")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - checked
        document = json.loads(answer.read(_LARGEST_ANSWER))
    data = document.get("data") if isinstance(document, Mapping) else None
    return [entry for entry in data or () if isinstance(entry, Mapping)]


def known_context_tokens(name: str) -> int | None:
    """Return the context window of a model in tokens by the price data of its maker."""
    return _priced_tokens(name) or _priced_tokens(name.rpartition("/")[2])


def _priced_tokens(name: str, url: str | None = None) -> int | None:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - loads slowly

    with suppress(LookupError):
        _, entry = get_snapshot().find_provider_model(name, None, None, url)
        return _plausible(entry.context_window)
    return None


def _plausible(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None
