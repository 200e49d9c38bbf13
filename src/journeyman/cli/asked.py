"""What every command shares with programs: which Journeyman is meant, and answers as JSON."""

from typing import Any

import click
import msgspec

from journeyman.journeyman import Journeyman

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def opened(ctx: click.Context) -> Journeyman:
    """The Journeyman of this command, closed when the command ends."""
    chosen = ctx.find_root().obj
    journeyman = Journeyman(home=chosen["home"], database=chosen["database"])
    return ctx.with_resource(journeyman)


def print_json(value: Any) -> None:
    """One JSON document, indented for people who look at it too."""
    text = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2)
    click.echo(text.decode())
