"""`journeyman templates build` and `create`: templates made of sessions."""

from typing import get_args

import click

from journeyman.cli import asked, shown, templates_shown
from journeyman.records import PatternType
from journeyman.templates.defaults import (
    MAX_EXAMPLES,
    MAX_PATTERNS,
    MAX_SESSIONS,
    MIN_MESSAGES,
)

TYPE = click.Choice(get_args(PatternType))
AT_LEAST_ONE = click.IntRange(1, 1_000_000_000)

_tags = click.option("--tag", "tags", multiple=True, help="A tag for it; may be repeated.")
_description = click.option("--description", help="What it is for, for people.")
_addendum = click.option(
    "--addendum", help="A text of your own that models see beside the examples."
)


@click.command(
    epilog="""\b
Examples:
  journeyman templates build web
  journeyman templates build fixes --source claude_code --tag python --min-messages 8
  journeyman templates build here --project .
  journeyman templates build web --addendum "Our tests run with make test." --json"""
)
@click.argument("name")
@click.option(
    "--min-messages",
    type=asked.COUNT,
    default=MIN_MESSAGES,
    show_default=True,
    help="Only sessions this long.",
)
@click.option(
    "--max-sessions",
    type=AT_LEAST_ONE,
    default=MAX_SESSIONS,
    show_default=True,
    help="How many sessions that teach are used, newest first.",
)
@click.option(
    "--max-patterns",
    type=AT_LEAST_ONE,
    default=MAX_PATTERNS,
    show_default=True,
    help="How many patterns are kept, those seen most first.",
)
@asked.project_option
@click.option("--source", help="Only sessions of this recorder.")
@_tags
@_description
@_addendum
@asked.json_option
@click.pass_context
def build(
    ctx: click.Context,
    name: str,
    *,
    min_messages: int,
    max_sessions: int,
    max_patterns: int,
    project: str | None,
    source: str | None,
    tags: tuple[str, ...],
    description: str | None,
    addendum: str | None,
    as_json: bool,
) -> None:
    """Make a template from the newest long sessions that went well.

    What is new in them is learned first. Building the same NAME again makes a new version, with
    the tags and texts of the one before unless you give others (an empty text clears); the older
    ones stay.
    """
    library = asked.opened(ctx).templates
    with shown.counting_bar("Looking at sessions") as progress:
        made = library.build(
            name,
            min_messages=min_messages,
            max_sessions=max_sessions,
            max_patterns=max_patterns,
            project=project,
            source=source,
            tags=tags or None,
            description=description,
            addendum=addendum,
            progress=progress,
        )
    if as_json:
        asked.print_json(made)
    else:
        templates_shown.show_made(shown.console(), made)


@click.command(
    epilog="""\b
Examples:
  journeyman templates create 0442a060
  journeyman templates create 0442a060 --name release --type code --tag deploy"""
)
@click.argument("session")
@click.option("--name", help="What it is called (default: made of the session's title).")
@click.option("--type", "task_type", type=TYPE, help="Its type (default: that of the calls).")
@_tags
@_description
@_addendum
@click.option(
    "--max-examples",
    type=AT_LEAST_ONE,
    default=MAX_EXAMPLES,
    show_default=True,
    help="How many patterns are kept.",
)
@asked.json_option
@click.pass_context
def create(
    ctx: click.Context,
    session: str,
    *,
    name: str | None,
    task_type: str | None,
    tags: tuple[str, ...],
    description: str | None,
    addendum: str | None,
    max_examples: int,
    as_json: bool,
) -> None:
    """Make a template from one SESSION that went well."""
    made = asked.opened(ctx).templates.create(
        session,
        name=name,
        task_type=task_type,
        tags=tags,
        description=description or "",
        addendum=addendum or "",
        max_examples=max_examples,
    )
    if as_json:
        asked.print_json(made)
    else:
        templates_shown.show_made(shown.console(), made)
