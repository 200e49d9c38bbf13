"""Terminal output: the console, tables, numbers, times and progress."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import itemgetter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.records.report import Progress
from journeyman.records.usage import UsageLine
from journeyman.text import truncation
from journeyman.text.display import readable
from journeyman.text.durations import describe_moment

UNKNOWN = "·"
"""Shown for unknown values; an empty cell would read as none."""

_MAX_PROBLEMS = 10
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def console() -> Console:
    return Console(highlight=False, soft_wrap=False)


def one_line(text: str, limit: int) -> str:
    """Return recorded text on one line, safe to show and truncated."""
    return truncation.one_line(readable(text), limit)


def safe_text(text: str) -> Text:
    """Return recorded text for printing, readable and never interpreted as markup."""
    return Text(readable(text))


def count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun: 1 log, 2 logs. The plural adds an s unless it is supplied."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def short_count(number: int | None) -> str:
    """Return a large number in four or five characters: 950, 12.3k, 4.56M."""
    if number is None:
        return UNKNOWN
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def short_cost(usage: UsageLine | None, digits: int = 2) -> str:
    """Return a cost in a few characters, marked if it is estimated (~) or incomplete (≥)."""
    if usage is None or usage.cost_usd is None:
        return UNKNOWN
    sign = "≥ " if usage.unknown_cost else "~ " if usage.estimated_share else ""
    least = 10**-digits
    if 0 < usage.cost_usd < least and not usage.unknown_cost:
        return f"< ${least:.{digits}f}"  # would be rounded to zero
    return f"{sign}${usage.cost_usd:,.{digits}f}"


def size(number: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:,.1f} {unit}"
    return f"{number:.0f} bytes"


def local_time(at: float | None) -> str:
    """Return a time in this machine's time zone, to the minute."""
    if at is None:
        return UNKNOWN
    try:
        return describe_moment(at)
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


Cell = str | Text | int | None


def _cell_text(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    return safe_text(value) if isinstance(value, str) else Text(count(value))


TRUNCATED: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"}
"""The layout of a column that truncates its texts instead of wrapping them."""


class Column:
    """A table column that is shown only in a terminal of at least `min_terminal_width`, and, if
    `optional`, only when some row has a value in it. `layout` is that of the rich column.
    """

    def __init__(
        self,
        header: str,
        cell: Callable[[Any], Cell],
        *,
        min_terminal_width: int = 0,
        numeric: bool = False,
        optional: bool = False,
        **layout: Any,
    ) -> None:
        self.header, self.cell, self.min_terminal_width = header, cell, min_terminal_width
        self.optional = optional
        right: dict[str, Any] = {"justify": "right", "no_wrap": True} if numeric else {}
        self.layout = right | layout

    def is_shown(self, rows: Iterable[Any], width: int) -> bool:
        if width < self.min_terminal_width:
            return False
        return not self.optional or any(self.cell(row) not in ("", UNKNOWN) for row in rows)


def fit_table(
    rows: Sequence[Any], columns: Iterable[Column], width: int, *, total: Any = None
) -> Table:
    """Return a table without borders, of the columns that fit the width, with a row of totals if
    there is one.
    """
    shown = [column for column in columns if column.is_shown(rows, width)]
    fitted = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in shown:
        fitted.add_column(column.header, **column.layout)
        fitted.expand = fitted.expand or "ratio" in column.layout
    for row in rows:
        fitted.add_row(*(_cell_text(column.cell(row)) for column in shown))
    if total is not None:
        fitted.add_row(*(_cell_text(column.cell(total)) for column in shown), style="bold")
    return fitted


def table(*headers: str, rows: Iterable[Sequence[Cell]], numbers: Sequence[str] = ()) -> Table:
    """Return a table of rows of cells; the columns in `numbers` are right-aligned."""
    columns = [
        Column(header, itemgetter(at), numeric=header in numbers)
        for at, header in enumerate(headers)
    ]
    return fit_table([*rows], columns, width=0)


def print_table(
    console: Console, rows: Sequence[Any], columns: Iterable[Column], if_empty: str
) -> None:
    """Print a table, or the message `if_empty` if there are no rows."""
    console.print(fit_table(rows, columns, console.width) if rows else safe_text(if_empty))


def print_fields(console: Console, fields: Mapping[str, str | Text], *, wrap: bool = False) -> None:
    """Print names and values, one per line; empty values are left out, and further lines of a value
    are aligned with its first.
    """
    width = max([10, *(len(name) + 2 for name, value in fields.items() if value)])
    for name, value in fields.items():
        if value:
            text = value if isinstance(value, Text) else safe_text(value)
            lines = text.split("\n", allow_blank=True)
            line = Text.assemble((f"{name:{width}s}", "dim"), Text("\n" + " " * width).join(lines))
            console.print(line, soft_wrap=not wrap)


def print_labelled(
    console: Console,
    label: Text,
    text: str,
    *,
    full: bool = False,
    style: str = "",
    indent: str = "",
) -> None:
    """Print recorded text after a label: in full, or truncated to one line."""
    room = max(console.width - label.cell_len, 20)
    line = readable(text).replace("\n", f"\n{indent}") if full else one_line(text, room)
    # Assembled, because appended text would inherit the style of the label.
    console.print(Text.assemble(label, (line, style)), soft_wrap=True)


def print_heading(console: Console, title: str) -> None:
    console.print(Text(f"\n{title}", style="bold cyan"))


def print_diff(console: Console, lines: Iterable[str]) -> None:
    """Print the lines of a diff in their colours."""
    for line in lines:
        style = "bold" if line.startswith(("+++", "---")) else _DIFF_STYLES.get(line[:1], "")
        console.print(Text(readable(line), style), soft_wrap=True)


def print_problems(
    console: Console, title: str, lines: Sequence[str], *, total: int | None = None
) -> None:
    """Print a title and up to ten lines below it."""
    console.print(f"{title}:", style="yellow")
    for line in lines[:_MAX_PROBLEMS]:
        console.print(safe_text(f"  {line}"), soft_wrap=True)
    total = len(lines) if total is None else total
    print_remainder(console, total, _MAX_PROBLEMS, " (--json lists them)")


def print_remainder(console: Console, total: int, shown: int, hint: str, *, noun: str = "") -> None:
    """If fewer than `total` were shown, print how many more there are, and the hint."""
    if total > shown:
        rest = pluralize(total - shown, f"more {noun}") if noun else f"{total - shown:,} more"
        console.print(f"and {rest}{hint}", style="dim")


def print_bots_left_out(console: Console, bots: int) -> None:
    """If sessions of bots were left out, print how many, and how to include them."""
    if bots:
        console.print(f"Left out: {pluralize(bots, 'session')} of bots; --bots includes them.")


def join_names(names: Sequence[str], limit: int) -> str:
    """Join up to `limit` names with commas, and count the others."""
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest:,} more" if rest > 0 else "")


@contextmanager
def counting_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that updates a progress bar with the items done and their total. Nothing is
    shown unless standard error is a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich import progress  # noqa: PLC0415

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=0)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that updates such a bar with what an import or learning reports."""
    with counting_bar(label) as update:
        yield lambda progress: update(progress.done, progress.total)


def spinner(label: str) -> AbstractContextManager[object]:
    """Show an animated line while the body runs, if standard error is a terminal."""
    return Console(stderr=True).status(label) if sys.stderr.isatty() else nullcontext()
