"""How long a conversation a model can hold, as its endpoint or the price data says, or None."""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2
import msgspec

from journeyman.models.line import certificates

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot


LARGEST_BODY = 16_000_000
LARGEST_WINDOW = 10**9

_Path = tuple[str, ...]

# Where the window of a model stands in what an endpoint lists of it, the surest place first.
LISTED: tuple[_Path, ...] = (
    ("max_model_len",),  # vLLM, SGLang
    ("top_provider", "context_length"),  # OpenRouter: what the one who serves it gives
    ("context_length",),  # OpenRouter, Together
    ("context_window",),  # Groq, Cerebras
    ("loaded_context_length",),  # LM Studio: the room that the model has been given
    ("max_context_length",),  # Mistral, LM Studio
    ("max_input_tokens",),  # Anthropic
    ("meta", "n_ctx"),  # llama.cpp
)
TRAINED: _Path = ("meta", "n_ctx_train")
"""What the model was made for, as llama.cpp lists it; the server may have given it less."""

PROPS: _Path = ("default_generation_settings", "n_ctx")
"""The room of one conversation, in the properties of llama.cpp."""

_Ask = Callable[..., object]
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


def find_context_tokens(
    name: str,
    base_url: str,
    api_key: str = "",
    *,
    timeout_s: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> int | None:
    """The window of a model in tokens, or None. Never raises; takes about `timeout_s` at most."""
    url = base_url.rstrip("/")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        with httpx2.Client(headers=headers, verify=certificates()) as client:
            deadline = clock() + timeout_s

            def ask(method: str, url: str, sent: object = None) -> object:
                """What the endpoint says in time; None where it is no answer."""
                left, body = deadline - clock(), bytearray()
                if left <= 0:
                    return None
                try:
                    with client.stream(method, url, json=sent, timeout=left) as response:
                        if response.status_code != 200:
                            return None
                        for piece in response.iter_bytes():
                            body += piece
                            if len(body) > LARGEST_BODY or clock() > deadline:
                                return None
                    return msgspec.json.decode(body)
                except (httpx2.HTTPError, OSError, msgspec.DecodeError, RecursionError):
                    return None

            found = _find_at_endpoint(name, url, ask)
    except (httpx2.InvalidURL, ValueError):  # an address or a key that no request can carry
        found = None
    return found or _find_in_price_data(name, url)


def _find_at_endpoint(name: str, url: str, asked: _Ask) -> int | None:
    listed = _find_listed(asked("GET", f"{url}/models"), name, served=True)
    found = _at(listed, *LISTED)
    if found:
        return found
    with suppress(LookupError):
        # A company with a price list stands behind the address: no local server, then.
        if _price_data().find_provider(None, None, url):
            return None
    root = url.removesuffix("/v1")
    return (
        _at(asked("GET", f"{root}/props"), PROPS)
        or _find_at_ollama(name, root, asked)
        or _at(_find_listed(asked("GET", f"{root}/api/v0/models"), name), *LISTED)
        or _at(listed, TRAINED)
    )


def _find_at_ollama(name: str, root: str, asked: _Ask) -> int | None:
    """The window of a model at Ollama: as set, else as it is loaded now, else as made."""
    shown = asked("POST", f"{root}/api/show", {"model": name})
    if not isinstance(shown, Mapping):
        return None
    parameters = shown.get("parameters")
    if isinstance(parameters, str) and (found := _NUM_CTX.search(parameters)):
        return _believed(int(found[1]))
    if loaded := _at(_find_listed(asked("GET", f"{root}/api/ps"), name), *LISTED):
        return loaded
    about = shown.get("model_info")
    for key, value in about.items() if isinstance(about, Mapping) else ():
        if str(key).endswith(".context_length"):
            return _believed(value)
    return None


def _find_listed(answer: object, name: str, *, served: bool = False) -> object:
    """What a list says about one model; one that is `served` alone goes by any name."""
    if isinstance(answer, Mapping):
        answer = answer.get("data") or answer.get("models")
    listed = [one for one in answer if isinstance(one, Mapping)] if isinstance(answer, list) else []
    if served and len(listed) == 1:
        return listed[0]
    wanted = name.lower().removesuffix(":latest")
    for one in listed:
        names = (str(one.get(key, "")).lower() for key in ("id", "name", "model"))
        if wanted in (named.removesuffix(":latest") for named in names):
            return one
    return None


def _at(answer: object, *places: _Path) -> int | None:
    for place in places:
        value = answer
        for step in place:
            value = value.get(step) if isinstance(value, Mapping) else None
        if tokens := _believed(value):
            return tokens
    return None


def _believed(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_WINDOW:
        return value
    return None


def _find_in_price_data(name: str, url: str) -> int | None:
    """The window as the provider at the address, the model's maker or OpenRouter has it."""
    prices = _price_data()
    bare = name.rpartition("/")[2]
    for model, provider, address in (
        (name, None, url),
        (name, None, None),
        (bare, None, None),
        (name, "openrouter", None),
    ):
        with suppress(LookupError):
            _, found = prices.find_provider_model(model, None, provider, address)
            if tokens := _believed(found.context_window):
                return tokens
    return None


def _price_data() -> "DataSnapshot":
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - loads slowly

    return get_snapshot()
