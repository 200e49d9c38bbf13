"""A profile as one HTML file that a person would send to a colleague: no scripts, nothing that is
fetched, charts drawn into it. How it looks is in `page.html`. Importing this loads the charts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template
from textwrap import shorten
from typing import TYPE_CHECKING

from journeyman.reliability import charts
from journeyman.reliability.learning import Learning
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.profile import FailureGroup, Group, Profile, ToolProfile
from journeyman.reliability.rates import Difference, Rate, harmless, many, missing, percent, span

if TYPE_CHECKING:
    import altair as alt

MOST_TOOLS = 5
"""Of the tools that fail in one way, so many are named."""

MOST_ROWS = 25
"""A table of more rows is cut, and says how many there are."""

MOST_LETTERS = 90
"""Of a tool's commonest failure."""

_NUMBERS = {
    "Error rate": "rate",
    "95 % interval": "rate",
    "Errors": "number",
    "Calls": "number",
    "Sessions": "number",
    "Not counted": "rate",
}
"""Columns and the class of their cells."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def markup(form: str, *parts: str) -> Markup:
    """The form with a part in each of its places. Text is made safe and escaped, unless it is
    markup already, so that nothing a session recorded can become a part of the page.
    """
    return Markup(form.format(*map(_safe, parts)))


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Parts one after the other, each of them text or markup."""
    return Markup(between.join(map(_safe, parts)))


def _safe(part: str) -> str:
    return part if isinstance(part, Markup) else escape(harmless(part))


def page(
    profile: Profile,
    *,
    title: str,
    made_at: float,
    groups: Sequence[tuple[str, tuple[Group, ...]]] = (),
) -> str:
    """The page. `groups` are further tables, each with what it is by, such as "model"."""
    sections = [_header(profile, title, made_at)]
    if profile.calls:
        no_chart = f"No tool has {charts.MIN_CALLS} calls that count, so there is no chart."
        chart = _figure(charts.reliability_by_tool(profile), no_chart)
        names = [_named(tool) for tool in profile.tools[:MOST_ROWS]]
        tools = _groups("Tool", profile.tools, names, "more tool")
        sections += [_figures(profile), _failures(profile), _section("By tool", chart, tools)]
        sections += [_along(profile), _lengths(profile)]
        sections += [
            _section(f"By {name}", _group_table(shown, name.capitalize())) for name, shown in groups
        ]
    frame = Template((files(__package__) / "page.html").read_text("utf-8"))
    made = frame.substitute(title=_safe(title), body="\n".join(sections))
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", made)  # no line begins with the sign


def _header(profile: Profile, title: str, made_at: float) -> Markup:
    rate = profile.rate
    said = profile.note
    if rate.estimate is not None:
        said = (
            f"In {many(profile.sessions, 'session')} with {many(profile.calls, 'tool call')}, "
            f"{percent(rate)} of the calls that count failed "
            f"({rate.errors:,} of {rate.total:,}; 95 % interval: {_interval(rate)})."
        )
    day = datetime.fromtimestamp(made_at, UTC)
    made = _quiet(f"Made on {day.day} {day:%B %Y}.")
    return markup('<header><h1>{}</h1><p class="lead">{}</p>{}</header>', title, said, made)


def _figures(profile: Profile) -> Markup:
    failed = profile.rate.errors - profile.invalid
    apart = profile.refused + profile.interrupted
    types = ", ".join(f"{name} {count:,}" for name, count in profile.task_types.items())
    without = f"{profile.sessions_without_calls:,} without tool calls"
    parted = f"{profile.refused:,} refused, {profile.interrupted:,} interrupted"
    shown = [
        ("Sessions", f"{profile.sessions:,}", without),
        ("Tool calls", f"{profile.calls:,}", f"with {many(len(profile.tools), 'tool')}"),
        ("Error rate", percent(profile.rate), _interval(profile.rate)),
        ("Errors", f"{profile.rate.errors:,}", f"{failed:,} failed, {profile.invalid:,} invalid"),
        ("Answered no", f"{profile.no_match:,}", "no match, so no error"),
        ("Counted apart", f"{apart:,}", parted),
        ("Unknown", f"{profile.unknown:,}", "not counted"),
        ("Kind of work", profile.task_type, f"sessions: {types}"),
    ]
    card = '<div><dt>{}</dt><dd class="value">{}</dd><dd class="quiet">{}</dd></div>'
    return markup('<dl class="figures">{}</dl>', joined(markup(card, *one) for one in shown))


def _failures(profile: Profile) -> Markup:
    if not profile.failures:
        return _section("What fails", markup("<p>Not one call that counts failed.</p>"))
    items = joined(_failure(group, profile.rate) for group in profile.failures)
    parts = [markup('<ol class="failures">{}</ol>', items)]
    if profile.further_failures:
        said = f"And {many(profile.further_failures, 'further group')} of failures with "
        parts.append(_quiet(f"{said}{many(profile.further_errors, 'error')} together."))
    return _section("What fails", *parts)


def _failure(group: FailureGroup, rate: Rate) -> Markup:
    example = group.example
    share = 100 * group.count / rate.errors
    more = len(group.tools) - MOST_TOOLS
    kind = group.kind.replace("_", " ") or "error"
    return markup(
        '<li><p class="words">{}</p><p><strong>{}</strong>{}{}{}</p>{}'
        '<p class="quiet">Session <code>{}</code>, call {}, <code>{}</code>, judged by the rule '
        "<code>{}</code></p></li>",
        group.fingerprint,
        many(group.count, "error"),
        f" ({share:.1f} % of all) in {many(group.sessions, 'session')} · ",
        joined((markup("<code>{}</code>", tool) for tool in group.tools[:MOST_TOOLS]), ", "),
        (f" and {many(more, 'more tool')}" if more > 0 else "")
        + f" · {kind}{', invalid call' if group.status == 'invalid' else ''}",
        markup("<pre>{}</pre>", example.evidence) if example.evidence else "",
        *(example.session, f"{example.call_index + 1:,}", example.tool, example.rule),
    )


def _along(profile: Profile) -> Markup:
    learning = profile.learning
    share = f"{100 * learning.share:.0f} %"
    told = (
        f"Early are the first {share} of a session's calls, late the last {share}, "
        f"in {many(learning.sessions, 'session')} that {_have(learning.sessions)} enough calls."
    )
    if learning.used is not None and learning.strata:
        told += (
            f" {many(learning.strata, 'tool')} {_have(learning.strata)} calls in both parts: "
            f"{100 * learning.used:.0f} % of the calls there."
        )
    return _section(
        "Along the session",
        _figure(charts.rate_along_session(profile), profile.curve.note),
        markup("<h3>Does the agent get better within a session?</h3><p>{}</p>", learning.reading),
        _learning_table(learning),
        _quiet(told),
        _quiet(
            "Agents mostly read early in a session and write late, and writing fails more often. "
            "So go by the calls of the same tool. The figure for all tools together is there "
            "because people expect it."
        ),
    )


def _lengths(profile: Profile) -> Markup:
    words: dict[str, str] = {band.name: f"{band.name}: {band.words}" for band in BANDS}
    return _section(
        "By length of the session",
        _figure(charts.rate_by_length(profile), profile.note),
        markup("<p>{}</p>", profile.marathons.reading),
        _group_table(profile.lengths, "Length", words),
    )


def _figure(chart: "alt.LayerChart | None", no_chart: str) -> Markup:
    if chart is None:
        return _quiet(no_chart)
    title, notes, svg = charts.figure(chart)
    # Read aloud, a chart is its title and its caption, not each of its marks.
    picture = Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1))
    form = (
        "<figure><figcaption><strong>{}</strong>{}</figcaption>"
        '<div class="scroll">{}</div></figure>'
    )
    return markup(form, title, notes, picture)


def _section(heading: str, *parts: Markup) -> Markup:
    return markup("<section><h2>{}</h2>{}</section>", heading, joined(parts))


def _quiet(said: str) -> Markup:
    return markup('<p class="quiet">{}</p>', said)


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _named(tool: ToolProfile) -> Markup:
    """A tool's name, which a narrow column may break, and what fails most often in it."""
    failure = shorten(tool.commonest_failure, MOST_LETTERS, placeholder=" …")
    mostly = markup('<span class="mostly">mostly: {}</span>', failure) if failure else ""
    return markup("<code>{}</code>{}", joined(tool.tool.split("_"), "_<wbr>"), mostly)


def _group_table(
    groups: Sequence[Group], heading: str, words: Mapping[str, str] | None = None
) -> Markup:
    """The groups, each by its name or by the words for it."""
    names = [(words or {}).get(group.name, group.name) for group in groups[:MOST_ROWS]]
    return _groups(heading, groups, names, "more group")


def _groups(
    heading: str, groups: Sequence[Group | ToolProfile], names: Sequence[str], more: str
) -> Markup:
    shown, rest = groups[:MOST_ROWS], groups[MOST_ROWS:]
    top = max((group.rate.estimate or 0 for group in shown), default=0)
    rows = [(name, *_cells(group, top)) for name, group in zip(names, shown, strict=True)]
    table = _table({heading: "name", **_NUMBERS}, rows)
    if not rest:
        return table
    calls = many(sum(one.calls for one in rest), "call")
    errors = many(sum(one.rate.errors for one in rest), "error")
    said = f"And {many(len(rest), more)} with {calls} and {errors} together."
    return joined((table, _quiet(said)))


def _cells(one: Group | ToolProfile, top: float) -> tuple[str, ...]:
    apart = ((one.apart, "apart"), (one.unknown, "unknown"))
    return (
        _bar(one.rate, top),
        _interval(one.rate),
        *(f"{number:,}" for number in (one.rate.errors, one.calls, one.sessions)),
        ", ".join(f"{number:,} {word}" for number, word in apart if number),
    )


def _bar(rate: Rate, top: float) -> str:
    if rate.estimate is None:
        return "unknown"
    width = f"{100 * rate.estimate / top if top else 0:.1f}"
    form = '<span class="bar"><span style="width:{}%"></span></span>{}'
    return markup(form, width, percent(rate))


def _learning_table(learning: Learning) -> Markup:
    """The crude comparison of early and late beside the one of same tools with same tools."""
    both = _with_interval(learning.early), _with_interval(learning.late)
    uses = _with_interval(learning.first), _with_interval(learning.later)
    best = (
        markup("<strong>Early and late calls, same tools compared</strong>"),
        markup("<strong>{}</strong>", _difference(learning.stratified)),
        *("tool by tool", "tool by tool"),
    )
    crude = "Early and late calls, all tools together", _difference(learning.crude), *both
    compared = "First and later uses of a tool, same tools compared"
    again = compared, _difference(learning.first_later), *uses
    columns = {"Compared": "name", "Difference": "name"}
    return _table(
        columns | {"Early or first": "rate", "Late or later": "rate"}, (best, crude, again)
    )


def _interval(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return ""
    return f"{100 * rate.low:.1f} to {100 * rate.high:.1f} %"


def _with_interval(rate: Rate) -> str:
    return "unknown" if rate.estimate is None else f"{percent(rate)} ({_interval(rate)})"


def _difference(difference: Difference) -> str:
    why = missing(difference.note)
    if difference.estimate is None:
        return f"Unknown: {why}."
    points = f"{100 * abs(difference.estimate):.1f}"
    change = "fewer" if difference.estimate < 0 else "more"
    said = "no difference" if points == "0.0" else f"{points} points {change}"
    reach = span(difference)
    return f"{said} (95 % interval: {reach})" if reach else f"{said}, interval unknown: {why}"


def _table(columns: Mapping[str, str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table; the first cell of a row is its heading."""
    heading, first, cell = (
        *('<th scope="col" class="{}">{}</th>', '<th scope="row" class="{}">{}</th>'),
        '<td class="{}">{}</td>',
    )
    head = joined(markup(heading, look, name) for name, look in columns.items())
    body = joined(
        markup(
            "<tr>{}</tr>", joined(map(markup, (first, *[cell] * len(row)), columns.values(), row))
        )
        for row in rows
    )
    form = "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
    return markup('<div class="scroll">{}</div>', markup(form, head, body))
