"""How things look in the terminal: the console, tables, numbers, times, progress."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.records import SourceTotals
from journeyman.records.report import Progress
from journeyman.text.invisible import DIRECTIONS, FILLERS, JOINERS, SIGNS

UNKNOWN = "·"
"""What is shown for what is not known; an empty cell would read as nothing."""

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


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """A plain table; the columns in `numbers` are set to the right."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        right = name in numbers
        made.add_column(name, justify="right" if right else "left", no_wrap=right)
    return made


def totals_table(totals: Sequence[SourceTotals]) -> Table:
    """Sessions by source with message, call and token counts, and their sum."""
    names = ("sessions", "messages", "calls", "answered", "tokens")
    shown = table("source", *names, numbers=names)
    shown.columns[0].min_width = 8
    for one in totals:
        shown.add_row(
            cell(one.source),
            count(one.sessions) + (f" +{one.subagents} sub" if one.subagents else ""),
            count(one.messages),
            count(one.calls),
            count(one.answered),
            short_count(one.tokens.total),
        )
    if len(totals) > 1:
        tokens = [one.tokens.total for one in totals if one.tokens.total is not None]
        shown.add_row(
            "all",
            count(sum(one.sessions + one.subagents for one in totals)),
            count(sum(one.messages for one in totals)),
            count(sum(one.calls for one in totals)),
            count(sum(one.answered for one in totals)),
            short_count(sum(tokens) if tokens else None),
            style="bold",
        )
    return shown


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
