"""A profile as one HTML file that a person would send to a colleague: no scripts, nothing that is
fetched, charts drawn into it. How it looks is in `page.html`; the tables are in `page_tables`.
Importing this loads the charts.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from journeyman.reliability import charts
from journeyman.reliability.charts import many
from journeyman.reliability.lengths import BANDS
from journeyman.reliability.markup import Markup, element, joined
from journeyman.reliability.page_tables import group_table, interval, learning_table, tool_table
from journeyman.reliability.profile import FailureGroup, Group, Profile
from journeyman.reliability.rates import Rate
from journeyman.reliability.wording import percent

if TYPE_CHECKING:
    import altair as alt

MOST_TOOLS = 5
"""Of the tools that fail in one way, so many are named."""


def page(
    profile: Profile,
    *,
    title: str,
    made_at: float | None,
    groups: Sequence[tuple[str, tuple[Group, ...]]] = (),
) -> str:
    """The page. `groups` are further tables, each with what it is by, such as "model"."""
    sections = [_header(profile, title, made_at)]
    if profile.calls:
        sections += [_figures(profile), _failures(profile), _tools(profile)]
        sections += [_along(profile), _lengths(profile)]
        sections += [
            _section(f"By {name}", group_table(shown, name.capitalize())) for name, shown in groups
        ]
    frame = Template((files(__package__) / "page.html").read_text("utf-8"))
    made = frame.substitute(title=joined(title), body="\n".join(sections))
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", made)  # no line begins with the sign


def _header(profile: Profile, title: str, made_at: float | None) -> Markup:
    rate = profile.rate
    said = profile.note
    if rate.estimate is not None:
        said = (
            f"In {many(profile.sessions, 'session')} with {many(profile.calls, 'tool call')}, "
            f"{percent(rate)} of the calls that count failed "
            f"({rate.errors:,} of {rate.total:,}; 95 % interval: {interval(rate)})."
        )
    parts = [element("h1", title), element("p", said, class_="lead")]
    made = _day(made_at)
    if made:
        parts.append(_quiet(f"Made on {made}."))
    return element("header", *parts)


def _day(at: float | None) -> str:
    if at is None:
        return ""
    try:
        day = datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{day.day} {day:%B %Y}"


def _figures(profile: Profile) -> Markup:
    apart = profile.refused + profile.interrupted
    shown = [
        (
            "Sessions",
            f"{profile.sessions:,}",
            f"{profile.sessions_without_calls:,} without tool calls",
        ),
        ("Tool calls", f"{profile.calls:,}", f"with {many(len(profile.tools), 'tool')}"),
        ("Error rate", percent(profile.rate), interval(profile.rate)),
        (
            "Errors",
            f"{profile.rate.errors:,}",
            f"{profile.rate.errors - profile.invalid:,} failed, {profile.invalid:,} invalid",
        ),
        ("Answered no", f"{profile.no_match:,}", "no match, so no error"),
        (
            "Counted apart",
            f"{apart:,}",
            f"{profile.refused:,} refused, {profile.interrupted:,} interrupted",
        ),
        ("Unknown", f"{profile.unknown:,}", "not counted"),
        ("Kind of work", profile.task_type, _task_types(profile)),
    ]
    cards = [
        element(
            "div",
            element("dt", name),
            element("dd", value, class_="value"),
            element("dd", more, class_="quiet"),
        )
        for name, value, more in shown
    ]
    return element("dl", *cards, class_="figures")


def _task_types(profile: Profile) -> str:
    counted = ", ".join(f"{name} {count:,}" for name, count in profile.task_types.items())
    return f"sessions: {counted}"


def _failures(profile: Profile) -> Markup:
    if not profile.failures:
        return _section("What fails", element("p", "Not one call that counts failed."))
    items = [_failure(group, profile.rate) for group in profile.failures]
    parts = [element("ol", *items, class_="failures")]
    if profile.further_failures:
        rest = profile.rate.errors - sum(group.count for group in profile.failures)
        parts.append(
            _quiet(
                f"And {many(profile.further_failures, 'further group')} of failures with "
                f"{many(rest, 'error')} together."
            )
        )
    return _section("What fails", *parts)


def _failure(group: FailureGroup, rate: Rate) -> Markup:
    example = group.example
    named: list[str] = [
        part for tool in group.tools[:MOST_TOOLS] for part in (", ", element("code", tool))
    ]
    more = len(group.tools) - MOST_TOOLS
    facts = joined(
        element("strong", many(group.count, "error")),
        f" ({100 * group.count / rate.errors:.1f} % of all)",
        f" in {many(group.sessions, 'session')} · ",
        *named[1:],
        f" and {many(more, 'more tool')}" if more > 0 else "",
        f" · {_kind(group)}",
    )
    where = joined(
        "Session ",
        element("code", example.session),
        f", call {example.call_index + 1:,}, ",
        element("code", example.tool),
        ", judged by the rule ",
        element("code", example.rule),
    )
    return element(
        "li",
        element("p", group.fingerprint, class_="words"),
        element("p", facts),
        element("pre", example.evidence) if example.evidence else "",
        element("p", where, class_="quiet"),
    )


def _kind(group: FailureGroup) -> str:
    kind = group.kind.replace("_", " ") or "error"
    return f"{kind}, invalid call" if group.status == "invalid" else kind


def _tools(profile: Profile) -> Markup:
    missing = f"No tool has {charts.MIN_CALLS} calls that count, so there is no chart."
    chart = _figure(charts.reliability_by_tool(profile), missing)
    return _section("By tool", chart, tool_table(profile.tools))


def _along(profile: Profile) -> Markup:
    learning = profile.learning
    share = f"{100 * learning.share:.0f} %"
    told = [
        f"Early are the first {share} of a session's calls, late the last {share}, "
        f"in {many(learning.sessions, 'session')} that {_have(learning.sessions)} enough calls."
    ]
    if learning.used is not None and learning.strata:
        told.append(
            f"{many(learning.strata, 'tool')} {_have(learning.strata)} calls in both parts: "
            f"{100 * learning.used:.0f} % of the calls there."
        )
    return _section(
        "Along the session",
        _figure(charts.rate_along_session(profile), profile.curve.note),
        element("h3", "Does the agent get better within a session?"),
        element("p", learning.reading),
        learning_table(learning),
        _quiet(" ".join(told)),
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
        element("p", profile.marathons.reading),
        group_table(profile.lengths, "Length", words),
    )


def _figure(chart: "alt.LayerChart | None", missing: str) -> Markup:
    if chart is None:
        return _quiet(missing)
    drawn = charts.figure(chart)
    # Read aloud, a chart is its title and its caption, not each of its marks.
    picture = Markup(drawn.svg.replace("<svg ", f'<svg role="img" aria-label="{drawn.title}" ', 1))
    caption = element("figcaption", element("strong", drawn.title), drawn.notes)
    return element("figure", caption, element("div", picture, class_="scroll"))


def _section(heading: str, *parts: str) -> Markup:
    return element("section", element("h2", heading), *parts)


def _quiet(said: str) -> Markup:
    return element("p", said, class_="quiet")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
