"""The answers that models read: reports reduced to what a model can use, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from journeyman.records import SearchHit
from journeyman.text.truncation import truncate

if TYPE_CHECKING:  # it loads numpy and scipy, which an agent that starts must not wait for
    from journeyman.reliability.profile import Profile

MOST_TOOLS = 15
_LONGEST = {"name": 80, "tool": 80, "after_label": 80, "description": 200}

_NAMES = {
    "LearningEffect.stratified": "late_minus_early",
    "WarmUp.calls": "calls_to_first_success",
    "WarmUp.seconds": "seconds_to_first_success",
    "WarmUp.without_success": "sessions_without_success",
    "WarmUp.tools": "different_tools",
    "Comparison.difference": "warm_minus_cold",
    "CompressionReport.state": "verdict",
    "CompressionStep.state": "verdict",
}
"""Fields that models know by a name that says more than the field's own."""

Answer = dict[str, Any]


def profile_answer(profile: Profile) -> Answer:
    """Return a profile without its failures, curve and examples. Differences are late minus early:
    negative is improvement, and the readings say it in words.
    """
    from journeyman.reliability.rates import shown_with_worst  # noqa: PLC0415 - loads numpy

    shown = replace(
        profile,
        tools=tuple(shown_with_worst(profile.tools, MOST_TOOLS, lambda tool: tool.rate)),
        left_out=dict([*profile.left_out.items()][:MOST_TOOLS]),
        lengths=tuple(group for group in profile.lengths if group.sessions),
    )
    failures = ("failures", "further_failures", "further_errors")
    return {
        **reduced(shown, *failures, "curve", "marathons", "crude"),
        "dominant_tool_type": profile.task_type,
        "more_tools": max(0, len(profile.tools) - MOST_TOOLS),
    }


def hits_answer(hits: Iterable[SearchHit]) -> Answer:
    """Return the hits of a search, in the order of the search."""
    return {"hits": [reduced(hit, "key") for hit in hits]}


def reduced(value: Any, *without: str) -> Any:
    """Return a value as a model reads it: records as objects, without these fields and empty texts,
    times in ISO 8601, numbers with four digits, and long names and descriptions truncated.
    """
    if isinstance(value, Struct):
        kind, fields = type(value).__name__, asdict(value).items()
        return {
            _NAMES.get(f"{kind}.{name}", name): reduced(_shown(name, item), *without)
            for name, item in fields
            if name not in without and item != ""
        }
    if isinstance(value, dict):
        return {truncate(key, _LONGEST["name"]): reduced(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [reduced(item, *without) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def _shown(name: str, value: Any) -> Any:
    if name in ("at", "created_at", "last_used_at") and value is not None:
        try:
            return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"
        except (OverflowError, ValueError, OSError):  # a clock that was far off
            return None
    return truncate(value, _LONGEST[name]) if name in _LONGEST else value
