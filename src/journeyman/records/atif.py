"""A session as a trajectory in ATIF, the Agent Trajectory Interchange Format: one step for each
message, with the results of its calls in the same step.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from journeyman.records.fragment import ExportedSession
from journeyman.records.message import Call, Message, ResultFlags, ToolCall, join_calls
from journeyman.records.usage import Tokens, Usage

SCHEMA_VERSION = "ATIF-v1.7"
"""The oldest version with a place for everything that is written here."""

OWN_FIELDS = "journeyman"
"""The key in a trajectory's `extra` that holds what ATIF has no field for."""

_SOURCES = {"system": "system", "user": "user", "assistant": "agent", "tool": "system"}
_VERSION_KEYS = ("version", "cli_version", "copilot_version")


def atif_trajectory(exported: ExportedSession) -> dict[str, Any]:
    """Return a session as a trajectory. Its validity does not depend on what was recorded."""
    session = exported.session
    calls: dict[str, list[Call]] = defaultdict(list)
    joined = join_calls(exported.messages)
    for call in joined:
        calls[call.asked_key].append(call)
    answered = {call.answered_key for call in joined}
    usage = {row.key: row for row in exported.usage}
    steps = [
        _step(message, calls[message.key], usage.get(message.key))
        for message in exported.messages
        if message.key not in answered
    ]
    # A trajectory has at least one step.
    steps = steps or [{"source": "system", "message": ""}]
    versions = (session.details.get(key) for key in _VERSION_KEYS)
    agent = {
        "name": session.source,
        "version": next((text for text in versions if isinstance(text, str) and text), "unknown"),
        "model_name": session.model,
    }
    own = msgspec.to_builtins(session)
    own = {name: value for name, value in own.items() if name not in ("id", "log", "details")}
    return _without_empty(
        {
            "schema_version": SCHEMA_VERSION,
            "session_id": session.id,
            "trajectory_id": session.id,
            "agent": _without_empty(agent),
            "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
            "final_metrics": {**_totals(exported.usage), "total_steps": len(steps)},
            "extra": {OWN_FIELDS: own},
        }
    )


def _step(message: Message, calls: Sequence[Call], usage: Usage | None) -> dict[str, Any]:
    is_agent = message.role == "assistant"
    results = [
        _result(call.result, call.recorded, call.id if is_agent else "")
        for call in calls
        if call.result is not None
    ]
    if message.role == "tool":  # the result of a call that was not recorded
        results = [_result(message.text, message.recorded, "")]
    extra: dict[str, Any] = {} if message.kind == "plain" else {"kind": message.kind}
    if message.generation:
        extra["generation"] = message.generation
    tool_calls = [_tool_call(call) for call in message.tool_calls]
    if not is_agent and tool_calls:
        # Only an agent has tool calls in ATIF; these are commands that the user ran.
        extra["tool_calls"] = tool_calls
    step: dict[str, Any] = {
        "timestamp": _timestamp(message.at),
        "source": _SOURCES[message.role],
        "message": "" if message.role == "tool" else message.text,
        "observation": {"results": results} if results else None,
        "is_copied_context": message.copied or None,
        "extra": extra,
    }
    if is_agent:
        step |= {
            "model_name": message.model,
            "reasoning_content": message.reasoning,
            "tool_calls": tool_calls,
            "metrics": None if usage is None else _metrics(usage),
        }
    return {"message": step["message"], **_without_empty(step)}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    fields: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.name, "arguments": {}}
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return {**fields, "arguments": arguments}
    return {**fields, "extra": {"raw_arguments": call.arguments}}


def _result(text: str, recorded: ResultFlags | None, call_id: str) -> dict[str, Any]:
    flags = {} if recorded is None else msgspec.to_builtins(recorded)
    result = {"content": text, **({"extra": flags} if flags else {})}
    return {"source_call_id": call_id, **result} if call_id else result


def _metrics(tokens: Tokens) -> dict[str, Any]:
    """Return tokens as ATIF counts them: the prompt includes what the cache served or stored."""
    prompt = (tokens.input_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens)
    known = [count for count in prompt if count is not None]
    more = {
        "cache_write_tokens": tokens.cache_write_tokens,
        "reasoning_tokens": tokens.reasoning_tokens,
    }
    return _without_empty(
        {
            "prompt_tokens": sum(known) if known else None,
            "completion_tokens": tokens.output_tokens,
            "cached_tokens": tokens.cache_read_tokens,
            "cost_usd": tokens.cost_usd,
            "extra": _without_empty(more),
        }
    )


def _totals(usage: Sequence[Usage]) -> dict[str, Any]:
    sums: dict[str, Any] = {}
    for name in Tokens.__struct_fields__:
        known = [count for row in usage if (count := getattr(row, name)) is not None]
        sums[name] = sum(known) if known else None
    metrics = _metrics(Tokens(**sums))
    return {name if name == "extra" else f"total_{name}": metrics[name] for name in metrics}


def _timestamp(at: float | None) -> str | None:
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
