"""Charts of a profile, how they look, and how they become a PNG or an SVG. A chart that has nothing
to show is None, never an empty axis. Importing this loads altair, so whoever draws loads it when it
draws.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from textwrap import wrap
from typing import Any

from journeyman.records.errors import MissingPart
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.profile import Profile
from journeyman.reliability.rates import Rate, harmless, many, percent

THEME = json.loads(files(__package__).joinpath("theme.json").read_text("utf-8"))
"""How charts look, in the words of Vega-Lite's configuration."""

# Okabe and Ito's blue, which people who see colours differently tell from grey and from each other
# colour.
ACCENT = "#0072b2"
INK, QUIET = THEME["title"]["color"], THEME["title"]["subtitleColor"]

try:
    import altair as alt
    import vl_convert
except ImportError as missing:
    raise MissingPart(
        "Drawing charts needs the extra \"plots\": pip install 'journeyman[plots]'."
    ) from missing

Chart = alt.LayerChart | alt.VConcatChart

FORMATS = (".png", ".svg")
"""What a file with a chart can be, by how its name ends."""


MOST_TOOLS = 15
MIN_CALLS = 5
"""A tool with fewer calls that count has an interval that says nothing."""

_LABELS_WIDTH = 230
_DOTS_WIDTH = 340
_WORDS_WIDTH = 56
_LINE_LETTERS = 100
_WHAT = "Errors among the calls that count, with the 95 % interval."

_TOPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
"""Where an axis of rates may end."""

# A long name keeps its beginning and its end: the end has the number of calls.
_CUT = (
    "length(datum.label) > 36"
    " ? slice(datum.label, 0, 18) + '…' + slice(datum.label, -17) : datum.label"
)


def reliability_by_tool(profile: Profile) -> alt.LayerChart | None:
    """The error rates of the most used tools, the most used first."""
    telling = [tool for tool in profile.tools if tool.rate.total >= MIN_CALLS]
    shown = telling[:MOST_TOOLS]
    if not shown:
        return None
    labels = [f"{' '.join(harmless(tool.tool).split())} ({tool.calls:,})" for tool in shown]
    rates = [tool.rate for tool in shown]
    # The dashed line must be on the axis too: the tools that are not shown may be worse.
    top = _top([*rates, profile.rate])
    dots = _dots(labels, rates, top=top, step=24, label=_CUT)
    overall = (
        alt.Chart(alt.InlineData(values=[{"all": profile.rate.estimate}]))
        .mark_rule(strokeDash=[4, 3], color=QUIET)
        .encode(x="all:Q")
    )
    return alt.LayerChart(layer=[overall, *dots]).properties(
        width=_DOTS_WIDTH,
        title=_title(
            "How often each tool fails",
            f"{_WHAT} In brackets: calls.",
            f"Dashed: all tools, {percent(profile.rate)}. "
            + _left_out(len(shown), len(telling), len(profile.tools) - len(telling)),
        ),
    )


def rate_along_session(profile: Profile, *, width: int = 560) -> alt.LayerChart | None:
    """The error rate from the beginning of the sessions to their end."""
    parts = profile.curve.parts
    if profile.curve.sessions == 0:
        return None
    size = 1 / len(parts)
    values = [_values(part) | {"place": (at + 0.5) * size} for at, part in enumerate(parts)]
    place = (
        alt.X("place:Q")
        .scale(domain=[0, 1], nice=False)
        .axis(
            values=[0, 0.25, 0.5, 0.75, 1],
            labelExpr="datum.value == 0 ? 'beginning' : datum.value == 1 ? 'end'"
            " : format(datum.value, '.0%')",
            title="Place in the session",
            labelFlush=True,
        )
    )
    chart = alt.Chart(alt.InlineData(values=values)).encode(x=place)
    axis = alt.Axis(format=".0%", title="Error rate", tickCount=5, grid=True, domain=False)
    rates = alt.Y("low:Q").scale(domain=[0, _top(parts)], nice=False).axis(axis)
    layers = [
        chart.mark_area(color=ACCENT, opacity=0.18).encode(y=rates, y2="high:Q"),
        chart.mark_line(color=ACCENT, strokeWidth=2).encode(y="estimate:Q"),
        chart.mark_point(color=ACCENT, filled=True, size=45, opacity=1).encode(y="estimate:Q"),
    ]
    title = _title("How often calls fail along a session", _WHAT, profile.curve.note)
    return alt.LayerChart(layer=layers).properties(width=width, height=200, title=title)


def rate_by_length(profile: Profile) -> alt.LayerChart | None:
    """The error rate of short, mid-length and marathon sessions."""
    if profile.rate.total == 0:
        return None
    words: dict[str, str] = {band.name: band.words for band in BANDS}
    labels = [
        f"{group.name}: {words[group.name]}\n{many(group.sessions, 'session')}, "
        f"{many(group.calls, 'call')}"
        for group in profile.lengths
    ]
    rates = [group.rate for group in profile.lengths]
    dots = _dots(labels, rates, top=_top(rates), step=46, label="split(datum.label, '\\n')")
    return alt.LayerChart(layer=dots).properties(
        width=_DOTS_WIDTH,
        title=_title(
            "How often calls fail in short and long sessions",
            _WHAT,
            "Long sessions do other work than short ones, so length need not be the reason.",
        ),
    )


def overview(profile: Profile) -> alt.VConcatChart | None:
    """All charts that have something to show, one below the other."""
    along = rate_along_session(profile, width=_DOTS_WIDTH + _WORDS_WIDTH)
    drawn = [reliability_by_tool(profile), along, rate_by_length(profile)]
    charts = [chart for chart in drawn if chart is not None]
    if not charts:
        return None
    # The drawings stand exactly below each other, so the titles have to begin left of all labels.
    stacked: alt.VConcatChart = alt.vconcat(*charts, spacing=44).configure_title(
        frame="group", dx=-_LABELS_WIDTH
    )
    return stacked


def figure(chart: alt.LayerChart) -> tuple[str, str, str]:
    """For a page that writes it in its own letters: the title, what has to be said to it, and the
    drawing without them.
    """
    spec = chart.to_dict()
    title = spec.pop("title")
    return title["text"], " ".join(title["subtitle"]), _svg(spec)


def _svg(spec: dict[str, Any]) -> str:
    drawn: str = vl_convert.vegalite_to_svg(spec, config=THEME, allowed_base_urls=[])
    return drawn


def picture(chart: Chart, ending: str) -> bytes:
    """The chart as a file of one of the `FORMATS` holds it."""
    if ending == ".svg":
        return _svg(chart.to_dict()).encode()
    drawn: bytes = vl_convert.vegalite_to_png(
        chart.to_dict(), config=THEME, scale=2, allowed_base_urls=[]
    )
    return drawn


def _dots(
    labels: Sequence[str], rates: Sequence[Rate], *, top: float, step: int, label: str
) -> tuple[alt.Chart, ...]:
    """A row for each rate: a dot on a line, which is its interval, and the rate in words."""
    values = [
        _values(rate)
        | {"label": text, "words": percent(rate) if rate.total else "no calls that count"}
        for text, rate in zip(labels, rates, strict=True)
    ]
    axis = alt.Axis(
        labelExpr=label,
        labelLimit=_LABELS_WIDTH,
        title=None,
        ticks=False,
        domain=False,
        labelPadding=10,
        grid=True,
    )
    row = alt.Chart(alt.InlineData(values=values), height=alt.Step(step)).encode(
        y=alt.Y("label:N").sort(list(labels)).axis(axis)
    )
    scale = alt.Scale(domain=[0, top], nice=False)
    axis_of_rates = alt.Axis(format=".0%", title="Error rate", tickCount=5, labelFlush=False)
    low = alt.X("low:Q").scale(scale).axis(axis_of_rates)
    line = row.transform_filter("datum.estimate !== null")
    return (
        line.mark_rule(color=ACCENT, strokeWidth=2, opacity=0.5).encode(x=low, x2="high:Q"),
        line.mark_point(color=ACCENT, filled=True, size=80, opacity=1).encode(x="estimate:Q"),
        row.mark_text(align="right", color=INK, fontSize=12).encode(
            x=alt.value(_DOTS_WIDTH + _WORDS_WIDTH), text="words:N"
        ),
    )


def _values(rate: Rate) -> dict[str, float | str | None]:
    return {"estimate": rate.estimate, "low": rate.low, "high": rate.high}


def _top(rates: Sequence[Rate]) -> float:
    highest = max(rate.high or 0 for rate in rates)
    return next(top for top in _TOPS if top >= highest)


def _title(text: str, *subtitle: str) -> alt.Title:
    lines = [line for sentences in subtitle for line in wrap(sentences, _LINE_LETTERS)]
    return alt.Title(text, subtitle=lines)


def _left_out(shown: int, telling: int, rare: int) -> str:
    if shown < telling:
        return f"The {shown} most used of {telling} tools with at least {MIN_CALLS} counted calls."
    if rare == 0:
        return ""
    tools = "One tool with" if rare == 1 else f"{rare:,} tools with"
    return f"{tools} fewer than {MIN_CALLS} counted calls left out."
