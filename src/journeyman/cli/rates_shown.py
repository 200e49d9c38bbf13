"""Rates and differences in the terminal: numbers with their intervals, and small bars."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.reliability.differences import Difference
from journeyman.reliability.rates import Rate

_STEPS = "▁▂▃▄▅▆▇█"
_BAR_WIDTH = 12
_NARROW = 70


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
    """A table of rates, a row each, with as many columns as the window has room for."""

    def __init__(self, console: Console, name: str, *counts: str) -> None:
        self._wide = console.width >= _NARROW
        self._rows: list[tuple[str, Sequence[str], Rate]] = []
        self._heads = (name, *counts, "errors", "rate", "95 % interval", "")

    def add(self, name: str, *counts: str, rate: Rate) -> None:
        self._rows.append((name, counts, rate))

    def table(self) -> Table:
        numbers = self._heads[1:-1]
        heads = self._heads if self._wide else self._heads[:-2]
        made = shown.table(*heads, numbers=numbers)
        made.columns[0].overflow = "ellipsis"
        made.columns[0].no_wrap = True
        made.columns[0].min_width = 8
        made.columns[-1].min_width = _BAR_WIDTH if self._wide else 0
        top = scale(rate for _, _, rate in self._rows)
        for name, counts, rate in self._rows:
            errors = shown.count(rate.errors) if rate.total else shown.UNKNOWN
            cells: list[str | Text] = [
                shown.cell(name),
                *counts,
                errors,
                percent(rate.estimate),
            ]
            if self._wide:
                cells += [interval(rate), bar(rate, top)]
            made.add_row(*cells)
        return made
