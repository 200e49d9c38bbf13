"""Commands, options, arguments and settings do not change by accident: `interface.txt` lists them
all, hidden ones included.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from journeyman.cli import command_line
from journeyman.settings import SETTINGS

PUBLISHED = Path(__file__).parent / "interface.txt"


def interface() -> Iterator[str]:
    """Every command, option, argument and setting, one per line."""
    yield from _interface_of(command_line, "journeyman")
    for setting in SETTINGS:
        yield f"setting {setting.key} {setting.variable} {setting.also}"


def _interface_of(command: click.Command, path: str) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (f"{path} {name}" for name in (*parameter.opts, *parameter.secondary_opts))
        else:
            yield f"{path} ARGUMENT {parameter.human_readable_name}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield f"{path} {name}"
            yield from _interface_of(member, f"{path} {name}")


def test_nothing_published_is_missing_and_everything_is_listed() -> None:
    published = {line.strip() for line in PUBLISHED.read_text().splitlines()}
    existing = {line.strip() for line in interface()}
    missing, unlisted = sorted(published - existing), sorted(existing - published)
    assert not missing, "no longer there:\n" + "\n".join(missing)
    assert not unlisted, f"to add to {PUBLISHED.name}:\n" + "\n".join(unlisted)
