"""Tables of rates in terminals of different widths."""

import io

from rich.console import Console

from journeyman.cli.rate_tables import change, show_groups, show_rates
from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.reliability.groups import grouped
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


def judged(model: str, number: int) -> list[JudgedSession]:
    def calls(session: int) -> list[JudgedCall]:
        verdicts = [
            Verdict(status="failed" if (at * 7 + session) % 5 == 0 else "ok", rule="test")
            for at in range(20)
        ]
        return [
            JudgedCall(call_id=f"c{at}", index=at, tool="sh", verdict=verdict)
            for at, verdict in enumerate(verdicts)
        ]

    return [
        JudgedSession(
            id=SessionId(f"{model}{session}"),
            source="codex",
            model=model,
            messages=40,
            tags=(),
            calls=tuple(calls(session)),
        )
        for session in range(number)
    ]


def test_early_and_late_calls_only_where_there_is_enough_data() -> None:
    long, few = "vendor/a-model-with-a-long-name-20261101", "seen-twice"
    groups = grouped([*judged(long, 12), *judged(few, 2)], "model", with_learning=True)
    for width in WIDTHS:
        console = terminal(width)
        show_groups(console, "model", groups)
        shown = lines(console)
        after = shown[shown.index("Early and late calls, by the same tools") :]
        (row,) = [line for line in after if line.startswith("ve")]
        assert len(row) <= width
        assert "…" not in row.split(maxsplit=1)[1]
        assert row.endswith(("fewer", "more", "no difference"))
        assert not any(few in line for line in after)
    console = terminal(80)
    show_groups(console, "model", [one for one in groups if one.name == few])
    assert not any("Early" in line for line in lines(console))


def test_a_difference_without_an_interval_is_unknown() -> None:
    assert change(Difference(estimate=-1.0, low=None, high=None, method="test")) == "·"
    assert change(Difference(estimate=-0.5, low=-0.6, high=-0.4, method="test")) == "50.0 fewer"
