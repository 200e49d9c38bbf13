"""Finding models that could be used: real servers on loopback, and keys in the environment."""

import socket
from urllib.parse import urlsplit

from tests.model_server import ModelServer, fails, sends, waits
from tests.waiting import LONGEST_S

from journeyman.models.discovery import (
    FoundEndpoint,
    ModelList,
    find_endpoints,
    list_models,
)

MODELS = "/v1/models"


def port_of(server: ModelServer) -> int:
    port = urlsplit(server.root_url).port
    assert port
    return port


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_servers_that_list_models_are_found() -> None:
    with ModelServer() as ollama, ModelServer() as web, ModelServer() as odd:
        ollama.pages[MODELS] = {"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "gemma3"}]}
        web.pages[MODELS] = sends("<html>no models here</html>", kind="text/html")
        odd.pages[MODELS] = {"data": [{"name": "no id"}]}
        servers = {"Ollama": ollama, "web": web, "odd": odd}
        ports = {port_of(server): name for name, server in servers.items()}
        found = find_endpoints({}, ports={**ports, free_port(): "none"}, timeout_s=LONGEST_S)
        assert found == [
            FoundEndpoint(name="Ollama", base_url=ollama.base_url, models=("qwen3:8b", "gemma3"))
        ]
        assert "authorization" not in ollama.requests[0].headers
        web.pages[MODELS] = waits()
        assert find_endpoints({}, ports={port_of(web): "silent"}, timeout_s=0.1) == []


def test_vendors_are_found_by_their_keys() -> None:
    environ = {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": " ", "GROQ_API_KEY": "k"}
    found = find_endpoints(environ, ports={})
    assert [(row.name, row.key_variable) for row in found] == [
        ("OpenRouter", "OPENROUTER_API_KEY"),
        ("Groq", "GROQ_API_KEY"),
    ]
    assert found[0].base_url == "https://openrouter.ai/api/v1"


def test_an_endpoint_is_asked_for_its_models_with_its_key() -> None:
    with ModelServer() as server:
        server.pages[MODELS] = {"data": [{"id": "m"}]}
        assert list_models(f"{server.base_url}/", "secret") == ModelList(models=("m",))
        assert server.requests[0].headers["authorization"] == "Bearer secret"


def test_why_an_endpoint_lists_no_models() -> None:
    with ModelServer() as server, ModelServer() as other:
        other.pages["/stolen"] = {"data": [{"id": "m"}]}
        answers: list[tuple[object, ModelList]] = [
            (fails(401), ModelList(status=401)),
            (fails(500), ModelList(status=500)),
            (sends("<html>", kind="text/html"), ModelList()),
            ({"data": "none"}, ModelList()),
            (waits(), ModelList(unreachable="no answer within 0.3 s")),
            (sends("", status=302, Location=f"{other.root_url}/stolen"), ModelList(models=("m",))),
        ]
        for page, expected in answers:
            server.pages[MODELS] = page
            # A time-out may be noticed by the connection itself or by whoever waits for it.
            timeout_s = 0.3 if expected.unreachable else LONGEST_S
            listed = list_models(server.base_url, "secret", timeout_s=timeout_s)
            assert listed == expected or "timed out" in listed.unreachable, page
        assert "authorization" not in other.requests[0].headers
    gone = list_models(f"http://127.0.0.1:{free_port()}/v1")
    assert gone.unreachable == "Connection refused"
    for address in ("file:///etc/v1", "127.0.0.1:11434", "http://[", "http://127.0.0.1:port/v1"):
        assert list_models(address).unreachable, address
