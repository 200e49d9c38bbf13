"""The tables of the page: tools, groups, and what changes within a session. Each row says its rate
in a bar, in a number and with its interval.
"""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten

from msgspec import Struct

from journeyman.reliability.charts import many
from journeyman.reliability.differences import Difference
from journeyman.reliability.learning import Learning
from journeyman.reliability.markup import Markup, element, joined
from journeyman.reliability.profile import Group, ToolProfile
from journeyman.reliability.rates import Rate
from journeyman.reliability.wording import missing, percent, span

MOST_ROWS = 25
"""A table of more rows is cut, and says how many there are."""

MOST_LETTERS = 90
"""Of a tool's commonest failure."""


class Column(Struct, frozen=True):
    """A column's heading and the class of its cells."""

    heading: str
    look: str = ""


_NUMBERS = (
    Column("Error rate", "rate"),
    Column("95 % interval", "rate"),
    Column("Errors", "number"),
    Column("Calls", "number"),
    Column("Sessions", "number"),
    Column("Not counted", "rate"),
)


def tool_table(tools: Sequence[ToolProfile]) -> Markup:
    """The most used tools, with what fails most often in each."""
    shown, rest = tools[:MOST_ROWS], tools[MOST_ROWS:]
    top = _highest(tool.rate for tool in shown)
    rows = [(_named(tool), *_cells(tool, top)) for tool in shown]
    columns = (Column("Tool", "name"), *_NUMBERS)
    return joined(_table(columns, rows), _more(rest, "more tool"))


def _named(tool: ToolProfile) -> Markup:
    failure = shorten(tool.commonest_failure, MOST_LETTERS, placeholder=" …")
    return joined(
        element("code", *_breakable(tool.tool)),
        element("span", f"mostly: {failure}", class_="mostly") if failure else "",
    )


def _breakable(name: str) -> Iterable[str]:
    """The name, with places where a narrow column may break it."""
    first, *rest = name.split("_")
    yield first
    for part in rest:
        yield joined("_", element("wbr"), part)


def group_table(
    groups: Sequence[Group], heading: str, words: Mapping[str, str] | None = None
) -> Markup:
    """The groups, each by its name or by the words for it."""
    shown, rest = groups[:MOST_ROWS], groups[MOST_ROWS:]
    top = _highest(group.rate for group in shown)
    columns = (Column(heading, "name"), *_NUMBERS)
    rows = [((words or {}).get(group.name, group.name), *_cells(group, top)) for group in shown]
    return joined(_table(columns, rows), _more(rest, "more group"))


def learning_table(learning: Learning) -> Markup:
    """The crude comparison of early and late beside the one of same tools with same tools."""
    columns = (
        Column("Compared", "name"),
        Column("Difference", "name"),
        Column("Early or first", "rate"),
        Column("Late or later", "rate"),
    )
    rows = (
        (
            element("strong", "Early and late calls, same tools compared"),
            element("strong", _difference(learning.stratified)),
            "tool by tool",
            "tool by tool",
        ),
        (
            "Early and late calls, all tools together",
            _difference(learning.crude),
            _with_interval(learning.early),
            _with_interval(learning.late),
        ),
        (
            "First and later uses of a tool, same tools compared",
            _difference(learning.first_later),
            _with_interval(learning.first),
            _with_interval(learning.later),
        ),
    )
    return _table(columns, rows)


def interval(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return ""
    return f"{100 * rate.low:.1f} to {100 * rate.high:.1f} %"


def _cells(one: Group | ToolProfile, top: float) -> tuple[str, ...]:
    return (
        _bar(one.rate, top),
        interval(one.rate),
        f"{one.rate.errors:,}",
        f"{one.calls:,}",
        f"{one.sessions:,}",
        ", ".join(
            f"{number:,} {word}"
            for number, word in ((one.apart, "apart"), (one.unknown, "unknown"))
            if number
        ),
    )


def _bar(rate: Rate, top: float) -> Markup:
    if rate.estimate is None:
        return joined("unknown")
    width = 100 * rate.estimate / top if top else 0
    filled = element("span", style=f"width:{width:.1f}%")
    return joined(element("span", filled, class_="bar"), percent(rate))


def _highest(rates: Iterable[Rate]) -> float:
    return max((rate.estimate or 0 for rate in rates), default=0)


def _with_interval(rate: Rate) -> str:
    if rate.estimate is None:
        return "unknown"
    return f"{percent(rate)} ({interval(rate)})"


def _difference(difference: Difference) -> str:
    why = missing(difference.note)
    if difference.estimate is None:
        return f"Unknown: {why}."
    points = f"{100 * abs(difference.estimate):.1f}"
    change = "fewer" if difference.estimate < 0 else "more"
    said = "no difference" if points == "0.0" else f"{points} points {change}"
    reach = span(difference)
    return f"{said} (95 % interval: {reach})" if reach else f"{said}, interval unknown: {why}"


def _more(rest: Sequence[Group | ToolProfile], thing: str) -> Markup:
    if not rest:
        return Markup()
    calls = many(sum(one.calls for one in rest), "call")
    errors = many(sum(one.rate.errors for one in rest), "error")
    said = f"And {many(len(rest), thing)} with {calls} and {errors} together."
    return element("p", said, class_="quiet")


def _table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Markup:
    headings = [_cell("th", column, column.heading, scope="col") for column in columns]
    body = [
        element(
            "tr",
            _cell("th", columns[0], row[0], scope="row"),
            *[
                _cell("td", column, inside)
                for column, inside in zip(columns[1:], row[1:], strict=True)
            ],
        )
        for row in rows
    ]
    made = element("table", element("thead", element("tr", *headings)), element("tbody", *body))
    return element("div", made, class_="scroll")


def _cell(name: str, column: Column, inside: str, **attributes: str) -> Markup:
    look = {"class_": column.look} if column.look else {}
    return element(name, inside, **attributes, **look)
