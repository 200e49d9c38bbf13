"""Finds the context window of a model, from its endpoint or the price data."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from journeyman.models.streaming_request import certificates, http

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot


LARGEST_WINDOW = 10**9

_Path = tuple[str, ...]

# Where endpoints list the context window of a model, the most reliable field first.
LISTED: tuple[_Path, ...] = (
    ("max_model_len",),  # vLLM, SGLang
    ("top_provider", "context_length"),  # OpenRouter: as served
    ("context_length",),  # OpenRouter, Together
    ("context_window",),  # Groq, Cerebras
    ("loaded_context_length",),  # LM Studio: as loaded
    ("max_context_length",),  # Mistral, LM Studio
    ("max_input_tokens",),  # Anthropic
    ("meta", "n_ctx"),  # llama.cpp
)

PROPS: _Path = ("default_generation_settings", "n_ctx")
"""The window of one conversation, in the properties of llama.cpp."""

_Fetch = Callable[..., object]
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


def find_context_tokens(
    name: str,
    base_url: str,
    api_key: str = "",
    *,
    timeout_s: float = 5.0,
) -> int | None:
    """Return the context window of a model in tokens, or None. Never raise; an endpoint has
    `timeout_s` for each answer.
    """
    url = base_url.rstrip("/")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        with http.Client(headers=headers, verify=certificates(), timeout=timeout_s) as client:

            def fetch(method: str, url: str, payload: object = None) -> object:
                """Return what the endpoint answers, or None."""
                try:
                    response = client.request(method, url, json=payload)
                    is_found = response.status_code == 200
                    return msgspec.json.decode(response.content) if is_found else None
                except (http.HTTPError, OSError, msgspec.DecodeError, RecursionError):
                    return None

            tokens = _find_at_endpoint(name, url, fetch)
    except (http.InvalidURL, ValueError):  # an address or a key that no request can carry
        tokens = None
    return tokens or known_context_tokens(name, url)


def _find_at_endpoint(name: str, url: str, fetch: _Fetch) -> int | None:
    listed = _find_listed(fetch("GET", f"{url}/models"), name, only_one=True)
    tokens = _tokens_at(listed, *LISTED)
    if tokens:
        return tokens
    with suppress(LookupError):
        # A provider with published prices is not a local server.
        if _price_data().find_provider(None, None, url):
            return None
    root = url.removesuffix("/v1")
    return (
        _tokens_at(fetch("GET", f"{root}/props"), PROPS)
        or _find_at_ollama(name, root, fetch)
        or _tokens_at(_find_listed(fetch("GET", f"{root}/api/v0/models"), name), *LISTED)
    )


def _find_at_ollama(name: str, root: str, fetch: _Fetch) -> int | None:
    """Return the window of a model at Ollama: as configured, else as loaded, else as trained."""
    description = fetch("POST", f"{root}/api/show", {"model": name})
    if not isinstance(description, Mapping):
        return None
    parameters = description.get("parameters")
    if isinstance(parameters, str) and (match := _NUM_CTX.search(parameters)):
        return _plausible(int(match[1]))
    if loaded := _tokens_at(_find_listed(fetch("GET", f"{root}/api/ps"), name), *LISTED):
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
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_WINDOW:
        return value
    return None


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
