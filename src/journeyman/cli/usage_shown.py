"""How usage looks in the terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.records.usage import UsageLine, UsageReport

_COLUMNS = (
    ("sessions", "sessions", 100),
    ("calls", "api_calls", 0),
    ("input", "input_tokens", 0),
    ("cache read", "cache_read_tokens", 0),
    ("cache write", "cache_write_tokens", 60),
    ("output", "output_tokens", 0),
    ("reasoning", "reasoning_tokens", 72),
)
"""The numbers of a line, their fields, and how wide a window has to be to show each."""

_SHORTEST_NAME = 10


def show_usage(console: Console, report: UsageReport) -> None:
    """A line for each key, their sum, and what the figures leave open."""
    if not report.rows:
        console.print(_nothing(report))
        return
    console.print(_table(report, console.width))
    if notes := _notes(report):
        console.print()
        console.print(Text(notes), style="dim")


def _nothing(report: UsageReport) -> str:
    if not report.sessions:
        return "No session is stored. `journeyman import` brings some in."
    sessions = shown.many(report.sessions, "session")
    return f"No usage was recorded in {sessions}: not every program writes down what it uses."


def _table(report: UsageReport, width: int) -> Table:
    columns = {
        # One word above the other, where every character counts.
        head if width >= 100 else head.replace(" ", "\n"): field
        for head, field, needed in _COLUMNS
        if width >= needed and (field != "reasoning_tokens" or report.total.reasoning_tokens)
    }
    made = shown.table(report.by, *columns, "cost", numbers=[*columns, "cost"])
    made.columns[0].overflow, made.columns[0].min_width = "fold", _SHORTEST_NAME
    fields = [*columns.values()]
    digits = 2 if (report.total.cost_usd or 0) >= 1 else 4
    for line in report.rows:
        made.add_row(_name(report, line), *_counts(line, fields), _cost(line, digits))
    if len(report.rows) > 1:
        total = report.total
        made.add_row("all", *_counts(total, fields), _cost(total, digits), style="bold")
    return made


def _name(report: UsageReport, line: UsageLine) -> Text:
    if report.by == "task" and not line.key:
        return Text("main")
    return shown.cell(line.key) if line.key else Text(shown.UNKNOWN)


def _counts(line: UsageLine, fields: list[str]) -> list[str]:
    return [
        (shown.short_count if field.endswith("_tokens") else shown.count)(getattr(line, field))
        for field in fields
    ]


def _cost(line: UsageLine, digits: int) -> str:
    """The cost, with a sign where it is not the whole truth."""
    if line.cost_usd is None:
        return shown.UNKNOWN
    sign = "≥ " if line.unknown_cost else "~ " if line.estimated_share else ""
    least = 10**-digits
    if 0 < line.cost_usd < least and not line.unknown_cost:
        return f"< ${least:.{digits}f}"  # rounded it would read as nothing
    return f"{sign}${line.cost_usd:,.{digits}f}"


def _notes(report: UsageReport) -> str:
    """What is not known and what is estimated, for all lines together."""
    total = report.total
    said = []
    if total.unknown_cost == total.api_calls:
        said.append("No cost is known.")
    elif total.unknown_cost:
        said.append(f"≥ at least: the cost of {_of_calls(total.unknown_cost, total)} is not known.")
    if total.estimated_share:
        said.append(f"{_part(total.estimated_share)} is estimated (~).")
    if total.unknown_tokens:
        lacking = _of_calls(total.unknown_tokens, total)
        said.append(f"The tokens of {lacking} were not all recorded.")
    silent = report.sessions - total.sessions
    if silent:
        said.append(f"{silent:,} of {shown.many(report.sessions, 'session')} recorded no usage.")
    return " ".join(said)


def _part(share: float) -> str:
    """A part of the cost in words that never round it to nothing or to all."""
    if share == 1:
        return "The cost"
    if share < 0.01:
        return "Under 1 % of the cost"
    return f"{min(round(100 * share), 99)} % of the cost"


def _of_calls(some: int, total: UsageLine) -> str:
    return f"{some:,} of {shown.many(total.api_calls, 'call')}"
