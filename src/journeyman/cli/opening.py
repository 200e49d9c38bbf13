"""`journeyman open`: what a new session should start with."""

import json
import math
import sys
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, files, shown
from journeyman.cli.asked import flag, option
from journeyman.journeyman import Journeyman
from journeyman.records import Pattern, PatternType
from journeyman.records.errors import BadTools, UnknownTemplate
from journeyman.settings import STYLES
from journeyman.templates.defaults import BUDGET_TOKENS, FLOOR, MOST_OF_TEMPLATE, MOST_PATTERNS
from journeyman.templates.shown.briefing import episode_line, mistake_line
from journeyman.templates.shown.opening import Choice, Form, Opening
from journeyman.templates.strict_json import BadJson, read_json

TYPE = click.Choice(get_args(PatternType))
_ALL = "*"
_LARGEST_TOOLS = 20 * 1024 * 1024


@asked.command(name="open")
@click.argument("task", nargs=-1, metavar="[TASK]")
@option(
    "--project NAME|DIR",
    "Whose experience: a name or a folder; default the current folder's, * for all.",
)
@option("--template NAME", "Only examples of this template.")
@option("--type", "Pick a template of this type.", to="task_type", type=TYPE)
@option("--tag", "Pick a template with this tag; repeatable.", to="tags", multiple=True)
@option(
    "--format",
    "Whose messages; text is for hosts that take none.",
    to="form",
    type=click.Choice(get_args(Form)),
    default="openai",
)
@option(
    "--budget",
    f"How many tokens it may cost, by estimate; default {BUDGET_TOKENS:,}.",
    to="budget_tokens",
    type=asked.COUNT,
)
@option(
    "--max",
    f"How many examples at most; default {MOST_PATTERNS}, or {MOST_OF_TEMPLATE} of a template "
    "without a task.",
    to="max_patterns",
    type=asked.COUNT,
)
@option(
    "--floor",
    "How similar to the task an example has to be.",
    type=click.FloatRange(0.0, 1.0),
    default=FLOOR,
)
@option(
    "--style",
    "As text with one example, or as messages; default by model and tools.",
    type=click.Choice(STYLES),
)
@option("--model", "The model that will read it: settings may name a style.", default="")
@flag("--alike", "Only examples that show the same way of working: for small models.")
@option(
    "--tools FILE", "The session's tool definitions as JSON: what does not fit them is left out."
)
@flag("--explain", "Show what was chosen, what was not, and why.")
def open_(
    journeyman: Journeyman,
    *,
    task: tuple[str, ...],
    project: str | None,
    template: str | None,
    task_type: str | None,
    tags: tuple[str, ...],
    form: Form,
    tools: str | None,
    explain: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Print what a new session on TASK should start with: the commands that work in this project
    and are likely to be needed, mistakes that recur, and the nearest earlier requests.

    The messages are printed for programs: put them after your system message and before the
    task. Where nothing fits, they are an empty list, and standard error says why. A dash reads TASK
    from standard input.

    Examples:
      journeyman open "Add a test for an amount split among people"
      journeyman open "Add a test for an amount split among people" --explain
      journeyman open "create a PR" --project ~/src/app --format text
      journeyman open --template web --format anthropic > opening.json
      journeyman open --type code --tag python --format text
      cat task.txt | journeyman open - --tools tools.json --budget 800
    """
    picks = task_type is not None or bool(tags)
    if template is not None and picks:
        raise click.UsageError("Name a template, or pick one with --type and --tag, not both.")
    if not task and template is None and not picks:
        raise click.UsageError("Say what the session is to do, or name a template.")
    if task == (files.STANDARD_INPUT,) and tools == files.STANDARD_INPUT:
        raise click.UsageError("Standard input is either the task or the tools, not both.")
    if math.isnan(limits["floor"]):  # which is neither below nor above anything
        raise click.UsageError("--floor takes a number from 0 to 1.")
    said = files.task_text(task)
    definitions = None if tools is None else _definitions(tools)
    place = "" if project == _ALL else journeyman.project_named(project or ".")
    opening = journeyman.opening(
        said,
        project=place,
        tools=definitions,
        template=_picked(journeyman, task_type, tags) if picks else template,
        counted=not explain,
        **limits,
    )
    if project not in (None, _ALL) and not journeyman.sessions.list(project=place, limit=1):
        nearest = ", ".join(journeyman.sessions.nearest_projects(place))
        known = f" Known projects: {nearest}." if nearest else ""
        click.echo(f"No session belongs to project {place!r}.{known}", err=True)
    if explain and as_json:
        asked.print_json(opening)
        return
    if explain:
        usual = BUDGET_TOKENS if said.strip() else None
        budget = usual if limits["budget_tokens"] is None else limits["budget_tokens"]
        _show_explained(shown.console(), opening, budget)
        return
    _print_messages(opening, form, as_json=as_json)
    if opening.note:
        click.echo(opening.note, err=True)
    elif sys.stderr.isatty() and sys.stdout.isatty():
        told = f"{opening_in_brief(opening)}, {opening.tokens:,} tokens; --explain says why."
        click.echo(told, err=True)


def opening_in_brief(opening: Opening) -> str:
    examples = shown.many(len(opening.patterns) + len(opening.briefing.episodes), "example")
    commands = shown.many(len(opening.briefing.commands), "command")
    return f"{commands}, {examples}" if opening.briefing.commands else examples


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
        tagged = f" with the tag {', '.join(tags)}" if tags else ""
        look = "`journeyman templates list` shows what there is."
        raise UnknownTemplate(f"There is no template{of_type}{tagged}. {look}")
    return f"{found.name}@{found.version}"


_SHOWN_LEFT_OUT = 15


def _print_messages(opening: Opening, form: Form, *, as_json: bool) -> None:
    """The opening on standard output, in UTF-8 wherever that goes."""
    messages = opening.messages(form)
    if isinstance(messages, str) and not as_json:
        text = shown.plain(messages) if sys.stdout.isatty() else messages
    else:
        told = {"system": opening.system, "messages": messages}
        # The standard library's: arguments may hold numbers of any length, and keys keep their
        # order.
        value = told if form == "anthropic" else messages
        text = asked.escaped(json.dumps(value, ensure_ascii=False, indent=2))
    if text:
        click.echo(text.encode())


def _show_explained(console: Console, opening: Opening, budget: int | None) -> None:
    if opening.template:
        console.print(shown.cell(f"From the template {opening.template}."))
    of_budget = "" if budget is None else f" of {budget:,}"
    chosen = f"Chosen, {opening.tokens:,}{of_budget} tokens"
    console.print(Text("Nothing was chosen" if opening.is_empty else chosen, style="bold"))
    briefing = opening.briefing
    if briefing.commands:
        shown.head(console, "Commands, likeliest first")
        numbers = ("sessions", "worked")
        rows = (
            (one.sessions, f"{one.worked} of {one.worked + one.failed}", one.form)
            for one in briefing.commands
        )
        console.print(shown.table(*numbers, "command", numbers=numbers, rows=rows))
    for title, lines in (
        ("Mistakes that recur", [mistake_line(one) for one in briefing.mistakes]),
        ("Files that near requests used", briefing.files),
        ("In one line each", [episode_line(one) for one in briefing.episodes]),
    ):
        if lines:
            shown.head(console, title)
            console.print(*(Text(f"- {shown.plain(line)}") for line in lines), sep="\n")
    if opening.choices:
        shown.head(console, "Shown as messages")
        for number, choice in enumerate(opening.choices, start=1):
            show_choice(console, choice, number)
    if opening.note:
        console.print(shown.cell(opening.note))
    if opening.left_out:
        shown.head(console, f"{len(opening.left_out):,} looked at and left out")
        for row in opening.left_out[:_SHOWN_LEFT_OUT]:
            pattern = row.pattern
            similar = shown.UNKNOWN if row.similarity is None else f"{row.similarity:.2f}"
            tools = shown.one_line(_tools(pattern), console.width // 3)
            head = Text(f"{similar:>4}  {pattern.kind:9s}  ").append(f"{tools}: ", style="bold")
            shown.after(console, head, pattern.intent, full=False)
            console.print(Text(f"      {shown.plain(row.reason)}", style="dim"))
        shown.more(console, len(opening.left_out), _SHOWN_LEFT_OUT, ": --json has all")


def show_choice(console: Console, choice: Choice, number: int) -> None:
    show_pattern(console, choice.pattern, number=number, full=False)
    console.print(Text(f"{_INDENT}why: {shown.plain(choice.reason)}", style="dim"))


_INDENT = "   "


def show_pattern(console: Console, pattern: Pattern, *, number: int, full: bool) -> None:
    """A pattern with its steps, each on two lines unless all is asked for."""
    head = Text(f"{number}. ", style="dim").append(pattern.kind, style="bold cyan")
    head.append(f"  {_tools(pattern)}", style="bold")
    times = "once" if pattern.times == 1 else f"{pattern.times:,} times"
    seen = f"seen {times} in {shown.many(pattern.session_count, 'session')}"
    head.append(f"  {seen}, {pattern.tokens:,} tokens", style="dim")
    console.print(head)
    if pattern.quarantined:
        said = f"in quarantine ({shown.plain(pattern.quarantined)}): it is in no opening"
        console.print(Text(f"{_INDENT}{said}", style="red"))
    layout: dict[str, Any] = {"full": full, "indent": f"{_INDENT}  "}
    shown.after(console, Text(_INDENT), pattern.intent or "(no request was recorded)", **layout)
    for step in pattern.steps:
        call = Text(f"{_INDENT}→ ", style="cyan").append(f"{shown.plain(step.tool)} ", style="bold")
        shown.after(console, call, step.arguments, **layout)
        failed = Text("" if step.worked else "[did not work] ", style="red")
        head = Text(f"{_INDENT}  ").append_text(failed)
        shown.after(console, head, step.result or "(no output)", style="dim", **layout)


def _tools(pattern: Pattern) -> str:
    return shown.plain(", ".join(pattern.tools))
