"""Settings as a person meets them: `config`, and `doctor` with a broken configuration."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.model_server import ModelServer, fails
from tests.program import Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def home_of(command: Command) -> Path:
    home = command.home / ".journeyman"
    home.mkdir(mode=0o700, exist_ok=True)
    return home


def test_settings_are_set_shown_and_removed(command: Command) -> None:
    command("config", "set", "model.name", "qwen3:8b")
    said = command("config", "set", "model.api_key", "-", typed="sk-secret-value\n").stdout
    assert "sk-secret" not in said
    rows = {
        row["key"]: (row["value"], row["origin"])
        for row in command.json("config", "show", JOURNEYMAN_AGENT_TURNS="7")
    }
    assert rows["model.name"] == ("qwen3:8b", "file")
    assert rows["model.api_key"] == ("***", "file")
    assert rows["agent.turns"] == (7, "environment")
    assert rows["jobs.workers"] == (4, "default")
    listed = command.json("--database", "sqlite:////tmp/x.db", "config", "show", "database")
    assert [row["origin"] for row in listed] == ["flag"]
    said = command("config", "set", "agent.turns", 9, JOURNEYMAN_AGENT_TURNS="7").stdout
    assert "the variable JOURNEYMAN_AGENT_TURNS overrides it" in said
    command("config", "unset", "model.name")
    assert command.json("config", "show", "model.name")[0]["origin"] == "default"

    said = command("config", "set", "agent.turns", "many", code=2).stderr
    assert "agent.turns cannot be 'many'. Expected: a whole number, 1 or more: maximum" in said
    said = command("config", "set", "model.temperature", "hot", code=2).stderr
    assert "cannot be 'hot'. Expected: a number, 0 or more: sampling temperature" in said
    said = command("config", "set", "agent.truns", "3", code=2).stderr
    assert "'agent.truns' is not a setting. Did you mean 'agent.turns'?" in said


def test_one_wrong_setting_is_named_with_its_remedy(command: Command) -> None:
    file = home_of(command) / "config.toml"
    file.write_text('[model]\nnmae = "m"\n')
    said = command("sessions", "list", code=2).stderr
    assert "Did you mean 'model.name'? To fix it: `journeyman config unset model.nmae`" in said
    assert len(said) < 300
    command("config", "unset", "model.nmae")
    command("sessions", "list")


def test_doctor_outlives_what_it_reports(command: Command) -> None:
    """Each broken part is a finding with the command that mends it, and the rest is checked too."""
    home = home_of(command)
    file, database = home / "config.toml", home / "journeyman.db"
    cases: list[tuple[str, str, str, dict[str, str]]] = [
        ("[model]\nnmae = 1\n", "'model.nmae' is not a setting", "config unset model.nmae", {}),
        ("[agent]\nturns = []\n", "agent.turns cannot be []", "config unset agent.turns", {}),
        ("[agent\n", "cannot be read", f"mv {file} {file}.broken", {}),
        (
            "",
            "jobs.workers cannot be 'x'",
            "unset JOURNEYMAN_JOBS_WORKERS",
            {"JOURNEYMAN_JOBS_WORKERS": "x"},
        ),
        ("", "cannot be resolved", "export JOURNEYMAN_HOME=", {"JOURNEYMAN_HOME": "~nosuch/x"}),
    ]
    for text, found, advice, environ in cases:
        file.write_text(text)
        findings = command.json("doctor", code=1, **environ)
        problems = [row for row in findings if row["status"] == "problem"]
        assert len(problems) == 1
        assert found in problems[0]["found"]
        assert advice in problems[0]["advice"]
        assert {"database", "confinement", "extras"} <= {row["what"] for row in findings}
    file.write_bytes(b"\xff\xfe")
    assert ".broken" in problem(command, "settings")
    file.unlink()

    database.write_bytes(b"no database at all, but long enough to be one" * 20)
    assert problem(command, "database") == f"mv {database} {database}.damaged && journeyman import"
    database.unlink()
    command("sessions", "list")
    with sqlite3.connect(database, isolation_level=None) as other:
        other.execute("UPDATE schema_version SET number = 9999")
        moved = f"mv {database} {database}.damaged && journeyman import"
        assert problem(command, "database") == moved
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN EXCLUSIVE")
        assert problem(command, "database").startswith(f"fuser -v {database}")
        other.execute("ROLLBACK")
    other.close()
    database.unlink()
    shutil.rmtree(home)
    home.write_text("")
    assert problem(command, "home") == f"mv {home} {home}.old"


def problem(command: Command, what: str) -> str:
    findings = command.json("doctor", code=1)
    (found,) = [row for row in findings if (row["what"], row["status"]) == (what, "problem")]
    return str(found["advice"])


def model_finding(command: Command, *, code: int = 0, **environ: str) -> tuple[str, str, str]:
    (row,) = [row for row in command.json("doctor", code=code, **environ) if row["what"] == "model"]
    return row["status"], row["found"], row["advice"]


def test_doctor_asks_the_configured_model(command: Command) -> None:
    config = "journeyman config set model"
    with ModelServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "gemma3"}, {"id": "qwen3:latest"}]}
        environ = {"JOURNEYMAN_MODEL_BASE_URL": server.base_url}
        at = f"at {server.base_url}"
        for name in ("gemma3", "qwen3"):
            found = model_finding(command, JOURNEYMAN_MODEL_NAME=name, **environ)
            assert found == ("ok", f"{name} {at}", "")
        found = model_finding(command, JOURNEYMAN_MODEL_NAME="gemma4", **environ)
        others = "is not among the models that the endpoint lists: gemma3, qwen3:latest"
        assert found == ("note", f"gemma4 {at} {others}", f"{config}.name NAME")
        assert model_finding(command, **environ)[0] == "ok"  # none is needed
        environ["JOURNEYMAN_MODEL_NAME"] = "m"
        server.pages["/v1/models"] = fails(401)
        status, said, advice = model_finding(command, **environ)
        assert (status, advice) == ("note", f"{config}.api_key -")
        assert "does not list its models (HTTP 401)" in said
        del server.pages["/v1/models"]
        status, said, _ = model_finding(command, **environ)
        assert status == "note"
        assert "(HTTP 404)" in said
        assert not server.chats
    status, said, advice = model_finding(command, code=1, **environ)
    assert (status, said) == ("problem", f"m {at} cannot be reached: Connection refused")
    assert f"{config}.base_url" in advice


def test_advice_is_for_the_home_that_was_checked(command: Command, tmp_path: Path) -> None:
    other = tmp_path / "other home"
    other.mkdir(mode=0o700)
    (other / "journeyman.db").write_bytes(b"no database at all, but long enough to be one" * 20)
    rows = command.json("--home", other, "doctor", code=1)
    advice = {row["what"]: row["advice"] for row in rows}
    program = f"journeyman --home '{other}'"
    assert advice["database"].endswith(f"&& {program} import")
    assert f"{program} config set model.base_url " in advice["model"]
    assert f"{program} config set model.name " in advice["model"]
