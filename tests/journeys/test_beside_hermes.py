"""Journeyman in the environment of a Hermes that is installed already: nothing of Hermes' changes,
and Journeyman works with the versions that Hermes pins. It needs the Python package index.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mcp_lines import connected
from tests.model_server import ModelServer, says
from tests.program import Command

import journeyman

HERMES = "hermes-agent[mcp]==0.19.0"
EXTRAS = "agent,mcp,confirm,jobs"
PROJECT = Path(journeyman.__file__).parents[2]
TIMEOUT_S = 900


def pip(python: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture(scope="module")
def hermes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with Hermes."""
    folder = tmp_path_factory.mktemp("hermes")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=TIMEOUT_S)
    python = folder / "bin" / "python"
    installed = pip(python, "install", "-q", HERMES)
    if installed.returncode:
        pytest.skip(f"{HERMES} cannot be installed here: {installed.stderr[-200:]}")
    return python


@pytest.mark.soak
@pytest.mark.timeout(2 * TIMEOUT_S)
def test_journeyman_moves_in_beside_hermes(hermes: Path, tmp_path: Path) -> None:
    before = {*pip(hermes, "freeze").stdout.split("\n")}
    installed = pip(hermes, "install", "-q", f"{PROJECT}[{EXTRAS}]")
    assert installed.returncode == 0, installed.stderr
    after = {*pip(hermes, "freeze").stdout.split("\n")}
    assert before <= after, f"changed or removed: {before - after}"
    assert {"openai==2.24.0", "mcp==1.26.0"} <= after
    checked = pip(hermes, "check")
    assert checked.returncode == 0, checked.stdout

    environ = Command(tmp_path).environ | {"PATH": f"{hermes.parent}:{os.environ['PATH']}"}
    program = str(hermes.with_name("journeyman"))
    with connected([program], environ, tmp_path) as client:
        tools = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        assert tools["opening"]["inputSchema"]["required"] == ["task"]
        assert tools["profile"]["annotations"]["readOnlyHint"] is True
        listed, is_error = client.call("warm_session", action="list")
        assert not is_error
        assert json.loads(listed)["templates"] == []
        assert client.call("opening") == (
            "opening needs task. task: The task of the session, in the words of the request.",
            True,
        )

    work = tmp_path / "work"
    work.mkdir()
    with ModelServer(says("The list is sorted.")) as server:
        asked = {
            "JOURNEYMAN_MODEL_NAME": "scripted",
            "JOURNEYMAN_MODEL_BASE_URL": server.base_url,
            "JOURNEYMAN_MODEL_CONTEXT_LENGTH": "100000",
        }
        ran = subprocess.run(
            [program, "run", "Is the list sorted?"],
            env=environ | asked,
            cwd=work,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert "The list is sorted." in ran.stdout
