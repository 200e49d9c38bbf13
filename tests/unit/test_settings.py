"""Settings: from the file, the variables and the defaults, and what is wrong with them."""

from pathlib import Path

import pytest
from tests.tables import table

from journeyman.records.errors import BadSetting
from journeyman.settings import load


def written(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return home


def test_tables_and_variables(tmp_path: Path) -> None:
    home = written(tmp_path / "home", '[model]\nname = "m"\n[agent]\nturns = 3\n')
    settings = load({"JOURNEYMAN_AGENT_TURNS": "5", "JOURNEYMAN_REVIEW_ENABLED": "yes"}, home)
    assert settings.model.name == ""  # of another home
    settings = load({"JOURNEYMAN_AGENT_TURNS": "5"}, tmp_path, home=home)
    assert (settings.model.name, settings.agent.turns) == ("m", 5)


@table(
    ("text", "said"),
    [
        ("[model]\ncolour = 1", "model.colour"),
        ("model = 3", "'model', which is not a setting"),
        ("[agent]\nturns = 0", "agent.turns to 0"),
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
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        load({}, tmp_path, home=written(tmp_path / "home", text))


def test_the_key_is_in_no_message(tmp_path: Path) -> None:
    home = written(tmp_path / "home", "[model]\napi_key = 123456789\n")
    with pytest.raises(BadSetting) as told:
        load({}, tmp_path, home=home)
    assert "123456789" not in str(told.value)
    settings = load({"JOURNEYMAN_MODEL_API_KEY": "sk-secret"}, tmp_path)
    assert settings.model.api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)


def test_the_usual_key_goes_to_its_own_service_only(tmp_path: Path) -> None:
    usual = {"OPENAI_API_KEY": "k"}
    assert load(usual, tmp_path).model.api_key == "k"
    elsewhere = usual | {"JOURNEYMAN_MODEL_BASE_URL": "http://127.0.0.1:9/v1"}
    assert load(elsewhere, tmp_path).model.api_key == ""


def test_other_endpoints_have_names(tmp_path: Path) -> None:
    text = '[providers.fast]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "sk-secret"\n'
    settings = load({"OPENAI_API_KEY": "k"}, tmp_path, home=written(tmp_path / "home", text))
    assert settings.providers["fast"].base_url == "http://127.0.0.1:9/v1"
    assert settings.providers["fast"].api_key == "sk-secret"
    assert settings.model.api_key == "k"
    assert "sk-secret" not in repr(settings)
