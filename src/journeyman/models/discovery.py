"""Finds models that could be used here: servers on this machine's usual ports, and API keys in the
environment. Only this machine is asked; nothing is sent to a vendor, except by `list_models`, which
asks the one endpoint that it is given.
"""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from journeyman.settings import VENDORS

_HOST = "127.0.0.1"
_TIMEOUT_S = 1.0
_ENDPOINT_TIMEOUT_S = 3.0
_LARGEST_ANSWER = 1_000_000
PORTS = {11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio", 8000: "vLLM"}
"""The usual ports of programs that serve models."""


class FoundEndpoint(Struct, frozen=True, kw_only=True):
    """An endpoint that could be used: a server here, which lists its `models`, or a vendor whose
    API key is in the environment variable `key_variable`.
    """

    name: str
    base_url: str
    models: tuple[str, ...] = ()
    key_variable: str = ""


def find_endpoints(
    environ: Mapping[str, str],
    *,
    ports: Mapping[int, str] = PORTS,
    timeout_s: float = _TIMEOUT_S,
) -> list[FoundEndpoint]:
    """Return servers on this machine that list models, and then vendors whose API key is set."""
    servers = []
    for port, name in ports.items():
        url = f"http://{_HOST}:{port}/v1"
        if models := list_models(url, timeout_s=timeout_s).models:
            servers.append(FoundEndpoint(name=name, base_url=url, models=models))
    vendors = [
        FoundEndpoint(name=name, base_url=base_url, key_variable=variable)
        for variable, (name, base_url) in VENDORS.items()
        if environ.get(variable, "").strip()
    ]
    return servers + vendors


def looked_for() -> str:
    """Return a sentence that says where `find_endpoints` looks."""
    ports = ", ".join(f"{port} ({name})" for port, name in PORTS.items())
    return f"Looked for a server on this machine at the ports {ports}, and for a vendor's API key."


class ModelList(Struct, frozen=True, kw_only=True):
    """What an endpoint answered to the question for its models: their names, or its `status` if
    that is an error, or the reason why there is no answer at all.
    """

    models: tuple[str, ...] = ()
    status: int = http.HTTPStatus.OK
    unreachable: str = ""


def list_models(
    base_url: str, api_key: str = "", *, timeout_s: float = _ENDPOINT_TIMEOUT_S
) -> ModelList:
    """Ask an endpoint for its models, which costs nothing."""
    try:
        document: Any = ask_endpoint(f"{base_url.rstrip('/')}/models", api_key, timeout_s=timeout_s)
    except urllib.error.HTTPError as error:
        return ModelList(status=error.code)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)  # of an URLError
        return ModelList(unreachable=getattr(reason, "strerror", None) or str(reason))
    names: list[object] = []
    with suppress(KeyError, TypeError):
        names = [row["id"] for row in document["data"]]
    return ModelList(models=tuple(name for name in names if isinstance(name, str) and name))


def ask_endpoint(
    url: str, api_key: str = "", *, payload: object = None, timeout_s: float
) -> object:
    """Return the JSON that an endpoint answers, to a POST if there is a `payload`; None if it is
    something else. Raise OSError (HTTPError for an error status), HTTPException or ValueError.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("the address has to begin with http:// or https://")
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    body = None if payload is None else msgspec.json.encode(payload)
    request = urllib.request.Request(address, body)  # noqa: S310 - the scheme is checked
    if api_key:
        # A redirection to another address must not take the key along.
        request.add_unredirected_header("Authorization", f"Bearer {api_key}")
    # No proxy is asked for this machine.
    proxies = urllib.request.ProxyHandler({} if parts.hostname == _HOST else None)
    with urllib.request.build_opener(proxies).open(request, timeout=timeout_s) as answer:
        received = answer.read(_LARGEST_ANSWER)
    try:
        return msgspec.json.decode(received)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
