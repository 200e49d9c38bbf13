"""Finds models that could be used here: servers on this machine's usual ports, and API keys in the
environment. Only this machine is asked; nothing is sent to a vendor.
"""

import http.client
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec import Struct

from journeyman.settings import VENDORS

_HOST = "127.0.0.1"
_TIMEOUT_S = 1.0
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
    """Return servers on this machine that list models, all asked at once, and then vendors whose
    API key is set.
    """
    with ThreadPoolExecutor(max_workers=max(1, len(ports))) as pool:
        listed = pool.map(lambda port: _listed_models(port, timeout_s), ports)
        servers = [
            FoundEndpoint(name=name, base_url=f"http://{_HOST}:{port}/v1", models=tuple(models))
            for (port, name), models in zip(ports.items(), listed, strict=True)
            if models
        ]
    vendors = [
        FoundEndpoint(name=name, base_url=base_url, key_variable=variable)
        for variable, (name, base_url) in VENDORS.items()
        if environ.get(variable, "").strip()
    ]
    return servers + vendors


def _listed_models(port: int, timeout_s: float) -> Sequence[str]:
    """Return the models that a server on this machine lists; none if it is not a model server."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=timeout_s)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            return ()
        document: Any = msgspec.json.decode(answer.read(_LARGEST_ANSWER))
        return [row["id"] for row in document["data"] if isinstance(row["id"], str) and row["id"]]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return ()
    finally:
        connection.close()
