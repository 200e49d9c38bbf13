"""How an opening looks: as messages for programs, and explained for people."""

import json
import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import asked, patterns_shown, shown
from journeyman.templates.examples import call_line
from journeyman.templates.shown.briefing import Briefing, episode_line, mistake_line
from journeyman.templates.shown.opening import Choice, Form, LeftOut, Opening

_SHOWN_LEFT_OUT = 15
_LONGEST_KIND = len("first_try")


def print_messages(opening: Opening, form: Form, *, as_json: bool) -> None:
    """The opening on standard output, in UTF-8 wherever that goes."""
    messages = opening.messages(form)
    if isinstance(messages, str):
        if as_json:
            _print(_json(messages))
        elif messages:
            _print(shown.plain(messages) if sys.stdout.isatty() else messages)
    elif form == "anthropic":
        _print(_json({"system": opening.system, "messages": messages}))
    else:
        _print(_json(messages))


def _print(text: str) -> None:
    click.echo(text.encode())


def _json(value: object) -> str:
    # The standard library's: arguments may hold numbers of any length, and keys keep their order.
    return asked.escaped(json.dumps(value, ensure_ascii=False, indent=2))


def show_explained(console: Console, opening: Opening, *, budget: int | None) -> None:
    """What was chosen, what was not, and why."""
    if opening.template:
        console.print(shown.cell(f"From the template {opening.template}."))
    if opening.is_empty:
        console.print(Text("Nothing was chosen", style="bold"))
    else:
        cost = (
            f"{opening.tokens:,} tokens"
            if budget is None
            else f"{opening.tokens:,} of {budget:,} tokens"
        )
        console.print(Text(f"Chosen, {cost}", style="bold"))
    _show_briefing(console, opening.briefing)
    if opening.choices:
        console.print(Text("\nShown as messages", style="bold"))
        console.print(_table(console, opening.choices))
    if opening.note:
        console.print(shown.cell(opening.note))
    if opening.left_out:
        left = opening.left_out[:_SHOWN_LEFT_OUT]
        console.print(Text(f"\n{len(opening.left_out):,} looked at and left out", style="bold"))
        console.print(_table(console, left))
        more = len(opening.left_out) - len(left)
        if more > 0:
            console.print(f"and {more:,} more: --json has all", style="dim")


def _show_briefing(console: Console, briefing: Briefing) -> None:
    if briefing.commands:
        table = shown.table("sessions", "worked", "command", numbers=("sessions", "worked"))
        for one in briefing.commands:
            worked = f"{one.worked} of {one.worked + one.failed}"
            table.add_row(shown.count(one.sessions), worked, shown.cell(one.form))
        console.print(Text("\nCommands, likeliest first", style="bold"))
        console.print(table)
    for title, lines in (
        ("Mistakes that recur", [mistake_line(one) for one in briefing.mistakes]),
        ("Files that near requests used", briefing.files),
        ("In one line each", [episode_line(one) for one in briefing.episodes]),
    ):
        if lines:
            console.print(Text(f"\n{title}", style="bold"))
            for line in lines:
                console.print(Text(f"- {shown.plain(line)}"))


def _table(console: Console, rows: Sequence[Choice | LeftOut]) -> Table:
    numbers = ("similar", "tokens")
    table = shown.table(*numbers, "kind", "tools, request, why", numbers=numbers)
    table.columns[2].no_wrap, table.columns[2].min_width = True, _LONGEST_KIND
    room = max(console.width - sum(map(len, numbers)) - _LONGEST_KIND - 7, 20)
    for row in rows:
        table.add_row(
            shown.UNKNOWN if row.similarity is None else f"{row.similarity:.2f}",
            shown.count(row.pattern.tokens),
            row.pattern.kind,
            _told(row, room),
        )
    return table


def _told(row: Choice | LeftOut, room: int) -> Text:
    """What was wanted, the calls that served it, and why the pattern was chosen or not."""
    tools, intent = patterns_shown.tools(row.pattern), row.pattern.intent
    if isinstance(row, LeftOut):  # in short: there are many
        tools = shown.one_line(tools, room // 2)
        wanted = f": {shown.one_line(intent, room - len(tools) - 2)}"
    else:
        calls = "\n".join(shown.one_line(call_line(step), room) for step in row.pattern.steps)
        wanted = f"\n{shown.one_line(intent, room)}\n{calls}"
    return Text.assemble((tools, "bold"), wanted, (f"\n{shown.plain(row.reason)}", "dim"))
