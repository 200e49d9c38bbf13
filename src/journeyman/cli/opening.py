"""`journeyman open`: prints what a new session should start with."""

import json
import sys
from collections.abc import Callable
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, files, formatting
from journeyman.cli.context import choice, flag, number, option
from journeyman.experience.opening import Form, Opening
from journeyman.facade.journeyman import Journeyman
from journeyman.records import Pattern, PatternType
from journeyman.records.defaults import BUDGET_TOKENS, EXAMPLES
from journeyman.records.errors import UnknownTemplate, WrongInput
from journeyman.text.display import readable
from journeyman.text.strict_json import InvalidJson, read_json

_ALL_PROJECTS = "*"
_MAX_TOOLS_BYTES = 20 * 1024 * 1024
_INDENT = "   "

type_option = choice("--type", "Type of the template.", get_args(PatternType), dest="task_type")
all_tags_flag = flag("--all-tags", "Only templates with all of the tags, not just one of them.")


def _split_tags(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(tag for value in values for tag in value.split(",") if tag.strip())


def tags_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the option that takes tags, repeated or separated by commas."""
    declared = option(
        "--tag --tags TAG[,TAG…]",
        "Tag of the template; repeatable.",
        dest="tags",
        multiple=True,
        callback=_split_tags,
    )
    return declared(command)


@context.command(name="open")
@click.argument("task", nargs=-1, metavar="[TASK]")
@option(
    "--project NAME|DIR",
    "Project to draw on: a name or a folder, * for all (default: the current folder).",
)
@option("--template NAME", "Use this template, however little it resembles the task.")
@type_option
@tags_option
@all_tags_flag
@choice(
    "--format",
    "Format; text is also for hosts that accept no messages.",
    get_args(Form),
    dest="form",
    show_default="text on a terminal, else openai",
)
@number("--budget", f"Most tokens (default {BUDGET_TOKENS:,}; any for a template).", least=0)
@number("--max-patterns", f"Most examples (default {EXAMPLES}; all of a template).", least=0)
@option("--model", "Model that will read it; a setting names small models.", default="")
@flag("--small", "For a small model: examples only.")
@option("--tools FILE", "Tool definitions as JSON; examples that do not fit them are left out.")
@context.bots_option
@flag("--explain", "Show what was selected, and why.")
def open_(
    journeyman: Journeyman,
    *,
    task: tuple[str, ...],
    project: str | None,
    template: str | None,
    task_type: str | None,
    tags: tuple[str, ...],
    all_tags: bool,
    form: Form | None,
    tools: str | None,
    explain: bool,
    as_json: bool,
    small: bool,
    budget: int | None,
    **options: Any,
) -> None:
    """Print what a new session on TASK should start with: the facts of this project that it needs
    and, for small models and unfamiliar tools, the first calls of the nearest earlier requests.

    A terminal shows the text; a pipe gets the messages, for a program to insert after its system
    message and before the task. If nothing fits, it is empty, and standard error says why. A dash
    reads TASK from standard input.

    Examples:
      journeyman open "Add a test for an amount split among people" --explain
      journeyman open --template web --format anthropic > opening.json
      journeyman open --type code --tags python,tests --format text
      cat task.txt | journeyman open - --tools tools.json --budget 800
    """
    if task_type or tags:
        if template is not None:
            raise click.UsageError("Name a template, or pick one with --type and --tag, not both.")
        template = _pick_template(journeyman, task_type, tags, all_tags=all_tags)
    if not task and template is None:
        raise click.UsageError("Pass the task of the session, or name a template.")
    if task == (files.STANDARD_INPUT,) and tools == files.STANDARD_INPUT:
        raise click.UsageError("Standard input can be the task or the tools, not both.")
    place = "" if project == _ALL_PROJECTS else project or "."
    name = journeyman.project_named(place)
    if project not in (None, _ALL_PROJECTS) and (
        reason := journeyman.sessions.no_match(project=name)
    ):
        raise WrongInput(f"{reason} `--project '{_ALL_PROJECTS}'` uses all projects.")
    opening = journeyman.opening(
        files.task_text(task),
        project=place,
        budget_tokens=budget,
        tools=None if tools is None else _read_tool_definitions(tools),
        template=template,
        counted=not explain,
        small=small or None,
        **options,
    )
    if explain:
        context.print_result(opening, _show_explained, as_json=as_json)
    else:
        for_person = sys.stdout.isatty() and not as_json
        _print_messages(opening, form or ("text" if for_person else "openai"), as_json=as_json)


def _read_tool_definitions(name: str) -> Any:
    data = files.read(name, "tool definitions", max_bytes=_MAX_TOOLS_BYTES)
    try:
        return read_json(data)
    except InvalidJson as error:
        where = "standard input" if name == files.STANDARD_INPUT else name
        raise WrongInput(
            f"The tool definitions cannot be read from {where}: {error}. Supply JSON: a list of "
            "definitions in the OpenAI, Anthropic or MCP format."
        ) from error


def _pick_template(
    journeyman: Journeyman, task_type: str | None, tags: tuple[str, ...], *, all_tags: bool
) -> str:
    template = journeyman.templates.pick(task_type=task_type, tags=tags, all_tags=all_tags)
    if template is None:
        wanted = ", ".join(filter(None, (task_type, *tags)))
        hint = "`journeyman templates list` shows all templates."
        raise UnknownTemplate(f"There is no template for {wanted}. {hint}")
    return f"{template.name}@{template.version}"


def _print_messages(opening: Opening, form: Form, *, as_json: bool) -> None:
    """Print the opening to standard output, always as UTF-8, and a summary or the reason why it is
    empty to standard error.
    """
    messages = opening.messages(form)
    if isinstance(messages, str) and not as_json:
        text = readable(messages) if sys.stdout.isatty() else messages
    else:
        with_system = {"system": opening.system, "messages": messages}
        value = with_system if form == "anthropic" else messages
        # The standard library's encoder: arguments may contain integers of any length, and keys
        # keep their order.
        text = context.escape_json(json.dumps(value, ensure_ascii=False, indent=2))
    if text:
        click.echo(text.encode())
    if opening.note:
        click.echo(opening.note, err=True)
    if not opening.is_empty and sys.stderr.isatty() and sys.stdout.isatty():
        click.echo(f"{opening.summary}; --explain says why.", err=True)


def _show_explained(console: Console, opening: Opening) -> None:
    selected = f"Selected, {opening.tokens:,} tokens"
    console.print(Text("Nothing was selected" if opening.is_empty else selected, style="bold"))
    for fact in opening.facts:
        seen = formatting.pluralize(len(fact.sessions), "session")
        line = f"- {fact.kind}: {readable(fact.text)}"
        console.print(Text.assemble(line, (f"  ({seen})" if fact.sessions else "", "dim")))
    if opening.choices:
        formatting.print_heading(console, "Shown as messages")
        for number, choice in enumerate(opening.choices, start=1):
            show_pattern(console, choice.pattern, number=number, full=False)
            console.print(Text(f"{_INDENT}why: {readable(choice.reason)}", style="dim"))
    if opening.note:
        console.print(formatting.safe_text(opening.note))


def show_pattern(console: Console, pattern: Pattern, *, number: int, full: bool) -> None:
    """Show a pattern with its steps, each on two lines unless `full`."""
    head = Text(f"{number}. ", style="dim")
    head.append(readable(", ".join(pattern.tools)), style="bold")
    times = formatting.pluralize(pattern.times, "time")
    seen = f"seen {times} in {formatting.pluralize(pattern.session_count, 'session')}"
    console.print(head.append(f"  {seen}, {pattern.tokens:,} tokens", style="dim"))
    layout: dict[str, Any] = {"full": full, "indent": f"{_INDENT}  "}
    formatting.print_labelled(
        console, Text(_INDENT), pattern.intent or "(no request was recorded)", **layout
    )
    for step in pattern.steps:
        call = Text(f"{_INDENT}→ ", style="cyan").append(f"{readable(step.tool)} ", style="bold")
        formatting.print_labelled(console, call, step.arguments, **layout)
        label, result = Text(f"{_INDENT}  "), step.result or "(no output)"
        formatting.print_labelled(console, label, result, style="dim", **layout)
