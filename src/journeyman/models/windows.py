"""How long a conversation a model can hold: what its endpoint says about it, else what the price
data says, else our own table. A server is asked in the few ways that servers know; the search takes
a limited time, and what cannot be found out is None.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import httpx2
import msgspec

from journeyman.models.known_windows import find_known_window
from journeyman.models.line import certificates

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

LARGEST_BODY = 16_000_000
LARGEST_WINDOW = 10**9


class Place(NamedTuple):
    """Where in an endpoint's answer about a model its window stands."""

    id: str
    path: tuple[str, ...]
    example: Mapping[str, object]
    reason: str


LISTED: tuple[Place, ...] = (
    Place("vllm", ("max_model_len",), {"max_model_len": 32768}, "vLLM, SGLang"),
    Place(
        "openrouter.provider",
        ("top_provider", "context_length"),
        {"context_length": 262144, "top_provider": {"context_length": 131072}},
        "OpenRouter: what the one who serves it gives, which can be less",
    ),
    Place("openrouter", ("context_length",), {"context_length": 65536}, "OpenRouter, Together"),
    Place("groq", ("context_window",), {"context_window": 131072}, "Groq, Cerebras"),
    Place(
        "lm_studio",
        ("loaded_context_length",),
        {"loaded_context_length": 4096, "max_context_length": 131072},
        "LM Studio: the room that the model has been given",
    ),
    Place("mistral", ("max_context_length",), {"max_context_length": 32768}, "Mistral, LM Studio"),
    Place("anthropic", ("max_input_tokens",), {"max_input_tokens": 200000}, "Anthropic"),
    Place("llama_cpp", ("meta", "n_ctx"), {"meta": {"n_ctx": 8192}}, "llama.cpp"),
)
"""In what an endpoint lists of a model, the surest place first."""

TRAINED: tuple[Place, ...] = (
    Place(
        "llama_cpp.trained",
        ("meta", "n_ctx_train"),
        {"meta": {"n_ctx_train": 8192}},
        "llama.cpp, where it tells no more",
    ),
)
"""What the model was made for; a local server may have given it less."""

PROPS: tuple[Place, ...] = (
    Place(
        "llama_cpp.props",
        ("default_generation_settings", "n_ctx"),
        {"default_generation_settings": {"n_ctx": 4096}},
        "llama.cpp: the room of one conversation",
    ),
)

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
            asked = _Asked(client, clock, clock() + timeout_s)
            found = _find_at_endpoint(name, url, asked)
    except (httpx2.InvalidURL, ValueError):  # an address or a key that no request can carry
        found = None
    return found or _find_in_price_data(name, url) or find_known_window(name)


class _Asked:
    """Questions to an endpoint that end in time; what is no answer is None."""

    def __init__(self, client: httpx2.Client, clock: Callable[[], float], deadline: float) -> None:
        self._client, self._clock, self._deadline = client, clock, deadline

    def __call__(self, method: str, url: str, sent: object = None) -> object:
        left = self._deadline - self._clock()
        if left <= 0:
            return None
        body = bytearray()
        try:
            with self._client.stream(method, url, json=sent, timeout=left) as response:
                if response.status_code != 200:
                    return None
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > LARGEST_BODY or self._clock() > self._deadline:
                        return None
            return msgspec.json.decode(body)
        except (httpx2.HTTPError, OSError, msgspec.DecodeError, RecursionError):
            return None


def _find_at_endpoint(name: str, url: str, asked: _Asked) -> int | None:
    listed = _find_served(asked("GET", f"{url}/models"), name)
    found = _at(LISTED, listed)
    if found or _is_provider(url):
        return found
    root = url.removesuffix("/v1")
    return (
        _at(PROPS, asked("GET", f"{root}/props"))
        or _find_at_ollama(name, root, asked)
        or _at(LISTED, _find_listed(asked("GET", f"{root}/api/v0/models"), name))
        or _at(TRAINED, listed)
    )


def _find_at_ollama(name: str, root: str, asked: _Asked) -> int | None:
    """The window in which Ollama runs a model: as its file sets it, else as it is loaded now, else
    as it was made.
    """
    shown = asked("POST", f"{root}/api/show", {"model": name})
    if not isinstance(shown, Mapping):
        return None
    parameters = shown.get("parameters")
    if isinstance(parameters, str) and (found := _NUM_CTX.search(parameters)):
        return _believed(int(found[1]))
    if loaded := _at(LISTED, _find_listed(asked("GET", f"{root}/api/ps"), name)):
        return loaded
    about = shown.get("model_info")
    for key, value in about.items() if isinstance(about, Mapping) else ():
        if str(key).endswith(".context_length"):
            return _believed(value)
    return None


def _find_listed(answer: object, name: str) -> object:
    """What a list of models says about one of them."""
    for one in _listed(answer):
        if any(_is_same(one.get(key), name) for key in ("id", "name", "model")):
            return one
    return None


def _find_served(answer: object, name: str) -> object:
    """The same; but a server with a single model takes any name for it."""
    listed = _listed(answer)
    return listed[0] if len(listed) == 1 else _find_listed(answer, name)


def _listed(answer: object) -> list[Mapping[str, object]]:
    if isinstance(answer, Mapping):
        answer = answer.get("data") or answer.get("models")
    return [one for one in answer if isinstance(one, Mapping)] if isinstance(answer, list) else []


def _is_same(listed: object, name: str) -> bool:
    """Whether two names mean one model: Ollama's latest version is named so, or it is left out."""
    if not isinstance(listed, str):
        return False
    return listed.lower().removesuffix(":latest") == name.lower().removesuffix(":latest")


def _at(places: Iterable[Place], answer: object) -> int | None:
    for place in places:
        value = answer
        for step in place.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if tokens := _believed(value):
            return tokens
    return None


def _believed(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= LARGEST_WINDOW else None


def _is_provider(url: str) -> bool:
    """Whether a company with a price list stands behind an address: no local server, then."""
    with suppress(LookupError):
        return bool(_price_data().find_provider(None, None, url))
    return False


def _find_in_price_data(name: str, url: str) -> int | None:
    """The window in the price data: as the provider at the address gives it, as the maker of the
    model does, or as OpenRouter lists it.
    """
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
