"""Tables of rates in terminals of different widths."""

import io

from rich.console import Console

from journeyman.cli.rate_tables import change, show_rates
from journeyman.reliability.rates import Difference, wilson

TOOLS = [f"update_the_whole_reservation_{what}" for what in ("flights", "baggages", "passengers")]
WIDTHS = (50, 60, 72, 80, 100, 120)


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width)


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_rates_and_names_are_whole_at_every_width() -> None:
    rows = [(tool, 1_234, 56_789, wilson(4_321, 56_789)) for tool in TOOLS]
    for width in WIDTHS:
        console = terminal(width)
        show_rates(console, "tool", ("sessions", "counted"), rows)
        _, *shown = lines(console)
        assert sum("7.4 to 7.8 %" in line for line in shown) == len(TOOLS), width
        assert all(len(line) <= width and "…" not in line for line in shown), width


def test_a_difference_without_an_interval_is_unknown() -> None:
    assert change(Difference(estimate=-1.0, low=None, high=None, method="test")) == "·"
    assert change(Difference(estimate=-0.5, low=-0.6, high=-0.4, method="test")) == "50.0 fewer"
