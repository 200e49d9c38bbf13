"""What commands share in asking: which Journeyman is meant, which sessions, and answers as JSON."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import click
import msgspec

from journeyman.journeyman import Journeyman
from journeyman.logs.repositories import find_project
from journeyman.text.invisible import UNSEEN

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

_MOST_WORKERS = 64


class WholeNumber(click.IntRange):
    """A number in a range, called what people call it when it is none."""

    name = "whole number"


workers_option = click.option(
    "--workers",
    type=WholeNumber(1, _MOST_WORKERS),
    default=lambda: min(os.cpu_count() or 1, _MOST_WORKERS),
    show_default="all cores",
    metavar="N",
    help="How many processes share the work, if there is much.",
)

# Recorded text may hold what moves a cursor or turns text round. In JSON it stands only inside
# strings, where its escape means the same.
_UNSEEN = re.compile(f"[\x7f-\x9f\u2028\u2029{UNSEEN}]")

COUNT = click.IntRange(0, 1_000_000_000)

Chosen = dict[str, Any]
"""Which sessions are meant, as `Journeyman.sessions.list` takes it: only what was asked for."""


def opened(ctx: click.Context) -> Journeyman:
    """The Journeyman of this command, closed when the command ends."""
    chosen = ctx.find_root().obj
    journeyman = Journeyman(home=chosen["home"], database=chosen["database"])
    return ctx.with_resource(journeyman)


@contextmanager
def ending_workers() -> Iterator[None]:
    """A process that is told to end meanwhile first ends the workers that it has started."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def print_json(value: Any) -> None:
    """One JSON document, indented for people who look at it too."""
    text = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2)
    click.echo(escaped(text.decode()))


def escaped(json_text: str) -> str:
    """JSON text with everything escaped that a terminal might obey."""
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], json_text)


def _day(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        day = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a day like 2026-11-15") from error
    try:
        return (day if day.tzinfo else day.astimezone()).astimezone(UTC).timestamp()
    except (OverflowError, ValueError, OSError) as error:
        raise click.BadParameter(f"{value!r} is too far away") from error


def _project(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return find_project(value) if value and os.path.isdir(value) else value  # noqa: PTH112


project_option = click.option(
    "--project",
    callback=_project,
    metavar="NAME|DIR",
    help="Only sessions of this project: a name, or a folder (. for this one).",
)

_SESSION_OPTIONS = (
    project_option,
    click.option("--source", help="Only sessions of this recorder."),
    click.option("--model", help="Only sessions of this model."),
    click.option("--tag", help="Only sessions with this tag."),
    click.option("--since", callback=_day, metavar="DAY", help="Only sessions begun on or after."),
    click.option("--until", callback=_day, metavar="DAY", help="Only sessions begun before."),
    click.option("--min-messages", type=COUNT, help="Only sessions this long."),
    click.option("--no-subagents", is_flag=True, help="Leave out the sessions of subagents."),
)


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose sessions, handed to the command as `chosen`."""

    @wraps(command)
    def choosing(*args: Any, no_subagents: bool, **given: Any) -> None:
        names = ("project", "source", "model", "tag", "since", "until", "min_messages")
        values = {name: given.pop(name) for name in names}
        chosen: Chosen = {name: value for name, value in values.items() if value is not None}
        if no_subagents:
            chosen["subagents"] = False
        command(*args, chosen=chosen, **given)

    with_options: Callable[..., None] = choosing
    for option in reversed(_SESSION_OPTIONS):
        with_options = option(with_options)
    return with_options


def nothing_fits(journeyman: Journeyman, chosen: Chosen) -> str:
    """What to say where sessions are stored and none of them fits."""
    said = "No stored session fits these options: `journeyman sessions list`."
    if chosen.get("project") and not journeyman.sessions.list(project=chosen["project"], limit=1):
        nearest = journeyman.sessions.nearest_projects(chosen["project"])
        said += f" None belongs to project {chosen['project']!r}."
        said += f" Known projects: {', '.join(nearest)}." if nearest else ""
    return said
