"""`journeyman config`: shows the settings and where each comes from, and edits the file."""

import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import click
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from journeyman import config_file
from journeyman.cli import context, formatting
from journeyman.cli.formatting import Column
from journeyman.configuration import FLAG, Configuration, checked_value
from journeyman.facade.journeyman import Journeyman
from journeyman.redaction.masking import mask_text
from journeyman.settings import BY_KEY, SECRETS, SETTINGS

_MASK = "***"


class ShownSetting(Struct, frozen=True):
    """A setting as it is shown: secrets are masked. `origin` is default, file, environment or flag;
    `set_by` names the file or the variable.
    """

    key: str
    value: Any
    origin: str
    set_by: str
    about: str


@click.group()
def config() -> None:
    """Show the settings and where each comes from; change the file config.toml.

    Flags override JOURNEYMAN_* variables, which override the file.
    """


def _shown_value(key: str, value: Any) -> Any:
    if key in SECRETS:
        return _MASK if value else value
    return mask_text(value) if isinstance(value, str) else value


def _shown_settings(configuration: Configuration) -> list[ShownSetting]:
    kinds = {"": "default", str(configuration.file): "file", FLAG: "flag"}
    rows = []
    for setting in SETTINGS:
        value = attrgetter(setting.key)(configuration.settings)
        set_by = configuration.origins.get(setting.key, "")
        origin = kinds.get(set_by, "environment")
        shown = _shown_value(setting.key, value)
        rows.append(ShownSetting(setting.key, shown, origin, set_by, setting.about))
    return rows


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{name} = {item}" for name, item in value.items()]
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _origin_cell(row: ShownSetting) -> Text:
    origin = row.set_by if row.origin == "environment" else row.origin
    return Text(origin, style="dim" if row.origin == "default" else "cyan")


def _show(console: Console, rows: Sequence[ShownSetting]) -> None:
    columns = (
        Column("setting", lambda row: row.key, no_wrap=True),
        Column("value", lambda row: _value_text(row.value)),
        Column("from", _origin_cell),
    )
    formatting.print_table(console, rows, columns, "")


@context.command(config, "show", render=_show, tolerant=True)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
def show(journeyman: Journeyman, *, keys: tuple[str, ...]) -> Sequence[ShownSetting]:
    """Show every setting, or those named: its value, and whether it is the default or which file,
    variable or flag sets it. Secrets are masked. Settings that cannot be used are reported, and
    shown with their defaults.

    Examples:
      journeyman config show
      journeyman config show model.name model.base_url
    """
    for problem in journeyman.configuration.problems:
        click.echo(f"{problem.what} To fix it: `{problem.fix}`", err=True)
    for key in filter(lambda key: key not in BY_KEY, keys):
        checked_value(key, "")
    rows = _shown_settings(journeyman.configuration)
    return [row for row in rows if not keys or row.key in keys]


def _overridden(configuration: Configuration, key: str) -> str:
    """Return a warning if something overrides what the file sets."""
    origin = configuration.origins.get(key, "")
    if not origin or origin == str(configuration.file):
        return ""
    what = "a flag" if origin == FLAG else f"the variable {origin}"
    return f" At the moment {what} overrides it."


@context.command(config, "set", message=lambda text: text, has_json=False, tolerant=True)
@click.argument("key")
@click.argument("value")
def set_(journeyman: Journeyman, *, key: str, value: str) -> str:
    """Set KEY to VALUE in config.toml. The value is checked first; comments in the file stay. Lists
    are separated by commas, addresses by spaces. A dash reads VALUE from standard input, so that a
    secret does not appear in the history of your shell.

    Examples:
      journeyman config set model.name qwen3:8b
      journeyman config set model.api_key -
    """
    if value == "-":
        is_terminal = sys.stdin.isatty()
        value = click.prompt(key, hide_input=True, err=True) if is_terminal else sys.stdin.read()
        value = value.strip()
    checked = checked_value(key, value)
    configuration = journeyman.configuration
    config_file.set_value(configuration.file, key, checked)
    shown = _value_text(_shown_value(key, checked))
    return f"{key} is {shown} in {configuration.file}.{_overridden(configuration, key)}"


@context.command(config, "unset", message=lambda text: text, has_json=False, tolerant=True)
@click.argument("key")
def unset(journeyman: Journeyman, *, key: str) -> str:
    """Remove KEY from config.toml, so that its default applies. This also removes a name that is
    not a setting, and a whole table such as providers.desk.

    Examples:
      journeyman config unset model.temperature
      journeyman config unset providers.desk
    """
    configuration = journeyman.configuration
    config_file.unset_value(configuration.file, key)
    return f"{key} is removed from {configuration.file}.{_overridden(configuration, key)}"
