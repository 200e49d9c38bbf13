"""Renders a profile as a single HTML file to share: no scripts, no external resources, charts
embedded. The layout is in `html_report.html`. Importing this module loads the charts.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from string import Template
from textwrap import shorten
from typing import TYPE_CHECKING, TypeVar

from journeyman.reliability import By, charts
from journeyman.reliability.groups import Group
from journeyman.reliability.learning_curve import LearningEffect
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.markup import (
    Markup,
    escaped,
    join_markup,
    markup,
    quiet,
    section,
    table,
)
from journeyman.reliability.profile import FailureGroup, Profile, ToolProfile, refusers
from journeyman.reliability.rates import (
    Difference,
    Rate,
    change_text,
    count_text,
    interval_text,
    percent,
    rate_interval_text,
    shortage_text,
    shown_with_worst,
)
from journeyman.reliability.warm_up import Median, WarmUp

if TYPE_CHECKING:
    import altair as alt

MAX_TOOLS = 5
"""Tools named for one group of failures."""

MAX_ROWS = 25
"""A longer table is cut, and a note states how many rows are missing."""

MAX_FAILURE_CHARACTERS = 90
"""Characters shown of a tool's most common failure."""

_COLUMNS = {
    "Error rate": "rate",
    "95 % interval": "rate",
    "Errors": "number",
    "Counted": "number",
    "Sessions": "number",
    "Not counted": "rate",
}
"""Column headings and the CSS class of their cells."""


_Row = TypeVar("_Row", bound=Group | ToolProfile)


def render_page(
    profile: Profile,
    *,
    title: str,
    made_at: float,
    first: tuple[By, tuple[Group, ...]] | None = None,
    groups: Sequence[tuple[By, tuple[Group, ...]]] = (),
) -> str:
    """Return the page. `first` are the groups to begin with, `groups` further tables, each with its
    grouping, such as "model".
    """
    sections = [_header(profile, title, made_at)]
    if profile.calls:
        parts: dict[str, Markup] = {
            "failures": _failures(profile),
            "tool": _tools(profile),
            "course": _along_session(profile),
            "start": _warm_up(profile.warm_up),
            "type": _types(profile),
            "length": _lengths(profile),
            **{name: section(f"By {name}", _group_table(shown, name)) for name, shown in groups},
        }
        sections.append(_key_figures(profile))
        if first:
            by, shown = first
            known = parts.pop(by, None)
            sections.append(known or _grouping(profile, by, shown))
        sections += parts.values()
    frame = Template((files(__package__) / "html_report.html").read_text("utf-8"))
    html = frame.substitute(title=escaped(title), body="\n".join(sections))
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", html)  # no line starts with the sign


def _header(profile: Profile, title: str, made_at: float) -> Markup:
    rate = profile.rate
    lead = profile.note
    if rate.estimate is not None:
        lead = (
            f"In {count_text(profile.sessions, 'session')} with "
            f"{count_text(profile.calls, 'tool call')}, {percent(rate)} of the counted calls "
            f"failed ({rate.errors:,} of {rate.total:,}; 95 % interval: "
            f"{rate_interval_text(rate)})."
        )
    day = datetime.fromtimestamp(made_at, UTC)
    date = quiet(f"Created on {day.day} {day:%B %Y}.")
    return markup('<header><h1>{}</h1><p class="lead">{}</p>{}</header>', title, lead, date)


def _key_figures(profile: Profile) -> Markup:
    failed = profile.rate.errors - profile.invalid
    apart = profile.refused + profile.interrupted
    types = ", ".join(f"{name} {count:,}" for name, count in profile.task_types.items())
    without = f"{profile.sessions_without_calls:,} without tool calls"
    refused = f"{profile.refused:,} refused{refusers(profile)}"
    reasons = f"{refused}, {profile.interrupted:,} interrupted"
    cards = [
        ("Sessions", f"{profile.sessions:,}", without),
        ("Messages", f"{profile.messages:,}", "in all sessions"),
        ("Tool calls", f"{profile.calls:,}", f"with {count_text(len(profile.tools), 'tool')}"),
        ("Error rate", percent(profile.rate), rate_interval_text(profile.rate)),
        ("Errors", f"{profile.rate.errors:,}", f"{failed:,} failed, {profile.invalid:,} invalid"),
        ("No match", f"{profile.no_match:,}", "not an error"),
        ("Counted separately", f"{apart:,}", reasons),
        ("Unknown", f"{profile.unknown:,}", "not counted"),
        ("Type of work", profile.task_type, f"sessions: {types}"),
    ]
    form = '<div><dt>{}</dt><dd class="value">{}</dd><dd class="quiet">{}</dd></div>'
    return markup('<dl class="figures">{}</dl>', join_markup(markup(form, *card) for card in cards))


def _failures(profile: Profile) -> Markup:
    if not profile.failures:
        return section("What fails", markup("<p>No counted call failed.</p>"))
    items = join_markup(_failure(group, profile.rate) for group in profile.failures)
    parts = [markup('<ol class="failures">{}</ol>', items)]
    if profile.further_failures:
        groups = f"{count_text(profile.further_failures, 'further group')} of failures"
        errors = count_text(profile.further_errors, "error")
        parts.append(quiet(f"And {groups} with {errors} in total."))
    return section("What fails", *parts)


def _failure(group: FailureGroup, rate: Rate) -> Markup:
    example = group.example
    share = 100 * group.count / rate.errors
    more = len(group.tools) - MAX_TOOLS
    kind = group.kind.replace("_", " ") or "error"
    return markup(
        '<li><p class="words">{}</p><p><strong>{}</strong>{}{}{}</p>{}'
        '<p class="quiet">Session <code>{}</code>, call {}, <code>{}</code>, judged by the rule '
        "<code>{}</code></p></li>",
        group.fingerprint,
        count_text(group.count, "error"),
        f" ({share:.1f} % of all) in {count_text(group.sessions, 'session')} · ",
        join_markup((markup("<code>{}</code>", tool) for tool in group.tools[:MAX_TOOLS]), ", "),
        (f" and {count_text(more, 'more tool')}" if more > 0 else "")
        + f" · {kind}{', invalid call' if group.status == 'invalid' else ''}",
        markup("<pre>{}</pre>", example.evidence) if example.evidence else "",
        *(example.session, f"{example.call_index + 1:,}", example.tool, example.rule),
    )


def _tools(profile: Profile) -> Markup:
    no_chart = f"No tool has {charts.MIN_CALLS} counted calls, so there is no chart."
    chart = _figure(charts.reliability_by_tool(profile), no_chart)
    return section("By tool", chart, _groups("Tool", profile.tools, _tool_name, "more tool"))


def _grouping(profile: Profile, by: By, groups: Sequence[Group]) -> Markup:
    no_chart = f"No {by} has {charts.MIN_CALLS} counted calls, so there is no chart."
    chart = _figure(charts.reliability_of_groups(profile, by, groups), no_chart)
    return section(f"By {by}", chart, _group_table(groups, by), _early_and_late(groups, by))


def _types(profile: Profile) -> Markup:
    readings = [
        markup("<li><strong>{}</strong>: {}</li>", group.name, group.learning.reading)
        for group in profile.types
        if group.learning is not None and group.learning.sessions
    ]
    return section(
        "By type of work",
        _group_table(profile.types, "type"),
        _early_and_late(profile.types, "type"),
        markup("<ul>{}</ul>", join_markup(readings)) if readings else Markup(""),
    )


def _early_and_late(groups: Sequence[Group], by: By) -> Markup:
    """Return a table of the early and late calls of each group."""
    rows = [
        (
            group.name,
            markup("<strong>{}</strong>", _short_difference(group.learning.stratified)),
            _change(group.learning.crude),
            *(percent(group.learning.early), percent(group.learning.late)),
        )
        for group in groups[:MAX_ROWS]
        if group.learning is not None and group.learning.stratified.low is not None
    ]
    if not rows:
        return Markup("")
    columns = {by.capitalize(): "name", "Late against early, same tools": "name"}
    columns |= {"All tools pooled": "name", "Early": "rate", "Late": "rate"}
    heading = markup("<h3>Early and late calls</h3>")
    return join_markup((heading, table(columns, rows)))


def _along_session(profile: Profile) -> Markup:
    learning = profile.learning
    share = f"{100 * learning.share:.0f} %"
    basis = (
        f"Early means the first {share} of a session's calls, late the last {share}, "
        f"in {count_text(learning.sessions, 'session')} with enough calls."
    )
    if learning.used is not None and learning.strata:
        verb = "has" if learning.strata == 1 else "have"
        basis += (
            f" {count_text(learning.strata, 'tool')} {verb} calls in both parts: "
            f"{100 * learning.used:.0f} % of the calls there."
        )
    return section(
        "Along the session",
        _figure(charts.rate_along_session(profile), profile.curve.note),
        markup("<h3>Does the agent improve within a session?</h3><p>{}</p>", learning.reading),
        _learning_table(learning),
        quiet(basis),
        quiet(
            "Agents mostly read early in a session and write late, and writes fail more often. "
            "Rely on the comparison with the same tools; the pooled figure is shown only because "
            "people expect it."
        ),
    )


def _warm_up(warm_up: WarmUp) -> Markup:
    """Return how sessions get going."""
    rows = [
        (f"Errors in the first {warm_up.turns} turns", _with_interval(warm_up.first_turns)),
        ("Calls to the first success", _median(warm_up.calls)),
        ("Seconds to the first success", _median(warm_up.seconds)),
        ("Sessions without a success", f"{warm_up.without_success:,}"),
        ("Different tools in a session", _median(warm_up.tools)),
        ("Effective number of tools", _median(warm_up.diversity)),
    ]
    note = quiet("A turn is one answer of the model. Medians over sessions, with 95 % intervals.")
    columns = {"Beginning": "name", "Value": "name"}
    return section("How sessions get going", table(columns, rows), note)


def _median(value: Median) -> str:
    if value.estimate is None:
        return "unknown"
    text = f"{value.estimate:,.1f}".removesuffix(".0")
    if value.low is None or value.high is None:
        return text
    low, high = (f"{bound:,.1f}".removesuffix(".0") for bound in (value.low, value.high))
    return f"{text} ({low} to {high})"


def _lengths(profile: Profile) -> Markup:
    words: dict[str, str] = {band.name: f"{band.name}: {band.words}" for band in BANDS}
    return section(
        "By length of the session",
        _figure(charts.rate_by_length(profile), profile.note),
        markup("<p>{}</p>", profile.marathons.reading),
        _group_table(profile.lengths, "length", words),
    )


def _figure(chart: "alt.LayerChart | None", no_chart: str) -> Markup:
    if chart is None:
        return quiet(no_chart)
    title, notes, svg = charts.svg_with_caption(chart)
    # A screen reader reads the title and the caption of a chart, not each of its marks.
    image = Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1))
    form = (
        "<figure><figcaption><strong>{}</strong>{}</figcaption>"
        '<div class="scroll">{}</div></figure>'
    )
    return markup(form, title, notes, image)


def _tool_name(tool: ToolProfile) -> Markup:
    """Return a tool's name, which a narrow column may break, and its most common failure."""
    failure = shorten(tool.commonest_failure, MAX_FAILURE_CHARACTERS, placeholder=" …")
    mostly = markup('<span class="mostly">mostly: {}</span>', failure) if failure else ""
    return markup("<code>{}</code>{}", join_markup(tool.tool.split("_"), "_<wbr>"), mostly)


def _group_table(groups: Sequence[Group], by: By, words: Mapping[str, str] | None = None) -> Markup:
    """Return a table of groups, each labelled with its name or the words for it."""

    def name(group: Group) -> str:
        return (words or {}).get(group.name, group.name)

    return _groups(by.capitalize(), groups, name, "more group")


def _groups(heading: str, groups: Sequence[_Row], name: Callable[[_Row], str], more: str) -> Markup:
    shown = shown_with_worst(groups, MAX_ROWS, lambda group: group.rate)
    top = max((group.rate.estimate or 0.0 for group in shown), default=0.0)
    cells = [(name(group), *_cells(group, top)) for group in shown]
    rows = table({heading: "name", **_COLUMNS}, cells)
    rest = [group for group in groups if group not in shown]
    if not rest:
        return rows
    calls = count_text(sum(group.rate.total for group in rest), "counted call")
    errors = count_text(sum(group.rate.errors for group in rest), "error")
    note = f"And {count_text(len(rest), more)} with {calls} and {errors} in total."
    return join_markup((rows, quiet(note)))


def _cells(group: Group | ToolProfile, top: float) -> tuple[str, ...]:
    not_counted = ((group.apart, "refused or interrupted"), (group.unknown, "unknown"))
    return (
        _bar(group.rate, top),
        rate_interval_text(group.rate),
        *(f"{number:,}" for number in (group.rate.errors, group.rate.total, group.sessions)),
        ", ".join(f"{number:,} {word}" for number, word in not_counted if number),
    )


def _bar(rate: Rate, top: float) -> str:
    if rate.estimate is None:
        return "unknown"
    width = f"{100 * rate.estimate / top if top else 0:.1f}"
    form = '<span class="bar"><span style="width:{}%"></span></span>{}'
    return markup(form, width, percent(rate))


def _learning_table(learning: LearningEffect) -> Markup:
    """Return the three comparisons: early and late with the same tools, early and late with all
    tools pooled, and first and later uses of a tool.
    """
    parts = _with_interval(learning.early), _with_interval(learning.late)
    uses = _with_interval(learning.first), _with_interval(learning.later)
    stratified = (
        markup("<strong>Early and late calls, same tools compared</strong>"),
        markup("<strong>{}</strong>", _difference(learning.stratified)),
        *("tool by tool", "tool by tool"),
    )
    crude = "Early and late calls, all tools pooled", _difference(learning.crude), *parts
    heading = "First and later uses of a tool, same tools compared"
    first_later = heading, _difference(learning.first_later), *uses
    columns = {"Comparison": "name", "Difference": "name"}
    return table(
        columns | {"Early or first": "rate", "Late or later": "rate"},
        (stratified, crude, first_later),
    )


def _with_interval(rate: Rate) -> str:
    return "unknown" if rate.estimate is None else f"{percent(rate)} ({rate_interval_text(rate)})"


def _change(difference: Difference) -> str:
    """Return the difference in words; without enough data for an interval it is unknown."""
    if difference.estimate is None or difference.low is None:
        return "unknown"
    return change_text(difference.estimate)


def _short_difference(difference: Difference) -> str:
    return f"{_change(difference)} ({interval_text(difference)})"


def _difference(difference: Difference) -> str:
    interval = interval_text(difference)
    if not interval:
        return f"Unknown: {shortage_text(difference.note)}."
    return f"{_change(difference)} (95 % interval: {interval})"
