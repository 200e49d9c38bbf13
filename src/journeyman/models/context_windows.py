"""Finds the context window of a model, from its endpoint or the price data."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from typing import TYPE_CHECKING

from journeyman.models.discovery import ask_endpoint

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot


LARGEST_WINDOW = 10**9

_Path = tuple[str, ...]

# Where endpoints list the context window of a model, the most reliable field first.
LISTED: tuple[_Path, ...] = (
    ("max_model_len",),  # vLLM, SGLang
    ("top_provider", "context_length"),  # OpenRouter: as served
    ("context_length",),  # OpenRouter, Together, Ollama: as loaded
    ("context_window",),  # Groq, Cerebras
    ("loaded_context_length",),  # LM Studio: as loaded
    ("max_context_length",),  # Mistral, LM Studio
    ("max_input_tokens",),  # Anthropic
    ("meta", "n_ctx"),  # llama.cpp
)

_PROPS: _Path = ("default_generation_settings", "n_ctx")
"""The window of one conversation, in the properties of llama.cpp."""

_Fetch = Callable[..., object]
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


def find_context_tokens(
    name: str, base_url: str, api_key: str = "", *, timeout_s: float = 5.0
) -> int | None:
    """Return the context window of a model in tokens, or None. Never raise; an endpoint has
    `timeout_s` for each answer.
    """
    url = base_url.rstrip("/")
    fetch = partial(_fetch, api_key=api_key, timeout_s=timeout_s)
    return _find_at_endpoint(name, url, fetch) or known_context_tokens(name, url)


def _fetch(url: str, payload: object = None, *, api_key: str, timeout_s: float) -> object:
    """Return what an endpoint answers, or None."""
    try:
        return ask_endpoint(url, api_key, payload=payload, timeout_s=timeout_s)
    except (OSError, HTTPException, ValueError):
        return None


def _find_at_endpoint(name: str, url: str, fetch: _Fetch) -> int | None:
    tokens = _tokens_at(_find_listed(fetch(f"{url}/models"), name, only_one=True), *LISTED)
    if tokens:
        return tokens
    with suppress(LookupError):
        # A provider with published prices is not a local server.
        if _price_data().find_provider(None, None, url):
            return None
    root = url.removesuffix("/v1")
    return (
        _tokens_at(fetch(f"{root}/props"), _PROPS)
        or _find_at_ollama(name, root, fetch)
        or _tokens_at(_find_listed(fetch(f"{root}/api/v0/models"), name), *LISTED)  # LM Studio
    )


def _find_at_ollama(name: str, root: str, fetch: _Fetch) -> int | None:
    """Return the window of a model at Ollama: as configured, else as loaded, else as trained."""
    description = fetch(f"{root}/api/show", {"model": name})
    if not isinstance(description, Mapping):
        return None
    if match := _NUM_CTX.search(str(description.get("parameters"))):
        return _plausible(int(match[1]))
    if loaded := _tokens_at(_find_listed(fetch(f"{root}/api/ps"), name), *LISTED):
        return loaded
    info = description.get("model_info")
    for key, value in info.items() if isinstance(info, Mapping) else ():
        if str(key).endswith(".context_length"):
            return _plausible(value)
    return None


def _find_listed(answer: object, name: str, *, only_one: bool = False) -> object:
    """Return the entry of a model in a list. With `only_one`, a single entry matches any name."""
    if isinstance(answer, Mapping):
        answer = answer.get("data") or answer.get("models")
    entries = answer if isinstance(answer, list) else []
    entries = [entry for entry in entries if isinstance(entry, Mapping)]
    if only_one and len(entries) == 1:
        return entries[0]
    bare_name = name.lower().removesuffix(":latest")
    for entry in entries:
        names = (str(entry.get(key, "")).lower() for key in ("id", "name", "model"))
        if bare_name in (listed.removesuffix(":latest") for listed in names):
            return entry
    return None


def _tokens_at(answer: object, *paths: _Path) -> int | None:
    for path in paths:
        value = answer
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if tokens := _plausible(value):
            return tokens
    return None


def _plausible(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= LARGEST_WINDOW else None


def known_context_tokens(name: str, url: str = "") -> int | None:
    """Return the context window of a model in tokens by the price data, which list it at the
    provider with this address or at the model's maker.
    """
    for model, address in ((name, url), (name, None), (name.rpartition("/")[2], None)):
        with suppress(LookupError):
            _, entry = _price_data().find_provider_model(model, None, None, address)
            if tokens := _plausible(entry.context_window):
                return tokens
    return None


def _price_data() -> "DataSnapshot":
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - loads slowly

    return get_snapshot()
