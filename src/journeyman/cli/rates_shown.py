"""Rates and differences in the terminal: numbers with their intervals, and small bars."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.reliability.differences import Difference
from journeyman.reliability.rates import Rate

_STEPS = "▁▂▃▄▅▆▇█"
_BAR_WIDTH = 12
_SHORTEST_NAME = 16


def percent(value: float | None) -> str:
    return shown.UNKNOWN if value is None else f"{100 * value:.1f} %"


def interval(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return shown.UNKNOWN
    return f"{100 * rate.low:.1f} to {100 * rate.high:.1f} %"


def points(difference: Difference) -> str:
    """A difference of two rates in percentage points, with its sign."""
    return shown.UNKNOWN if difference.estimate is None else f"{100 * difference.estimate:+.1f}"


def points_interval(difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return shown.UNKNOWN
    return f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f}"


def scale(rates: Iterable[Rate]) -> float:
    """The top of a common scale for bars. An interval that reaches far beyond every rate is cut,
    or one call that failed would flatten all the others.
    """
    known = [rate for rate in rates if rate.estimate is not None]
    most = max((rate.estimate or 0.0 for rate in known), default=0.0)
    highest = max((rate.high or 0.0 for rate in known), default=0.0)
    return min(highest, max(2 * most, 0.05)) or 1.0


def bar(rate: Rate, top: float) -> Text:
    """The rate as a dot on its interval: ──●─────."""
    if rate.estimate is None or rate.low is None or rate.high is None:
        return Text("")
    start, dot, end = (
        min(_BAR_WIDTH - 1, int(value / top * _BAR_WIDTH))
        for value in (rate.low, rate.estimate, rate.high)
    )
    drawn = Text(" " * start)
    drawn.append("─" * (dot - start), style="dim")
    drawn.append("●", style="red" if rate.errors else "green")
    drawn.append("─" * (end - dot), style="dim")
    return drawn


def spark(rates: Sequence[Rate]) -> str:
    """Rates side by side as a row of little columns."""
    most = max((rate.estimate or 0.0 for rate in rates), default=0.0) or 1.0
    steps = len(_STEPS) - 1
    return "".join(
        shown.UNKNOWN if rate.estimate is None else _STEPS[round(rate.estimate / most * steps)]
        for rate in rates
    )


class RateTable:
    """A table of rates, a row each. Numbers are never cut: where the window is too narrow, the
    bars go first, then the counts, then the interval, and names are shortened.
    """

    def __init__(self, console: Console, name: str, *counts: str) -> None:
        self._width = console.width
        self._heads: list[str | Text] = [name, *counts, "errors", "rate", "95 % interval", ""]
        self._dropped = [len(self._heads) - 1, *range(1, len(counts) + 1), len(self._heads) - 2]
        self._rows: list[tuple[str, Sequence[str], Rate]] = []

    def add(self, name: str, *counts: str, rate: Rate) -> None:
        self._rows.append((name, counts, rate))

    def table(self) -> Table:
        rows = [self._heads, *self._cells()]
        widths = [max(_width(row[at]) for row in rows) for at in range(len(self._heads))]
        widths[-1] = _BAR_WIDTH
        kept = list(range(len(widths)))
        for column in self._dropped:
            if self._room(widths, kept) >= min(widths[0], _SHORTEST_NAME):
                break
            kept.remove(column)
        made = shown.table(
            *(str(self._heads[at]) for at in kept), numbers=[*map(str, self._heads[1:-1])]
        )
        for at, column in zip(kept, made.columns, strict=True):
            column.no_wrap = True
            column.overflow = "ellipsis"
            column.min_width = (
                widths[at] if at else max(1, min(widths[0], self._room(widths, kept)))
            )
            column.max_width = column.min_width
        for row in rows[1:]:
            made.add_row(*(row[at] for at in kept))
        return made

    def _cells(self) -> list[list[str | Text]]:
        top = scale(rate for _, _, rate in self._rows)
        return [
            [
                shown.cell(name),
                *counts,
                shown.count(rate.errors) if rate.total else shown.UNKNOWN,
                percent(rate.estimate),
                interval(rate),
                bar(rate, top),
            ]
            for name, counts, rate in self._rows
        ]

    def _room(self, widths: list[int], kept: list[int]) -> int:
        """What is left for the names."""
        return self._width - sum(widths[at] + 2 for at in kept[1:]) - 2


def _width(cell: str | Text) -> int:
    return cell.cell_len if isinstance(cell, Text) else cell_len(cell)
