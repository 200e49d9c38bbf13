"""The one place that reads settings: flags over `JOURNEYMAN_*` variables over `config.toml` in
the home over defaults.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from journeyman.records.errors import BadSetting
from journeyman.store.address import sqlite_url
from journeyman.templates.mining.trivial_tools import TRIVIAL_TOOLS

HOME_VARIABLE = "JOURNEYMAN_HOME"


class Setting(NamedTuple):
    """One setting: its key in config.toml; its variable is JOURNEYMAN_ and the key in capitals."""

    key: str
    kind: type
    about: str

    @property
    def variable(self) -> str:
        return f"JOURNEYMAN_{self.key.upper()}"


SETTINGS = (
    Setting("database", str, "the database's URL; default sqlite:///<home>/journeyman.db"),
    Setting("busy_timeout_s", float, "seconds to wait for a locked SQLite database; default 30"),
    Setting(
        "trivial_tools",
        tuple,
        "a list of names: tools whose calls teach nothing; default clarify, memory, TodoWrite, …",
    ),
)


class Settings(Struct, frozen=True, kw_only=True):
    """The settings in force."""

    home: Path
    database: str
    busy_timeout_s: float = 30.0
    trivial_tools: tuple[str, ...] = TRIVIAL_TOOLS


def load(
    environ: Mapping[str, str],
    user_home: Path,
    *,
    home: Path | str | None = None,
    database: str | None = None,
) -> Settings:
    """The settings for this run. Raises BadSetting, naming the setting and where it stands."""
    folder = Path(home or environ.get(HOME_VARIABLE) or user_home / ".journeyman")
    try:
        folder = folder.expanduser().absolute()
    except RuntimeError as error:
        raise BadSetting(f"The home {folder} cannot be found: {error}") from error
    values: dict[str, Any] = {}
    for key, value in _from_file(folder / "config.toml").items():
        values[key] = _checked(key, value, f"{folder / 'config.toml'}")
    for setting in SETTINGS:
        if text := environ.get(setting.variable):
            values[setting.key] = _checked(setting.key, text, setting.variable)
    if database is not None:
        values["database"] = database
    values.setdefault("database", sqlite_url(folder / "journeyman.db"))
    return Settings(home=folder, **values)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(
            f"The settings in {path} cannot be read: {error}. Mend the file."
        ) from error


def _checked(key: str, value: Any, where: str) -> Any:
    for setting in SETTINGS:
        if setting.key == key:
            break
    else:
        known = ", ".join(setting.key for setting in SETTINGS)
        raise BadSetting(
            f"{where} sets {key!r}, which is not a setting. The settings are: {known}."
        )
    try:
        if setting.kind is str and not isinstance(value, str):
            raise ValueError("it is not a text")  # noqa: TRY301 - one message for all kinds
        if setting.kind is tuple:
            return _names(value)
        checked = setting.kind(value)
        if setting.kind is float and not 0 <= checked < float("inf"):
            raise ValueError("it is not a number of seconds")  # noqa: TRY301
    except (TypeError, ValueError) as error:
        raise BadSetting(
            f"{where} sets {key} to {value!r}, which cannot be used: it is {setting.about}."
        ) from error
    return checked


def _names(value: Any) -> tuple[str, ...]:
    """A list of names: in a file as a list, in a variable with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it is not a list of names")
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
