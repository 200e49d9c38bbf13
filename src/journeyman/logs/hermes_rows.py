"""Hermes' own columns as records: shared by its database and its JSONL export.

Columns differ between Hermes' versions, so a row is a mapping and every column may be missing.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from journeyman.logs.values import as_json, as_text, seconds, whole_number
from journeyman.records import (
    Lineage,
    LineageKind,
    Message,
    MessageKind,
    Recorded,
    Role,
    Session,
    SessionId,
    ToolCall,
    Usage,
)

Row = Mapping[str, Any]

SOURCE = "hermes"
_PARTS_PREFIX = "\x00json:"
_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_SUMMARY_TEXTS = (
    "[CONTEXT COMPACTION",
    "[CONTEXT SUMMARY]",
    "[PRIOR CONTEXT",
)

_HARNESS_TEXTS = (
    "[IMPORTANT: You are running as a scheduled cron job",
    "[SYSTEM: You are running as a scheduled cron job",
    "[IMPORTANT: Background process",
    "[SYSTEM: Background process",
    "Continue from the compressed conversation context above.",
)

REVIEW_TEXTS = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)
"""Background reviews that older Hermes versions left in the conversation."""

_BARE_TAG = re.compile(r"\[\w+\]")

# Which mark in model_config makes which edge. A child inherits its parent's marks, so a mark
# counts only when it names the parent itself.
_LINEAGE_MARKS: tuple[tuple[str, LineageKind], ...] = (
    ("_branched_from", "branch"),
    ("_delegate_from", "delegate"),
    ("_reset_from", "reset"),
)

_DETAILS = (
    "user_id",
    "chat_id",
    "chat_type",
    "profile_name",
    "git_repo_root",
    "billing_provider",
    "rewind_count",
    "archived",
)


def session_of(row: Row, parent_end_reason: str | None, log: str) -> Session:
    """The facts of a session row; `parent_end_reason` decides between two meanings of a parent."""
    config = _object(row.get("model_config"))
    details = {name: row[name] for name in _DETAILS if row.get(name) not in (None, "", 0)}
    details["channel"] = row.get("source") or "unknown"
    return Session(
        id=SessionId(str(row["id"])),
        source=SOURCE,
        title=str(row.get("title") or ""),
        cwd=str(row.get("cwd") or ""),
        git_branch=str(row.get("git_branch") or ""),
        agent="Hermes",
        model=str(row.get("model") or ""),
        started_at=seconds(row.get("started_at")),
        ended_at=seconds(row.get("ended_at")),
        end_reason=str(row.get("end_reason") or ""),
        lineage=_lineage(row, config, parent_end_reason),
        log=log,
        details=details,
    )


def _lineage(row: Row, config: Mapping[str, Any], parent_end_reason: str | None) -> Lineage | None:
    parent = row.get("parent_session_id")
    if not parent:
        return None
    kind: LineageKind = "unknown"
    for mark, means in _LINEAGE_MARKS:
        if config.get(mark) == parent:
            kind = means
            break
    else:
        if row.get("source") == "subagent":
            kind = "delegate"
        elif parent_end_reason == "compression" and row.get("source") != "tool":
            kind = "compression"
    return Lineage(parent=SessionId(str(parent)), kind=kind)


def was_undone(row: Row) -> bool:
    """The user took this back: neither live nor archived by a compaction."""
    return row.get("active", 1) == 0 and not row.get("compacted")


def is_summary(row: Row) -> bool:
    return bool(row.get("_compressed_summary")) or _begins(row, _SUMMARY_TEXTS)


def starts_review(row: Row) -> bool:
    return row.get("role") in ("user", "system") and _begins(row, REVIEW_TEXTS)


def message_of(row: Row, position: int, generation: int) -> Message | None:
    """A row as a message; None for bookkeeping. Raises ValueError for a role nobody knows."""
    role_name = str(row.get("role"))
    if role_name == "session_meta":
        return None
    if role_name not in _ROLES:
        raise ValueError(f"unknown role {role_name!r}")
    role = _ROLES[role_name]
    text = content_text(row.get("content"))
    if role == "assistant" and _BARE_TAG.fullmatch(text) and not row.get("tool_calls"):
        return None
    return Message(
        key=f"row{row['id']}" if row.get("id") is not None else f"@{position}",
        position=position,
        role=role,
        text=text,
        kind=_kind(row),
        reasoning=content_text(row.get("reasoning") or row.get("reasoning_content")),
        tool_calls=tool_calls_of(row.get("tool_calls")),
        tool_call_id=_canonical(row.get("tool_call_id")),
        tool_name=str(row.get("tool_name") or ""),
        recorded=_recorded(row),
        at=seconds(row.get("timestamp")),
        finish_reason=str(row.get("finish_reason") or ""),
        generation=generation,
    )


def content_text(content: Any) -> str:
    """A content column as text: plain, or parts behind Hermes' prefix."""
    if isinstance(content, str) and content.startswith(_PARTS_PREFIX):
        try:
            content = msgspec.json.decode(content[len(_PARTS_PREFIX) :])
        except msgspec.DecodeError:
            return str(content)[len(_PARTS_PREFIX) :]
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    return as_text(content)


def tool_calls_of(value: Any) -> tuple[ToolCall, ...]:
    """A tool_calls column, which may be JSON text inside JSON text. Raises ValueError."""
    for _ in range(3):
        if not isinstance(value, str | bytes):
            break
        if not value:
            return ()
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"tool_calls is not valid JSON: {error}") from error
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError("tool_calls is not a list")  # noqa: TRY004 - a fact about the data
    return tuple(_tool_call(call) for call in value if isinstance(call, dict))


def _tool_call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = str(function.get("name") or "")
    arguments = as_json(function.get("arguments") or {})
    if name == "tool_call":
        name, arguments = _peeled(name, arguments)
    return ToolCall(
        id=_canonical(call.get("id") or call.get("call_id")), name=name, arguments=arguments
    )


def _peeled(name: str, arguments: str) -> tuple[str, str]:
    """With tool search on, the model calls `tool_call` and names the real tool inside."""
    inner = _object(arguments)
    if isinstance(inner.get("name"), str):
        return inner["name"], as_json(inner.get("arguments") or {})
    return name, arguments


def _canonical(call_id: Any) -> str:
    return str(call_id or "").split("|", 1)[0]


def _kind(row: Row) -> MessageKind:
    if is_summary(row):
        return "summary"
    if row.get("display_kind") == "hidden" or _begins(row, _HARNESS_TEXTS):
        return "harness"
    return "plain"


def _begins(row: Row, texts: tuple[str, ...]) -> bool:
    content = row.get("content")
    return isinstance(content, str) and content.startswith(texts)


def _recorded(row: Row) -> Recorded | None:
    effect = row.get("effect_disposition")
    return Recorded(details={"effect_disposition": str(effect)}) if effect else None


def usage_of(session: Row, by_model: list[Row]) -> list[Usage]:
    """A session's tokens. The session's own counters leave side work out, and the rows by model
    may be younger than the session: whichever knows more speaks for the conversation.
    """
    side = [usage for row in by_model if row.get("task") if (usage := _usage(row))]
    main = [usage for row in by_model if not row.get("task") if (usage := _usage(row))]
    whole = _usage({**session, "task": ""})
    if whole is not None and _prompt_and_answer(whole) > sum(map(_prompt_and_answer, main)):
        main = [whole]
    return main + side


def _prompt_and_answer(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0) + (usage.cache_read_tokens or 0)


def _usage(row: Row) -> Usage | None:
    """One row of counters; None when all are zero, which in Hermes means not known."""
    counts = {
        name: whole_number(row.get(name))
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
        )
    }
    actual, estimated = row.get("actual_cost_usd"), row.get("estimated_cost_usd")
    cost = actual or estimated or None
    if not any(counts.values()) and cost is None:
        return None
    task, model = str(row.get("task") or ""), str(row.get("model") or "")
    provider = str(row.get("billing_provider") or "")
    return Usage(
        key="/".join(("usage", task, model, provider, str(row.get("billing_base_url") or ""))),
        model=model,
        task=task,
        at=seconds(row.get("last_seen") or row.get("ended_at") or row.get("started_at")),
        api_calls=whole_number(row.get("api_call_count")) or 0,
        cost_usd=cost,
        cost_origin="" if cost is None else "actual" if actual else "estimated",
        **counts,
    )


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str | bytes):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return {}
    return value if isinstance(value, dict) else {}
