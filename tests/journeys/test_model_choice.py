"""`run` and `review` without a configured model: what is found is offered, never the embedded model
silently.
"""

import os
import pty
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


@pytest.fixture
def ollama() -> Iterator[ModelServer]:
    with ModelServer(says("Hello yourself.")) as server:
        server.pages["/v1/models"] = {"data": [{"id": "gemma3"}, {"id": "qwen3:8b"}]}
        yield server


def run(
    home: Path, server: ModelServer | None, *arguments: str, typed: str | None = None, **more: str
) -> tuple[int, str]:
    """Run the program in a workspace, on a terminal if something is `typed`; return its exit code
    and everything it wrote.
    """
    work = home / "work"
    work.mkdir(exist_ok=True)
    ports = {urlsplit(server.root_url).port if server else 1: "Ollama"}
    program = [sys.executable, "-c", PROGRAM.format(ports=ports), *arguments]
    environ = Command(home).environ | more
    if typed is None:
        done = subprocess.run(
            program, env=environ, cwd=work, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    with subprocess.Popen(
        program, env=environ, cwd=work, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        output = b""
        while part := _read(ours):
            output += part
    os.close(ours)
    return process.returncode, output.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the program has closed its side
        return b""


def test_in_a_pipe_it_says_what_it_found_and_how_to_choose(
    tmp_path: Path, ollama: ModelServer
) -> None:
    code, said = run(tmp_path, ollama, "run", "Say hello.", OPENROUTER_API_KEY="k")
    assert code == 2
    assert f"Ollama at {ollama.base_url}: gemma3, qwen3:8b" in said
    assert f"journeyman config set model.base_url {ollama.base_url}" in said
    assert "journeyman config set model.name gemma3" in said
    assert "an API key for OpenRouter (OPENROUTER_API_KEY)" in said
    assert not ollama.chats


def test_without_anything_it_says_how_to_configure_one(tmp_path: Path) -> None:
    for command in (("run", "Say hello."), ("review", "some-session")):
        code, said = run(tmp_path, None, *command)
        assert code == 2, said
        assert "No model is configured" in said
        assert "journeyman config set model.name NAME" in said
        assert "--model embedded" in said
        assert "Looked for a server on this machine at the ports 1 (Ollama)" in said


def test_a_named_model_is_used_where_this_machine_lists_it(
    tmp_path: Path, ollama: ModelServer
) -> None:
    code, said = run(tmp_path, ollama, "run", "Say hello.", "--model", "qwen3:8b")
    assert code == 0, said
    assert f"Using qwen3:8b of Ollama at {ollama.base_url}, which lists it." in said
    assert ollama.chats[0]["model"] == "qwen3:8b"
    assert not (tmp_path / ".journeyman" / "config.toml").exists()

    code, said = run(tmp_path, ollama, "run", "Say hello.", "--model", "gpt-5-mini")
    assert code == 2
    assert "model.base_url is not set, and there is no API key" in said
    assert f"Ollama at {ollama.base_url}: gemma3, qwen3:8b" in said
    code, said = run(tmp_path, None, "run", "Say hello.", JOURNEYMAN_MODEL_NAME="qwen3:8b")
    assert code == 2
    assert "Looked for a server on this machine at the ports 1 (Ollama)" in said
    assert len(ollama.chats) == 1


def test_a_question_can_be_left_without_an_answer(tmp_path: Path, ollama: ModelServer) -> None:
    code, said = run(tmp_path, ollama, "run", "Say hello.", typed="\x04")  # Ctrl-D
    assert code == 1, said
    assert "Interrupted." in said
    assert "Not confirmed" not in said


def test_on_a_terminal_it_asks_and_remembers(tmp_path: Path, ollama: ModelServer) -> None:
    code, said = run(tmp_path, ollama, "run", "Say hello.", typed="2\ny\n")
    assert code == 0, said
    assert "2. qwen3:8b (Ollama)" in said
    assert "Hello yourself." in said
    assert ollama.chats[0]["model"] == "qwen3:8b"

    ollama.then(says("Hello again."))
    code, said = run(tmp_path, None, "run", "Say hello.")
    assert code == 0, said
    assert "Hello again." in said
    assert (tmp_path / ".journeyman" / "config.toml").read_text() == (
        f'[model]\nbase_url = "{ollama.base_url}"\nname = "qwen3:8b"\n'
    )


def test_a_choice_can_be_for_once(tmp_path: Path, ollama: ModelServer) -> None:
    code, said = run(tmp_path, ollama, "run", "Say hello.", typed="\nn\n")
    assert code == 0, said
    assert ollama.chats[0]["model"] == "gemma3"
    assert not (tmp_path / ".journeyman" / "config.toml").exists()


def test_a_job_without_a_model_is_blocked_and_says_so(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command("jobs", "add", "every day 09:00", "Say hello.", "--name", "greeting")
    row = command.json("jobs", "run", "greeting", code=1)
    assert row["status"] == "blocked"
    assert "No model is configured" in row["reason"]
