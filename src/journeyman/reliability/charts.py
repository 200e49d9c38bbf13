"""Draws error rates as SVG text, in rows with their intervals. Text and lines follow the light or
dark theme of the reader, and hovering over a mark shows its values.
"""

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, log10
from textwrap import wrap
from unicodedata import east_asian_width

from journeyman.reliability import By
from journeyman.reliability.groups import Group
from journeyman.reliability.profile import Profile
from journeyman.reliability.rates import Rate, percent, rate_interval_text, shown_with_worst
from journeyman.text.display import printable

MAX_ROWS = 40
MIN_CALLS = 5  # with fewer counted calls, an interval is too wide to be useful
_WIDTH, _MARGIN, _ROW, _LINE = 760, 20, 24, 18
_LEFT, _RIGHT = 270, 650
_LABEL_CHARACTERS, _NOTE_CHARACTERS = 34, 105
_NOTE = "Errors among the counted calls, with 95 % intervals."

# Okabe and Ito's blues, which colour-blind readers can tell from grey and from other colours.
_STYLE = """
.chart { color: #1f2328; background: #fff; font: 13px system-ui, sans-serif; --mark: #0072b2; }
.chart text { fill: currentColor; }
.chart .heading { font-size: 16px; font-weight: 600; }
.chart .quiet { opacity: 0.65; }
.chart .middle { text-anchor: middle; } .chart .end { text-anchor: end; }
.chart polyline { fill: none; stroke: currentColor; stroke-width: 2; }
.chart .grid { stroke-opacity: 0.15; stroke-width: 1; }
.chart .all { stroke-opacity: 0.6; stroke-width: 1; stroke-dasharray: 4 3; }
.chart .interval { stroke: var(--mark); stroke-opacity: 0.5; }
.chart circle { fill: var(--mark); }
@media (prefers-color-scheme: dark) {
  .chart { color: #e6edf3; background: #0d1117; --mark: #56b4e9; }
}
"""


def draw_rates(
    heading: str, rows: Sequence[tuple[str, Rate]], note: str = _NOTE, overall: Rate | None = None
) -> str:
    """Draw a row for each rate: a dot on its interval, between its label and the rate as text. A
    dashed line marks the rate of all calls, if it is supplied.
    """
    ticks = _ticks([rate for _, rate in rows] + ([overall] if overall else []))
    height = len(rows) * _ROW

    def across(value: float | None) -> float:
        return _LEFT + (value or 0) / ticks[-1] * (_RIGHT - _LEFT)

    elements = []
    for tick in ticks:
        x = across(tick)
        elements.append(_line("grid", [(x, 0), (x, height)]))
        elements.append(_text((x, height + _LINE), f"{100 * tick:g} %", "middle quiet"))
    if overall and overall.total:
        x = across(overall.estimate)
        elements.append(_line("all", [(x, 0), (x, height)], _about("all calls", overall)))
    for at, (label, rate) in enumerate(rows):
        y, about = (at + 0.5) * _ROW, _about(label, rate)
        elements.append(_text((_LEFT - 12, y + 4), _short(label), "end", about))
        elements.append(_text((_WIDTH - _MARGIN, y + 4), percent(rate), "end"))
        if rate.total:
            ends = [(across(rate.low), y), (across(rate.high), y)]
            elements += [_line("interval", ends, about), _dot(across(rate.estimate), y, about)]
    y = _MARGIN + 2 * _LINE
    parts = [_text((_MARGIN, _MARGIN + 14), heading, "heading")]
    for line in wrap(note, _NOTE_CHARACTERS):
        parts.append(_text((_MARGIN, y), line, "quiet"))
        y += _LINE
    parts += [f'<g transform="translate(0 {y})">', *elements, "</g>"]
    y += height + _LINE + _MARGIN
    size = f'viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" {size}>'
    return "\n".join((root, f"<style>{_STYLE}</style>", *parts, "</svg>\n"))


def draw_profile(profile: Profile, by: By | None, groups: Sequence[Group]) -> str:
    """Return the chart of a profile: the error rates of the groups, or without them of the tools.
    Empty if there is nothing to draw.
    """
    rows = [(group.name, group.rate) for group in groups]
    rows = rows if by else [(tool.name, tool.rate) for tool in profile.tools]
    known = [row for row in rows if row[1].total >= MIN_CALLS]
    if not known:
        return ""
    worst = shown_with_worst(known, MAX_ROWS, lambda row: row[1])
    shown = known[-MAX_ROWS:] if by == "day" else worst
    note = f"{_NOTE} Dashed: all calls, {percent(profile.rate)}."
    if len(shown) < len(rows):
        left_out = "earlier, or " if by == "day" else ""
        note += f" Not shown: {len(rows) - len(shown):,} {left_out}with fewer calls."
    return draw_rates(f"How often calls fail, by {by or 'tool'}", shown, note, profile.rate)


def _ticks(rates: Iterable[Rate]) -> list[float]:
    """Return round numbers from 0 that enclose all intervals."""
    highest = max((rate.high or 0.0 for rate in rates), default=0.0) or 1.0
    size = 10 ** floor(log10(highest / 4))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= highest / 4)
    return [step * number for number in range(ceil(highest / step - 1e-9) + 1)]


def _about(label: str, rate: Rate) -> str:
    """Return what is shown on hovering over a mark."""
    text = f"{label}: {percent(rate)}, {rate.errors:,} errors in {rate.total:,} counted calls"
    if rate.total:
        text += f"; 95 % interval {rate_interval_text(rate)}"
    return f"<title>{_escape(text)}</title>"


def _short(label: str) -> str:
    """Return a label that fits; a long one keeps its start and its end."""
    is_wide = any(east_asian_width(letter) in "WF" for letter in label)
    half = _LABEL_CHARACTERS // (4 if is_wide else 2)
    return label if len(label) <= 2 * half else f"{label[:half]}…{label[-half + 1 :]}"


def _text(at: tuple[float, float], text: str, kind: str = "", about: str = "") -> str:
    x, y = at
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{_escape(text)}{about}</text>'


def _line(kind: str, points: Iterable[tuple[float, float]], about: str = "") -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{places}">{about}</polyline>'


def _dot(x: float, y: float, about: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5">{about}</circle>'


def _escape(text: str) -> str:
    return escape(" ".join(printable(text).split()))
