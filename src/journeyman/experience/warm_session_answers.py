"""The answers that models read: reports reduced to what a model can use, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from journeyman.records import LateChange, SearchHit, Template
from journeyman.text.truncation import truncate

if TYPE_CHECKING:  # the reports load numpy and scipy, which an agent that starts must not wait for
    from journeyman.experience.opening import Opening
    from journeyman.reliability import By
    from journeyman.reliability.comparison import Comparison, Side
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.groups import Group
    from journeyman.reliability.learning_curve import LearningEffect
    from journeyman.reliability.profile import Profile, ToolProfile
    from journeyman.reliability.rates import Difference, Rate
    from journeyman.reliability.warm_up import Median, WarmUp

MOST_TOOLS = 15
MOST_STEPS = 10
MOST_TEMPLATES = 50
_LONGEST_NAME = 80
_LONGEST_TEXT = 200

Answer = dict[str, object]


def profile_answer(profile: Profile) -> Answer:
    """Return a profile without its failures, curve and examples. Differences are late minus early:
    negative is improvement, and the readings say it in words.
    """
    from journeyman.reliability.rates import shown_with_worst  # noqa: PLC0415 - loads numpy

    tools = shown_with_worst(profile.tools, MOST_TOOLS, lambda tool: tool.rate)
    lengths = [group for group in profile.lengths if group.sessions]
    return {
        **_fields(profile, "sessions", "messages", "calls"),
        **({"bots_left_out": profile.bots} if profile.bots else {}),
        "apart": profile.refused + profile.interrupted,
        **_fields(profile, "unknown", "task_type"),
        "dominant_tool_type": profile.task_type,
        "error_rate": _rate(profile.rate),
        "tools": [_row("tool", tool.tool, tool) for tool in tools],
        "more_tools": max(0, len(profile.tools) - MOST_TOOLS),
        "tool_distribution": {
            truncate(tool.tool, _LONGEST_NAME): _number(tool.share) for tool in tools
        },
        "left_out": {
            truncate(tool, _LONGEST_NAME): calls
            for tool, calls in [*profile.left_out.items()][:MOST_TOOLS]
        },
        "lengths": [_row("length", group.name, group) for group in lengths],
        "types": [
            {**_row("type", group.name, group), **_learning(group.learning)}
            for group in profile.types
        ],
        "learning": _learning(profile.learning),
        "warm_up": _warm_up(profile.warm_up),
        **_note(profile.note),
    }


def compression_answer(report: CompressionReport) -> Answer:
    """Return the verdict on a lineage, and on each of its last compressions."""
    steps = report.steps[-MOST_STEPS:]
    return {
        "verdict": report.state or "never compressed",
        "reading": report.reading,
        "compressions": len(report.steps),
        "proficiency_preserved": report.is_within_tolerance,
        "steps": [
            {
                "after": truncate(step.after_label, _LONGEST_NAME),
                "verdict": step.state,
                "change": _interval(step.difference),
                "reading": step.reading,
            }
            for step in steps
        ],
        **_note(report.note),
    }


def comparison_answer(comparison: Comparison) -> Answer:
    """Return the comparison of warm with cold sessions. `improvement` and `warm_better` are by the
    rates alone; the verdict says whether chance explains them.
    """
    warmer = comparison.difference.estimate
    return {
        "verdict": comparison.verdict,
        "warm_minus_cold": _interval(comparison.difference),
        "improvement": None if warmer is None else _number(-warmer),
        "warm_better": None if warmer is None else warmer < 0,
        "same_tools": _interval(comparison.same_tools),
        "first_turns": _interval(comparison.first_turns),
        "reading": comparison.reading,
        "warm": _side(comparison.warm),
        "cold": _side(comparison.cold),
        **_note(comparison.note),
    }


def built_answer(template: Template) -> Answer:
    """Return a template that was just built."""
    from journeyman.reliability.learning_curve import late_change_text  # noqa: PLC0415 - loads numpy

    change = template.late_minus_early or LateChange()
    return {
        "template": template.name,
        **_fields(template, "version", "task_type", "scanned", "qualified"),
        "created_at": _time(template.created_at),
        "patterns": len(template.patterns),
        "pattern_count": len(template.patterns),
        "late_minus_early": {**_interval(change), "calls": change.calls},
        "reading": late_change_text(change),
    }


def templates_answer(templates: Sequence[Template]) -> Answer:
    """Return the templates, by name, and how many there are."""
    return {
        "count": len(templates),
        "templates": [
            {
                **_fields(template, "name", "version", "task_type", "tags"),
                "description": truncate(template.description, _LONGEST_TEXT),
                "patterns": len(template.patterns),
                "pattern_count": len(template.patterns),
                "created_at": _time(template.created_at),
                "used": template.used,
            }
            for template in templates[:MOST_TEMPLATES]
        ],
        "more_templates": max(0, len(templates) - MOST_TEMPLATES),
    }


def opening_answer(opening: Opening) -> Answer:
    """Return an opening as messages, with the note on the examples in `system` too."""
    messages = opening.messages()
    return {
        "message_count": len(messages),
        "messages": messages,
        "system": opening.system,
        "template": opening.template,
        "patterns": len(opening.patterns),
        "pattern_count": len(opening.patterns),
        **_fields(opening, "tokens", "reasons"),
        **_note(opening.note),
    }


def hits_answer(hits: Iterable[SearchHit]) -> Answer:
    """Return the hits of a search, in the order of the search."""
    return {
        "hits": [
            {
                **_fields(hit, "session", "source", "role", "message"),
                **({"tool": hit.tool} if hit.tool else {}),
                "at": _time(hit.at),
                "text": hit.snippet,
            }
            for hit in hits
        ]
    }


def _row(key: By, name: str, group: Group | ToolProfile) -> Answer:
    return {key: truncate(name, _LONGEST_NAME), **_group(group)}


def _group(group: Group | ToolProfile | Side) -> Answer:
    return {**_fields(group, "sessions", "calls"), "error_rate": _rate(group.rate)}


def _side(side: Side) -> Answer:
    types = [
        {**_row("type", group.name, group), **_learning(group.learning)} for group in side.types
    ]
    return {**_group(side), "warm_up": _warm_up(side.warm_up), "types": types}


def _learning(effect: LearningEffect | None) -> Answer:
    """Return late against early calls; nothing if they were not compared."""
    if effect is None:
        return {}
    return {
        "early": _rate(effect.early),
        "late": _rate(effect.late),
        "late_minus_early": _interval(effect.stratified),
        "reading": effect.reading,
    }


def _warm_up(begun: WarmUp) -> Answer:
    return {
        f"error_rate_first_{begun.turns}_turns": _rate(begun.first_turns),
        "calls_to_first_success": _interval(begun.calls),
        "seconds_to_first_success": _interval(begun.seconds),
        "sessions_without_success": begun.without_success,
        "different_tools": _interval(begun.tools),
        "tool_diversity": _interval(begun.diversity),
    }


def _fields(record: object, *names: str) -> Answer:
    return {name: getattr(record, name) for name in names}


def _rate(rate: Rate) -> Answer:
    return {"errors": rate.errors, "of": rate.total, **_interval(rate)}


def _interval(estimate: Rate | Difference | LateChange | Median) -> Answer:
    numbers = {name: _number(getattr(estimate, name)) for name in ("estimate", "low", "high")}
    return {**numbers, "method": estimate.method}


def _number(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _time(at: float | None) -> str | None:
    try:
        return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):  # a clock that was far off
        return None


def _note(note: str) -> Answer:
    return {"note": note} if note else {}
