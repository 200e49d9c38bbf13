"""Hermes' counters as usage: those of a session, and those by model and task beside it."""

from typing import Any

from journeyman.logs.hermes_rows import Row
from journeyman.logs.values import seconds, whole_number
from journeyman.records import Usage

COUNTERS = (
    "api_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "estimated_cost_usd",
    "actual_cost_usd",
)
"""What a row of usage counts."""

_USAGE_NAMES = ("task", "model", "billing_provider", "billing_base_url", "billing_mode")


def usage_of(session: Row, by_model: list[Row]) -> list[Usage]:
    """A session's tokens. The session's own counters leave side work out, and the rows by model
    may be younger than the session: whichever knows more speaks for the conversation.
    """
    side = [usage for row in by_model if row.get("task") if (usage := _usage(row))]
    main = [usage for row in by_model if not row.get("task") if (usage := _usage(row))]
    whole = _usage({**session, "task": ""})
    if whole is not None and (not main or _tokens(whole) > sum(map(_tokens, main))):
        main = [whole]
    return main + side


def _tokens(usage: Usage) -> int:
    prompt = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return sum(count or 0 for count in (*prompt, usage.output_tokens))


def _usage(row: Row) -> Usage | None:
    """One row of counters; None when all are zero, which in Hermes means not known."""
    counts = {name: whole_number(row.get(name)) for name in COUNTERS if name.endswith("_tokens")}
    actual, estimated = _cost(row.get("actual_cost_usd")), _cost(row.get("estimated_cost_usd"))
    cost = actual or estimated
    if not any(counts.values()):
        if cost is None:
            return None
        counts = dict.fromkeys(counts)
    names = {name: str(row.get(name) or "") for name in _USAGE_NAMES}
    return Usage(
        key="/".join(("usage", *names.values())),
        model=names["model"],
        task=names["task"],
        at=seconds(row.get("last_seen") or row.get("ended_at") or row.get("started_at")),
        api_calls=whole_number(row.get("api_call_count")) or 0,
        cost_usd=cost,
        cost_origin="" if cost is None else "actual" if actual else "estimated",
        **counts,
    )


def _cost(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and value else None
