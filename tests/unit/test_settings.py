"""Settings from the file, environment variables and defaults, and errors in them."""

from pathlib import Path

import pytest
from tests.tables import table

from journeyman.records.errors import BadSetting
from journeyman.settings import load


def write_config(home: Path, text: str) -> Path:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return home


def test_tables_and_variables(tmp_path: Path) -> None:
    home = write_config(tmp_path / "home", '[model]\nname = "m"\n[agent]\nturns = 3\n')
    settings = load({"JOURNEYMAN_AGENT_TURNS": "5", "JOURNEYMAN_REVIEW_ENABLED": "yes"}, home)
    assert settings.model.name == ""  # the file is in another home
    settings = load({"JOURNEYMAN_AGENT_TURNS": "5"}, tmp_path, home=home)
    assert (settings.model.name, settings.agent.turns) == ("m", 5)


@table(
    ("text", "expected"),
    [
        ("[model]\ncolour = 1", "model.colour"),
        ("model = 3", "'model', which is unknown"),
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
def test_invalid_setting_is_named(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(BadSetting, match=expected):
        load({}, tmp_path, home=write_config(tmp_path / "home", text))


def test_api_key_never_appears_in_messages(tmp_path: Path) -> None:
    home = write_config(tmp_path / "home", "[model]\napi_key = 123456789\n")
    with pytest.raises(BadSetting) as caught:
        load({}, tmp_path, home=home)
    assert "123456789" not in str(caught.value)
    settings = load({"JOURNEYMAN_MODEL_API_KEY": "sk-secret"}, tmp_path)
    assert settings.model.api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)


def test_openai_key_is_sent_only_to_openai(tmp_path: Path) -> None:
    usual = {"OPENAI_API_KEY": "k"}
    assert load(usual, tmp_path).model.api_key == "k"
    elsewhere = usual | {"JOURNEYMAN_MODEL_BASE_URL": "http://127.0.0.1:9/v1"}
    assert load(elsewhere, tmp_path).model.api_key == ""


def test_named_providers(tmp_path: Path) -> None:
    text = '[providers.fast]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "sk-secret"\n'
    settings = load({"OPENAI_API_KEY": "k"}, tmp_path, home=write_config(tmp_path / "home", text))
    assert settings.providers["fast"].base_url == "http://127.0.0.1:9/v1"
    assert settings.providers["fast"].api_key == "sk-secret"
    assert settings.model.api_key == "k"
    assert "sk-secret" not in repr(settings)
