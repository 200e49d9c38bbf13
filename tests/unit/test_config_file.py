"""Edits of config.toml: one setting changes, and everything else stays as it was written."""

import stat
import tomllib
from pathlib import Path

import pytest
from tests.tables import table

from journeyman.config_file import set_value, unset_value
from journeyman.configuration import load
from journeyman.records.errors import BadSetting

WRITTEN = """\
# mine
busy_timeout_s = 5  # patience

[model]  # the fast one
# name = "old"
api_key = "a#b" # not a comment: the first one
temperature = 0.5

[agent]
harmless = [
    "ls",  # look
    "cat",
]
turns = 3"""


@table(
    ("key", "value", "before", "after"),
    [
        ("busy_timeout_s", 7.0, "busy_timeout_s = 5  #", "busy_timeout_s = 7.0  #"),
        ("model.api_key", "k", 'api_key = "a#b" #', 'api_key = "k" #'),
        ("model.name", "m", "= 0.5\n", '= 0.5\nname = "m"\n'),
        ("model.max_tokens", 9, "= 0.5\n", "= 0.5\nmax_tokens = 9\n"),
        ("agent.turns", 4, "turns = 3", "turns = 4"),
        (
            "agent.harmless",
            ("ls",),
            'harmless = [\n    "ls",  # look\n    "cat",\n]',
            'harmless = ["ls"]',
        ),
        ("review.enabled", True, "turns = 3", "turns = 3\n[review]\nenabled = true\n"),
        ("database", 'a"b', "\n\n[model]", '\ndatabase = "a\\"b"\n\n[model]'),
        (
            "opening.small_models",
            ("qwen3:4b",),
            "turns = 3",
            'turns = 3\n[opening]\nsmall_models = ["qwen3:4b"]\n',
        ),
    ],
)
def test_one_setting_changes(
    tmp_path: Path, key: str, value: object, before: str, after: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(WRITTEN)
    set_value(file, key, value)
    assert file.read_text() == WRITTEN.replace(before, after)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_settings_and_tables_are_removed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(WRITTEN + "\n[providers.desk]\nname = 'x'\n[providers.cloud]\nname = 'y'\n")
    for key in ("agent.harmless", "model.temperature", "providers.desk"):
        unset_value(file, key)
    assert file.read_text() == (
        WRITTEN.replace('harmless = [\n    "ls",  # look\n    "cat",\n]\n', "").replace(
            "temperature = 0.5\n", ""
        )
        + "\n[providers.cloud]\nname = 'y'\n"
    )
    with pytest.raises(BadSetting, match="does not set 'model'"):
        unset_value(tmp_path / "empty.toml", "model")


def test_a_table_on_one_line_is_edited_and_what_is_no_toml_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('model = {name = "m", temperature = 1}\n')
    set_value(file, "model.name", "n")
    assert file.read_text() == 'model = {name = "n", temperature = 1}\n'
    file.write_text("model = [")
    with pytest.raises(BadSetting, match="cannot be read"):
        set_value(file, "model.name", "n")


@table("written", ['model = "gpt-5"\n', '[[model]]\nname = "a"\n[[model]]\nname = "b"\n'])
def test_a_value_where_a_table_belongs_can_be_removed(tmp_path: Path, written: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"busy_timeout_s = 5\n{written}[agent]\nturns = 3\n")
    with pytest.raises(BadSetting, match=r"model is not a table\. `journeyman config unset model`"):
        set_value(file, "model.name", "n")
    unset_value(file, "model")
    set_value(file, "model.name", "n")
    expected = {"busy_timeout_s": 5, "agent": {"turns": 3}, "model": {"name": "n"}}
    assert tomllib.loads(file.read_text()) == expected


def test_a_byte_order_mark_is_no_part_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[agent]\nturns = 3\n", encoding="utf-8-sig")
    assert load({"JOURNEYMAN_HOME": str(tmp_path)}, tmp_path).settings.agent.turns == 3
    set_value(file, "agent.turns", 4)
    assert load({"JOURNEYMAN_HOME": str(tmp_path)}, tmp_path).settings.agent.turns == 4
