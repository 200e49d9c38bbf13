"""`journeyman open`: what a new session should start with."""

import math
import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from journeyman.cli import asked, files, shown
from journeyman.cli.template_making import TYPE
from journeyman.journeyman import Journeyman
from journeyman.records.errors import BadTools, UnknownTemplate
from journeyman.settings import STYLES
from journeyman.templates.defaults import (
    BUDGET_TOKENS,
    FLOOR,
    MOST_OF_TEMPLATE,
    MOST_PATTERNS,
)
from journeyman.templates.files.strict_json import BadJson, read_json
from journeyman.templates.shown.opening import Form

if TYPE_CHECKING:
    from journeyman.templates.openings import Style

_ALL = "*"
_LARGEST_TOOLS = 20 * 1024 * 1024


def _similarity(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if math.isnan(value):  # which is neither below nor above anything
        raise click.BadParameter("nan is no number from 0 to 1")
    return value


@click.command(
    "open",
    epilog="""\b
Examples:
  journeyman open "Add a test for an amount split among people"
  journeyman open "Add a test for an amount split among people" --explain
  journeyman open "create a PR" --project ~/src/app --format text
  journeyman open --template web --format anthropic > opening.json
  journeyman open --type code --tag python --format text
  cat task.txt | journeyman open - --tools tools.json --budget 800""",
)
@click.argument("task", nargs=-1, metavar="[TASK]")
@click.option(
    "--project",
    metavar="NAME|DIR",
    help="Whose experience: a name or a folder; default the current folder's, * for all.",
)
@click.option("--template", metavar="NAME", help="Only examples of this template.")
@click.option("--type", "task_type", type=TYPE, help="Pick a template of this type.")
@click.option("--tag", "tags", multiple=True, help="Pick a template with this tag; repeatable.")
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Form)),
    default="openai",
    show_default=True,
    help="Whose messages; text is for hosts that take none.",
)
@click.option(
    "--budget",
    type=asked.COUNT,
    help=f"How many tokens it may cost, by estimate; default {BUDGET_TOKENS:,}.",
)
@click.option(
    "--max",
    "most",
    type=asked.COUNT,
    help=f"How many examples at most; default {MOST_PATTERNS}, or {MOST_OF_TEMPLATE} of a template "
    "without a task.",
)
@click.option(
    "--floor",
    type=click.FloatRange(0.0, 1.0),
    callback=_similarity,
    default=FLOOR,
    show_default=True,
    help="How similar to the task an example has to be.",
)
@click.option(
    "--style",
    type=click.Choice(STYLES),
    help="As text with one example, or as messages; default by model and tools.",
)
@click.option("--model", default="", help="The model that will read it: settings may name a style.")
@click.option(
    "--alike",
    is_flag=True,
    help="Only examples that show the same way of working: for small models.",
)
@click.option(
    "--tools",
    metavar="FILE",
    help="The session's tool definitions as JSON: what does not fit them is left out.",
)
@click.option("--explain", is_flag=True, help="Show what was chosen, what was not, and why.")
@asked.json_option
@click.pass_context
def open_(
    ctx: click.Context,
    *,
    task: tuple[str, ...],
    project: str | None,
    template: str | None,
    task_type: str | None,
    tags: tuple[str, ...],
    form: Form,
    budget: int | None,
    most: int | None,
    floor: float,
    style: "Style | None",
    model: str,
    alike: bool,
    tools: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Print what a new session on TASK should start with: the commands that work in this project
    and are likely to be needed, mistakes that recur, and the nearest earlier requests.

    The messages are printed for programs: put them after your system message and before the
    task. Where nothing fits, they are an empty list, and standard error says why. A dash reads TASK
    from standard input.
    """
    picks = task_type is not None or bool(tags)
    if template is not None and picks:
        raise click.UsageError("Name a template, or pick one with --type and --tag, not both.")
    if not task and template is None and not picks:
        raise click.UsageError("Say what the session is to do, or name a template.")
    if task == (files.STANDARD_INPUT,) and tools == files.STANDARD_INPUT:
        raise click.UsageError("Standard input is either the task or the tools, not both.")
    said = files.task_text(task)
    definitions = None if tools is None else _definitions(tools)
    journeyman = asked.opened(ctx)
    place = "" if project == _ALL else journeyman.project_named(project or ".")
    opening = journeyman.opening(
        said,
        project=place,
        tools=definitions,
        model=model,
        style=style,
        budget_tokens=budget,
        max_patterns=most,
        floor=floor,
        alike=alike,
        template=_picked(journeyman, task_type, tags) if picks else template,
        counted=not explain,
    )
    if project not in (None, _ALL) and not journeyman.sessions.list(project=place, limit=1):
        nearest = ", ".join(journeyman.sessions.nearest_projects(place))
        known = f" Known projects: {nearest}." if nearest else ""
        click.echo(f"No session belongs to project {place!r}.{known}", err=True)
    if explain and as_json:
        asked.print_json(opening)
        return
    # Loaded here, because a program that asks for messages needs no tables.
    from journeyman.cli import opening_shown  # noqa: PLC0415

    if explain:
        if budget is None and said.strip():
            budget = BUDGET_TOKENS
        opening_shown.show_explained(shown.console(), opening, budget=budget)
        return
    opening_shown.print_messages(opening, form, as_json=as_json)
    if opening.note:
        click.echo(opening.note, err=True)
    elif sys.stderr.isatty() and sys.stdout.isatty():
        commands = shown.many(len(opening.briefing.commands), "command")
        examples = shown.many(len(opening.patterns) + len(opening.briefing.episodes), "example")
        told = f"{commands}, {examples}, {opening.tokens:,} tokens"
        click.echo(f"{told}; --explain says why.", err=True)


def _definitions(name: str) -> Any:
    data = files.read(name, "tool definitions", most=_LARGEST_TOOLS)
    try:
        return read_json(data)
    except BadJson as error:
        where = "standard input" if name == files.STANDARD_INPUT else name
        raise BadTools(
            f"The tool definitions cannot be read from {where}: {error}. Give JSON: a list of "
            "definitions as OpenAI, Anthropic or MCP has them, or schemas by name."
        ) from error


def _picked(journeyman: Journeyman, task_type: str | None, tags: tuple[str, ...]) -> str:
    found = journeyman.templates.pick(task_type=task_type, tags=tags)
    if found is None:
        of_type = f" of type {task_type}" if task_type else ""
        with_tags = f" with the tag{'s' if len(tags) > 1 else ''} {', '.join(tags)}" if tags else ""
        raise UnknownTemplate(
            f"There is no template{of_type}{with_tags}. `journeyman templates list` shows what "
            "there is."
        )
    return f"{found.name}@{found.version}"
