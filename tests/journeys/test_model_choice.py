"""`run` and `review` without a configured model: the error names what is found, and the embedded
model is never used silently.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.model_server import ModelServer, says
from tests.program import Command

# The program, with this server's port in the place of the usual ones.
PROGRAM = """
from journeyman.models import discovery
discovery.PORTS.clear()
discovery.PORTS.update({ports})
from journeyman.cli import main
main()
"""

OWN = ("run", "Say hello.", "--with", "journeyman")


@pytest.fixture
def ollama() -> Iterator[ModelServer]:
    with ModelServer(says("Hello yourself.")) as server:
        server.pages["/v1/models"] = {"data": [{"id": "gemma3"}, {"id": "qwen3:8b"}]}
        yield server


def run(home: Path, server: ModelServer | None, *arguments: str, **more: str) -> tuple[int, str]:
    """Run the program in a workspace; return its exit code and everything it wrote."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    ports = {urlsplit(server.root_url).port if server else 1: "Ollama"}
    program = [sys.executable, "-c", PROGRAM.format(ports=ports), *arguments]
    environ = Command(home).environ | more
    done = subprocess.run(
        program, env=environ, cwd=work, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_it_says_what_it_found_and_how_to_choose(tmp_path: Path, ollama: ModelServer) -> None:
    code, said = run(tmp_path, ollama, *OWN, OPENROUTER_API_KEY="k")
    assert code == 2
    assert f"Ollama at {ollama.base_url}: gemma3, qwen3:8b" in said
    assert f"journeyman config set model.base_url {ollama.base_url}" in said
    assert "journeyman config set model.name gemma3" in said
    assert "an API key for OpenRouter (OPENROUTER_API_KEY)" in said
    assert not ollama.chats


def test_without_anything_it_says_how_to_configure_one(tmp_path: Path) -> None:
    for command in (OWN,):
        code, said = run(tmp_path, None, *command)
        assert code == 2, said
        assert "No model is configured" in said
        assert "journeyman config set model.name NAME" in said
        assert "--model embedded" in said
        assert "Looked for a server on this machine at the ports 1 (Ollama)" in said


def test_a_named_model_without_an_address(tmp_path: Path, ollama: ModelServer) -> None:
    code, said = run(tmp_path, ollama, "run", "Say hello.", "--model", "qwen3:8b")
    assert code == 2
    assert f"journeyman config set model.base_url {ollama.base_url}" in said
    assert "journeyman config set model.name qwen3:8b" in said

    code, said = run(tmp_path, ollama, "run", "Say hello.", "--model", "gpt-5-mini")
    assert code == 2
    assert "model.base_url is not set, and there is no API key" in said
    assert f"Ollama at {ollama.base_url}: gemma3, qwen3:8b" in said
    code, said = run(tmp_path, None, "run", "Say hello.", JOURNEYMAN_MODEL_NAME="qwen3:8b")
    assert code == 2
    assert "Looked for a server on this machine at the ports 1 (Ollama)" in said
    assert not ollama.chats


def test_a_job_without_an_agent_or_a_model_is_not_added(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.environ["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    said = command("jobs", "add", "every day 09:00", "Say hello.", code=2).stderr
    assert "npm install -g @anthropic-ai/claude-code" in said
    assert command.json("jobs", "list")["jobs"] == []
