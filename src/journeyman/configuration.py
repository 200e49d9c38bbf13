"""Reads the settings in force and where each comes from: command-line flags override `JOURNEYMAN_*`
variables, which override `config.toml` in the home, which overrides the defaults. What cannot be
used is reported with the command that mends it.
"""

import shlex
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from journeyman.records.errors import BadSetting
from journeyman.settings import (
    BY_KEY,
    HOME_VARIABLE,
    OPENAI,
    PROVIDERS,
    SECRETS,
    SETTINGS,
    TABLES,
    VENDORS,
    ModelSettings,
    Settings,
    convert,
    expected,
    sqlite_url,
)

CONFIG_FILE = "config.toml"
FLAG = "flag"
"""The origin of a setting that an option of the command line sets."""


class SettingProblem(Struct, frozen=True):
    """Something in the configuration that cannot be used, and the command that mends it."""

    what: str
    fix: str


class Configuration(Struct, frozen=True, kw_only=True):
    """The settings in force. A setting whose value cannot be used has its default, and is among the
    `problems`. `origins` names the file, the variable or the flag of each setting that has one.
    `program` is how Journeyman is called for this home from this shell.
    """

    settings: Settings
    origins: dict[str, str]
    problems: tuple[SettingProblem, ...]
    program: str

    @property
    def file(self) -> Path:
        return self.settings.home / CONFIG_FILE


def load(
    environ: Mapping[str, str],
    user_home: Path,
    *,
    home: Path | str | None = None,
    database: str | None = None,
) -> Configuration:
    """Return the settings for this run. Raise BadSetting with the setting and where it is set."""
    configuration = read_configuration(environ, user_home, home=home, database=database)
    if not configuration.problems:
        return configuration
    first, *others = configuration.problems
    more = f" `journeyman doctor` shows {len(others)} more." if others else ""
    raise BadSetting(f"{first.what} To fix it: `{first.fix}`.{more}")


def read_configuration(
    environ: Mapping[str, str],
    user_home: Path,
    *,
    home: Path | str | None = None,
    database: str | None = None,
) -> Configuration:
    """Read the file and the variables; report what is wrong instead of raising."""
    usual = user_home / ".journeyman"
    folder = Path(home or environ.get(HOME_VARIABLE) or usual)
    problems: list[SettingProblem] = []
    try:
        folder = folder.expanduser().absolute()
    except RuntimeError as error:
        what = f"The home {folder} cannot be resolved: {error}."
        problems.append(SettingProblem(what, f"export {HOME_VARIABLE}={shlex.quote(str(usual))}"))
        folder = folder.absolute()
    program = f"journeyman --home {shlex.quote(str(folder))}" if home else "journeyman"
    reader = _Reader(folder / CONFIG_FILE, f"{program} config")
    reader.read_file()
    reader.read_variables(environ)
    values, origins = reader.values, reader.origins
    if database is not None:
        values["database"], origins["database"] = database, FLAG
    values.setdefault("database", sqlite_url(folder / "journeyman.db"))
    if not values.get("model.api_key"):
        address = (values.get("model.base_url") or OPENAI).strip().rstrip("/")
        for variable, (_, base_url) in VENDORS.items():
            if address == base_url and (key := environ.get(variable)):
                values["model.api_key"], origins["model.api_key"] = key, variable
    tables: dict[str, dict[str, Any]] = {name: {} for name in ("", *TABLES)}
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        tables[table][name] = value
    nested: dict[str, Any] = {table: kind(**tables[table]) for table, kind in TABLES.items()}
    settings = Settings(home=folder, providers=reader.providers, **nested, **tables[""])
    problems += reader.problems
    return Configuration(
        settings=settings, origins=origins, problems=tuple(problems), program=program
    )


def checked_value(key: str, value: Any) -> Any:
    """Return a value as the type of its setting. Raise BadSetting."""
    if key not in BY_KEY:
        near = get_close_matches(key, BY_KEY, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}?" if near else "`journeyman config show` lists them."
        raise BadSetting(f"{key!r} is not a setting. {hint}")
    try:
        return convert(key, value)
    except ValueError as error:
        shown = "this value" if key in SECRETS else repr(value)
        raise BadSetting(f"{key} cannot be {shown}. Expected: {expected(key)}.") from error


class _Reader:
    """Collects values, their origins and what is wrong with them."""

    def __init__(self, file: Path, command: str) -> None:
        self._file, self._command = file, command
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.providers: dict[str, ModelSettings] = {}
        self.problems: list[SettingProblem] = []

    def read_file(self) -> None:
        written = self._written()
        self._read_providers(written.pop(PROVIDERS, {}))
        for key, value in _flat(written):
            self._set(key, value, str(self._file), f"{self._command} unset {shlex.quote(key)}")

    def read_variables(self, environ: Mapping[str, str]) -> None:
        for setting in SETTINGS:
            for variable in filter(None, (setting.also, setting.variable)):
                if text := environ.get(variable):
                    self._set(setting.key, text, variable, f"unset {variable}")

    def _set(self, key: str, value: Any, where: str, fix: str) -> None:
        try:
            self.values[key] = checked_value(key, value)
            self.origins[key] = where
        except BadSetting as error:
            self.problems.append(SettingProblem(f"In {where}: {error}", fix))

    def _read_providers(self, tables: Any) -> None:
        """Read the tables below `[providers]`, which have the keys of `[model]`."""
        if not isinstance(tables, dict):
            tables = {"": tables}
        for name, table in tables.items():
            try:
                self.providers[name] = _provider(table)
            except BadSetting as error:
                where = f"[{PROVIDERS}.{name}] in {self._file}"
                path = shlex.quote(f"{PROVIDERS}.{name}" if name else PROVIDERS)
                fix = f"{self._command} unset {path}"
                self.problems.append(SettingProblem(f"In {where}: {error}", fix))

    def _written(self) -> dict[str, Any]:
        file = shlex.quote(str(self._file))
        try:
            return tomllib.loads(self._file.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            fix = f"mv {file} {file}.broken"
            if isinstance(error, PermissionError):
                fix = f"chmod 600 {file}"
            what = f"The settings in {self._file} cannot be read: {error}."
            self.problems.append(SettingProblem(what, fix))
            return {}


def _provider(table: Any) -> ModelSettings:
    if not isinstance(table, dict):
        raise BadSetting(
            f"{PROVIDERS} has to consist of tables: [providers.NAME], and below it the keys of "
            "[model]."
        )
    return ModelSettings(**{key: checked_value(f"model.{key}", table[key]) for key in table})


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys prefixed with the names of their tables, and their values."""
    for key, value in values.items():
        if isinstance(value, Mapping) and f"{before}{key}" not in BY_KEY:
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
