"""How things look in the terminal: the console, tables, numbers, times, progress."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.records.report import Progress
from journeyman.text.invisible import DIRECTIONS, FILLERS, JOINERS, SIGNS

UNKNOWN = "·"
"""What is shown for what is not known; an empty cell would read as nothing."""

_PROBLEMS = 10
# Ids that are told apart by how they begin, and how much of them it takes.
_SHORT_IDS = (
    re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    re.compile(r"(agent-[^-]{4,12})-.+"),
    re.compile(r"([0-9a-f]{8}-.{1,14}).*"),
)
# Recorded text may hold anything: colours, cursor movements, bells. None of it reaches the screen;
# what chooses the shape of an emoji does.
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{JOINERS}{DIRECTIONS}{FILLERS}{SIGNS}]")


def console() -> Console:
    return Console(highlight=False, soft_wrap=False)


def plain(text: str) -> str:
    """Recorded text made harmless for a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str, limit: int) -> str:
    """Recorded text on one line, cut to a length."""
    words = plain(" ".join(text.split()))
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def cell(text: str) -> Text:
    """A table cell with recorded text, which must never be read as markup."""
    return Text(plain(text))


def short_id(session_id: str) -> str:
    """As much of an id as a person needs to name the session again."""
    for pattern in _SHORT_IDS:
        if match := pattern.fullmatch(session_id):
            return match[1]
    return session_id


def count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def many(number: int, thing: str) -> str:
    """A count with its noun: 1 log, 2 logs."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def counted(number: int, one: str, several: str) -> str:
    """A count with words whose plural is its own."""
    return f"{number:,} {one if number == 1 else several}"


def short_count(number: int | None) -> str:
    """A large number in four or five characters: 950, 12.3k, 4.56M."""
    if number is None:
        return UNKNOWN
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def size(number: float) -> str:
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= one:
            return f"{number / one:,.1f} {unit}"
    return f"{number:.0f} bytes"


def moment(at: float | None) -> str:
    """A time as this machine's clock shows it."""
    if at is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


Cell = str | Text | int | None


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    return cell(value) if isinstance(value, str) else Text(count(value))


def table(*columns: str, numbers: Sequence[str] = (), rows: Iterable[Sequence[Cell]] = ()) -> Table:
    """A plain table; the columns in `numbers` are set to the right."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        right = name in numbers
        made.add_column(name, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        made.add_row(*map(_cell, row))
    return made


CUT: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"}
"""The layout of a column whose texts are cut rather than broken."""


class Column:
    """A column of a table that depends on the window: the window has to be as wide as it `needs`,
    and an optional column something to say. `layout` is what rich's columns have.
    """

    def __init__(
        self,
        head: str,
        cell: Callable[[Any], Cell],
        *,
        needs: int = 0,
        number: bool = False,
        optional: bool = False,
        **layout: Any,
    ) -> None:
        self.head, self.cell, self.needs = head, cell, needs
        self.number, self.optional, self.layout = number, optional, layout

    def says_something(self, rows: Iterable[Any]) -> bool:
        return not self.optional or any(self.cell(row) not in ("", UNKNOWN) for row in rows)


def fitting_table(
    rows: Sequence[Any], columns: Iterable[Column], width: int, *, total: Any = None
) -> Table:
    """A row for each, in the columns for which the window is wide enough, and perhaps their sum."""
    kept = [one for one in columns if width >= one.needs and one.says_something(rows)]
    numbers = [one.head for one in kept if one.number]
    cells = ([column.cell(row) for column in kept] for row in rows)
    made = table(*(one.head for one in kept), numbers=numbers, rows=cells)
    for column, shown in zip(kept, made.columns, strict=True):
        for name, value in column.layout.items():
            setattr(shown, name, value)
        made.expand = made.expand or "ratio" in column.layout
    if total is not None:
        made.add_row(*(_cell(column.cell(total)) for column in kept), style="bold")
    return made


def listed(console: Console, rows: Sequence[Any], columns: Iterable[Column], nothing: str) -> None:
    """A row for each, or what to say where there is none."""
    console.print(fitting_table(rows, columns, console.width) if rows else cell(nothing))


def facts(
    console: Console, known: Mapping[str, str | Text], *, width: int = 10, wrap: bool = False
) -> None:
    """What is known of something, a line each; what is empty is left out, and more lines of a value
    go on below its first.
    """
    for name, value in known.items():
        if value:
            lines = _cell(value).split("\n", allow_blank=True)
            line = Text.assemble((f"{name:{width}s}", "dim"), Text("\n" + " " * width).join(lines))
            console.print(line, soft_wrap=not wrap)


def after(
    console: Console, head: Text, text: str, *, full: bool, style: str = "", indent: str = ""
) -> None:
    """Recorded text after its head: all of it, or as much as fits the line."""
    room = max(console.width - head.cell_len, 20)
    line = plain(text).replace("\n", f"\n{indent}") if full else one_line(text, room)
    # Assembled, because appended text would take over the style of the head.
    console.print(Text.assemble(head, (line, style)), soft_wrap=True)


def head(console: Console, title: str) -> None:
    console.print(Text(f"\n{title}", style="bold cyan"))


def problems(
    console: Console, title: str, lines: Sequence[str], *, total: int | None = None
) -> None:
    """What was left out, up to ten of it."""
    console.print(f"{title}:", style="yellow")
    for line in lines[:_PROBLEMS]:
        console.print(cell(f"  {line}"), soft_wrap=True)
    more(console, len(lines) if total is None else total, _PROBLEMS, " (--json lists them)")


def more(console: Console, number: int, most: int, said: str, *, thing: str = "") -> None:
    if number > most:
        beyond = many(number - most, f"more {thing}") if thing else f"{number - most:,} more"
        console.print(f"and {beyond}{said}", style="dim")


def names(all_: Sequence[str], most: int) -> str:
    beyond = len(all_) - most
    return ", ".join(all_[:most]) + (f" and {beyond:,} more" if beyond > 0 else "")


@contextmanager
def progress_bar(doing: str, things: str) -> Iterator[Callable[[Progress], None]]:
    """Calls to what this yields move a bar on a terminal, with how many things are done, how fast
    and how long it will take; in a pipe nothing is shown.
    """
    began = time.monotonic()
    with _bar(doing) as update:

        def move(progress: Progress) -> None:
            speed = progress.done_bytes / 1e6 / max(time.monotonic() - began, 0.001)
            said = f"{progress.done:,}/{progress.total:,} {things}, {speed:.1f} MB/s"
            update(progress.share, 1.0, said)

        yield move


@contextmanager
def counting_bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """The same for work that is counted: called with what is done and what there is."""
    with _bar(doing) as update:
        yield lambda done, total: update(done, total, f"{done:,}/{total:,}")


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """A line that moves on a terminal while something takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(doing):
        yield


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[float, float, str], None]]:
    if not sys.stderr.isatty():
        yield lambda _done, _total, _said: None
        return
    from rich import progress  # noqa: PLC0415

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[said]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None, said="")
        yield lambda done, total, said: bar.update(task, completed=done, total=total, said=said)
