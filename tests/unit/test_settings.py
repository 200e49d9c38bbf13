"""Settings from the file, environment variables and defaults, and errors in them."""

from pathlib import Path

import pytest
from tests.tables import table

from journeyman.configuration import FLAG, load, read_configuration
from journeyman.records.errors import BadSetting


def write_config(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return home


def test_tables_and_variables(tmp_path: Path) -> None:
    home = write_config(tmp_path / "home", '[model]\nname = "m"\n[agent]\nturns = 3\n')
    settings = load(
        {"JOURNEYMAN_AGENT_TURNS": "5", "JOURNEYMAN_REVIEW_ENABLED": "yes"}, home
    ).settings
    assert settings.model.name == ""  # the file is in another home
    settings = load({"JOURNEYMAN_AGENT_TURNS": "5"}, tmp_path, home=home).settings
    assert (settings.model.name, settings.agent.turns) == ("m", 5)


@table(
    ("text", "expected"),
    [
        ("[model]\ncolour = 1", "model.colour"),
        ("model = 3", "'model' is not a setting"),
        ("[agent]\nturns = 0", "agent.turns cannot be 0"),
        ("[agent]\nturns = true", "agent.turns"),
        ("[agent]\nturns = 2.5", "agent.turns"),
        ("[agent]\nseconds = -1", "agent.seconds"),
        ("[review]\nenabled = 'perhaps'", "review.enabled"),
        ("[model]\nname = 5", "model.name"),
        ("[providers]\nfast = 3", "providers.NAME"),
        ("[providers.fast]\ncolour = 1", "model.colour"),
        ("[providers.fast]\ncontext_length = 0", r"\[providers.fast\]"),
    ],
)
def test_invalid_setting_is_named(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(BadSetting, match=expected):
        load({}, tmp_path, home=write_config(tmp_path / "home", text))


def test_api_key_never_appears_in_messages(tmp_path: Path) -> None:
    home = write_config(tmp_path / "home", "[model]\napi_key = 123456789\n")
    with pytest.raises(BadSetting) as caught:
        load({}, tmp_path, home=home)
    assert "123456789" not in str(caught.value)
    settings = load({"JOURNEYMAN_MODEL_API_KEY": "sk-secret"}, tmp_path).settings
    assert settings.model.api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)


def test_openai_key_is_sent_only_to_openai(tmp_path: Path) -> None:
    usual = {"OPENAI_API_KEY": "k"}
    assert load(usual, tmp_path).settings.model.api_key == "k"
    elsewhere = usual | {"JOURNEYMAN_MODEL_BASE_URL": "http://127.0.0.1:9/v1"}
    assert load(elsewhere, tmp_path).settings.model.api_key == ""


def test_named_providers(tmp_path: Path) -> None:
    text = '[providers.fast]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "sk-secret"\n'
    settings = load(
        {"OPENAI_API_KEY": "k"}, tmp_path, home=write_config(tmp_path / "home", text)
    ).settings
    assert settings.providers["fast"].base_url == "http://127.0.0.1:9/v1"
    assert settings.providers["fast"].api_key == "sk-secret"
    assert settings.model.api_key == "k"
    assert "sk-secret" not in repr(settings)


def test_an_unknown_setting_is_explained_in_one_line(tmp_path: Path) -> None:
    home = write_config(tmp_path / "home", '[model]\nnmae = "m"\n')
    with pytest.raises(BadSetting) as caught:
        load({"JOURNEYMAN_HOME": str(home)}, tmp_path)
    assert str(caught.value) == (
        f"In {home}/config.toml: 'model.nmae' is not a setting. Did you mean 'model.name'? "
        "To fix it: `journeyman config unset model.nmae`."
    )


def test_what_can_be_used_is_read_beside_what_cannot(tmp_path: Path) -> None:
    text = '[model]\nname = "m"\n[agent]\nturns = "many"\n[providers.desk]\ncolour = 1\n'
    home = write_config(tmp_path / "home", text)
    environ = {"JOURNEYMAN_HOME": str(home), "JOURNEYMAN_JOBS_WORKERS": "none"}
    found = read_configuration(environ, tmp_path, database="sqlite:///x.db")
    assert (found.settings.model.name, found.settings.agent.turns) == ("m", 40)
    assert found.origins == {"model.name": f"{home}/config.toml", "database": FLAG}
    assert [problem.fix for problem in found.problems] == [
        "journeyman config unset providers.desk",
        "journeyman config unset agent.turns",
        "unset JOURNEYMAN_JOBS_WORKERS",
    ]
    with pytest.raises(BadSetting, match="shows 2 more"):
        load(environ, tmp_path)
