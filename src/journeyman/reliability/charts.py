"""Charts of a profile as PNG or SVG. A chart without data is None, never an empty axis. Importing
this module loads altair, so callers import it only when they draw.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from textwrap import wrap
from typing import Any

from journeyman.records.errors import MissingPart
from journeyman.reliability import By
from journeyman.reliability.groups import Group
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.profile import Profile
from journeyman.reliability.rates import Rate, count_text, percent, shown_with_worst
from journeyman.text.display import printable

THEME = json.loads(files(__package__).joinpath("theme.json").read_text("utf-8"))
"""The style of all charts, as a Vega-Lite configuration."""

# Okabe and Ito's blue, which colour-blind readers can distinguish from grey and other colours.
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
"""The file name suffixes that a chart can be written to."""


MAX_ROWS = 15
MIN_CALLS = 5
"""With fewer counted calls, an interval is too wide to be useful."""

_LABEL_WIDTH = 230
_PLOT_WIDTH = 340
_VALUE_WIDTH = 56
_LINE_CHARACTERS = 100
_EXPLANATION = "Errors among the counted calls, with the 95 % interval."

_AXIS_ENDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
"""Possible upper ends of a rate axis."""

# A long label keeps its start and its end, which holds the number of calls.
_SHORTENED_LABEL = (
    "length(datum.label) > 36"
    " ? slice(datum.label, 0, 18) + '…' + slice(datum.label, -17) : datum.label"
)


def reliability_by_tool(profile: Profile) -> alt.LayerChart | None:
    """Draw the error rates of the most used tools, the most used first."""
    rows = [(tool.tool, tool.rate) for tool in profile.tools]
    return _rates_chart(rows, profile.rate, "How often each tool fails", "tool")


def reliability_of_groups(
    profile: Profile, by: By, groups: Sequence[Group]
) -> alt.LayerChart | None:
    """Draw the error rates of groups, in their order."""
    rows = [(group.name, group.rate) for group in groups]
    return _rates_chart(rows, profile.rate, f"How often calls fail, by {by}", by)


def _rates_chart(
    rows: Sequence[tuple[str, Rate]], overall: Rate, title: str, noun: str
) -> alt.LayerChart | None:
    eligible = [row for row in rows if row[1].total >= MIN_CALLS]
    shown = shown_with_worst(eligible, MAX_ROWS, lambda row: row[1])
    if not shown:
        return None
    labels = [f"{' '.join(printable(name).split())} ({rate.total:,})" for name, rate in shown]
    rates = [rate for _, rate in shown]
    # The axis must include the dashed line: what is not shown may be worse.
    top = _axis_end([*rates, overall])
    dots = _dots(labels, rates, top=top, step=24, label=_SHORTENED_LABEL)
    line = (
        alt.Chart(alt.InlineData(values=[{"all": overall.estimate}]))
        .mark_rule(strokeDash=[4, 3], color=QUIET)
        .encode(x="all:Q")
    )
    return alt.LayerChart(layer=[line, *dots]).properties(
        width=_PLOT_WIDTH,
        title=_title(
            title,
            f"{_EXPLANATION} In brackets: number of counted calls.",
            f"Dashed: all calls, {percent(overall)}. "
            + _omission_note(len(shown), len(eligible), len(rows) - len(eligible), noun),
        ),
    )


def rate_along_session(profile: Profile, *, width: int = 560) -> alt.LayerChart | None:
    """Draw the error rate from the start of the sessions to their end."""
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
            labelExpr="datum.value == 0 ? 'start' : datum.value == 1 ? 'end'"
            " : format(datum.value, '.0%')",
            title="Position in the session",
            labelFlush=True,
        )
    )
    chart = alt.Chart(alt.InlineData(values=values)).encode(x=place)
    axis = alt.Axis(format=".0%", title="Error rate", tickCount=5, grid=True, domain=False)
    rates = alt.Y("low:Q").scale(domain=[0, _axis_end(parts)], nice=False).axis(axis)
    layers = [
        chart.mark_area(color=ACCENT, opacity=0.18).encode(y=rates, y2="high:Q"),
        chart.mark_line(color=ACCENT, strokeWidth=2).encode(y="estimate:Q"),
        chart.mark_point(color=ACCENT, filled=True, size=45, opacity=1).encode(y="estimate:Q"),
    ]
    title = _title("How often calls fail along a session", _EXPLANATION, profile.curve.note)
    return alt.LayerChart(layer=layers).properties(width=width, height=200, title=title)


def rate_by_length(profile: Profile) -> alt.LayerChart | None:
    """Draw the error rates of short, mid-length and marathon sessions."""
    if profile.rate.total == 0:
        return None
    words: dict[str, str] = {band.name: band.words for band in BANDS}
    labels = [
        f"{group.name}: {words[group.name]}\n{count_text(group.sessions, 'session')}, "
        f"{count_text(group.rate.total, 'counted call')}"
        for group in profile.lengths
    ]
    rates = [group.rate for group in profile.lengths]
    dots = _dots(labels, rates, top=_axis_end(rates), step=46, label="split(datum.label, '\\n')")
    return alt.LayerChart(layer=dots).properties(
        width=_PLOT_WIDTH,
        title=_title(
            "How often calls fail in short and long sessions",
            _EXPLANATION,
            "Long sessions involve different work, so length is not necessarily the cause.",
        ),
    )


def overview_chart(
    profile: Profile, by: By | None = None, groups: Sequence[Group] = ()
) -> alt.VConcatChart | None:
    """Draw all charts that have data, one below the other: first the tools, or the groups if there
    are any.
    """
    along = rate_along_session(profile, width=_PLOT_WIDTH + _VALUE_WIDTH)
    first = reliability_of_groups(profile, by, groups) if by else reliability_by_tool(profile)
    candidates = [first, along, rate_by_length(profile) if by != "length" else None]
    charts = [chart for chart in candidates if chart is not None]
    if not charts:
        return None
    # The plots are aligned with each other, so the titles have to start left of all labels.
    stacked: alt.VConcatChart = alt.vconcat(*charts, spacing=44).configure_title(
        frame="group", dx=-_LABEL_WIDTH
    )
    return stacked


def svg_with_caption(chart: alt.LayerChart) -> tuple[str, str, str]:
    """Return the title, the subtitle and the SVG without them, for a page that sets the text in its
    own font.
    """
    spec = chart.to_dict()
    title = spec.pop("title")
    return title["text"], " ".join(title["subtitle"]), _svg(spec)


def _svg(spec: dict[str, Any]) -> str:
    svg: str = vl_convert.vegalite_to_svg(spec, config=THEME, allowed_base_urls=[])
    return svg


def render(chart: Chart, suffix: str) -> bytes:
    """Return the content of the chart's file, for a suffix in `FORMATS`."""
    if suffix == ".svg":
        return _svg(chart.to_dict()).encode()
    png: bytes = vl_convert.vegalite_to_png(
        chart.to_dict(), config=THEME, scale=2, allowed_base_urls=[]
    )
    return png


def _dots(
    labels: Sequence[str], rates: Sequence[Rate], *, top: float, step: int, label: str
) -> tuple[alt.Chart, ...]:
    """Draw a row for each rate: a dot, its interval as a line, and the rate as text."""
    values = [
        _values(rate)
        | {"label": text, "words": percent(rate) if rate.total else "no counted calls"}
        for text, rate in zip(labels, rates, strict=True)
    ]
    axis = alt.Axis(
        labelExpr=label,
        labelLimit=_LABEL_WIDTH,
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
            x=alt.value(_PLOT_WIDTH + _VALUE_WIDTH), text="words:N"
        ),
    )


def _values(rate: Rate) -> dict[str, float | str | None]:
    return {"estimate": rate.estimate, "low": rate.low, "high": rate.high}


def _axis_end(rates: Sequence[Rate]) -> float:
    highest = max(rate.high or 0 for rate in rates)
    return next(top for top in _AXIS_ENDS if top >= highest)


def _title(text: str, *subtitle: str) -> alt.Title:
    lines = [line for sentences in subtitle for line in wrap(sentences, _LINE_CHARACTERS)]
    return alt.Title(text, subtitle=lines)


def _omission_note(shown: int, eligible: int, rare: int, noun: str) -> str:
    if shown < eligible:
        return (
            f"{shown} of {eligible} {noun}s with at least {MIN_CALLS} counted calls, the worst"
            " among them."
        )
    if rare == 0:
        return ""
    few = f"fewer than {MIN_CALLS} counted calls"
    return (
        f"One {noun} with {few} is omitted."
        if rare == 1
        else f"{rare:,} {noun}s with {few} are omitted."
    )
