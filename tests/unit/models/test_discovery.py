"""Finding models that could be used: real servers on loopback, and keys in the environment."""

import socket
import time
from urllib.parse import urlsplit

from tests.model_server import ModelServer, sends, waits

from journeyman.models.discovery import PORTS, FoundEndpoint, find_endpoints

MODELS = "/v1/models"


def port_of(server: ModelServer) -> int:
    port = urlsplit(server.root_url).port
    assert port
    return port


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_servers_that_list_models_are_found_at_once() -> None:
    with (
        ModelServer() as ollama,
        ModelServer() as silent,
        ModelServer() as web,
        ModelServer() as odd,
    ):
        ollama.pages[MODELS] = {"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "gemma3"}]}
        silent.pages[MODELS] = waits()
        web.pages[MODELS] = sends("<html>no models here</html>", kind="text/html")
        odd.pages[MODELS] = {"data": [{"name": "no id"}]}
        servers = {"Ollama": ollama, "silent": silent, "web": web, "odd": odd}
        ports = {port_of(server): name for name, server in servers.items()}
        began = time.monotonic()
        found = find_endpoints({}, ports={**ports, free_port(): "none"}, timeout_s=0.5)
        assert time.monotonic() - began < 2.0
        assert found == [
            FoundEndpoint(name="Ollama", base_url=ollama.base_url, models=("qwen3:8b", "gemma3"))
        ]
        assert "authorization" not in ollama.requests[0].headers


def test_vendors_are_found_by_their_keys() -> None:
    environ = {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": " ", "GROQ_API_KEY": "k"}
    found = find_endpoints(environ, ports={})
    assert [(row.name, row.key_variable) for row in found] == [
        ("OpenRouter", "OPENROUTER_API_KEY"),
        ("Groq", "GROQ_API_KEY"),
    ]
    assert found[0].base_url == "https://openrouter.ai/api/v1"


def test_the_usual_ports() -> None:
    assert PORTS == {11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio", 8000: "vLLM"}
