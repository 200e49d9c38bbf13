"""Converts the rows of Hermes' database to sessions, messages and usage.
Columns differ between Hermes versions, so a row is a mapping and every column may be missing.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args

from journeyman.logs.fields import (
    as_json,
    as_text,
    json_value,
    only_object,
    seconds,
    whole_number,
)
from journeyman.records import (
    Lineage,
    LineageKind,
    Message,
    MessageKind,
    Role,
    Session,
    SessionId,
    Tokens,
    ToolCall,
    Usage,
)
from journeyman.records.copies import MessageTrace
from journeyman.text.strict_json import decode_repaired

Row = Mapping[str, Any]

SOURCE = "hermes"
_NO_PLATFORM = "unknown"
"""What Hermes writes until it knows where a session comes from."""

_PARTS_PREFIX = "\x00json:"
_ROLES: tuple[Role, ...] = get_args(Role)
_SUMMARY_PREFIXES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]", "[PRIOR CONTEXT")

# A compaction may merge its summary into the first message that it keeps: after that message's own
# text, or in older versions before it.
_MERGED_AFTER = re.compile(
    r"\[PRIOR CONTEXT\b[^\n]*\n(?P<own>.*?)\n\n\[END OF PRIOR CONTEXT\b[^\n]*\n\s*(?P<summary>.*)",
    re.S,
)
_MERGED_BEFORE = re.compile(
    r"(?P<summary>\[CONTEXT (?:COMPACTION|SUMMARY)\b.*?\n--- END OF CONTEXT SUMMARY\b[^\n]*)"
    r"(?P<own>.*)",
    re.S,
)

_HARNESS_PREFIXES = (
    "[IMPORTANT: You are running as a scheduled cron job",
    "[SYSTEM: You are running as a scheduled cron job",
    "[IMPORTANT: Background process",
    "[SYSTEM: Background process",
    "Continue from the compressed conversation context above.",
)

# The key in model_config that states each kind of lineage. A child inherits its parent's keys, so
# a key counts only if its value is the parent's id.
_LINEAGE_KEYS: tuple[tuple[str, LineageKind], ...] = (
    ("_branched_from", "branch"),
    ("_delegate_from", "subagent"),
    ("_reset_from", "reset"),
)

_TEXT_COLUMNS = ("title", "cwd", "git_branch", "model", "end_reason")
_DETAIL_COLUMNS = (
    *("user_id", "chat_id", "chat_type", "profile_name", "git_repo_root", "billing_provider"),
    *("rewind_count", "archived"),
)


def parse_session(row: Row, parent_end_reason: str | None, log: str) -> Session:
    """Return the session in a row. `parent_end_reason` shows whether a parent was compressed."""
    details = {name: row[name] for name in _DETAIL_COLUMNS if row.get(name) not in (None, "", 0)}
    platform = str(row.get("source") or "")
    texts: dict[str, Any] = {name: str(row.get(name) or "") for name in _TEXT_COLUMNS}
    return Session(
        id=SessionId(str(row["id"])),
        source=SOURCE,
        platform="" if platform == _NO_PLATFORM else platform,
        agent="Hermes",
        started_at=seconds(row.get("started_at")),
        ended_at=seconds(row.get("ended_at")),
        lineage=_lineage(row, parent_end_reason),
        log=log,
        details=details,
        **texts,
    )


def _lineage(row: Row, parent_end_reason: str | None) -> Lineage | None:
    parent, source = row.get("parent_session_id"), row.get("source")
    if not parent or parent == row["id"]:
        return None
    config = _object(row.get("model_config"))
    kind: LineageKind = "unknown"
    if stated := [lineage for key, lineage in _LINEAGE_KEYS if config.get(key) == parent]:
        kind = stated[0]
    elif source == "subagent":
        kind = "subagent"
    elif parent_end_reason == "compression" and source != "tool":
        kind = "compression"
    return Lineage(parent=SessionId(str(parent)), kind=kind)


def is_undone(row: Row) -> bool:
    """Return whether the user undid this row: it is neither live nor archived by a compaction."""
    return row.get("active", 1) == 0 and not row.get("compacted")


def is_summary(row: Row) -> bool:
    if SUMMARY_OF in row:
        return True
    if row.get("_compressed_summary"):
        return not has_tool_calls(row)
    return row.get("role") != "tool" and _starts_with(row, _SUMMARY_PREFIXES)


SUMMARY_OF = "summary_of"
"""The key of a row that was split off another: it holds the summary that was merged into it."""


def split_summary(row: Row) -> tuple[Row, ...]:
    """Return a row with its content as text. A row that a summary was merged into becomes two."""
    text = content_text(row.get("content"))
    row = {**row, "content": text}
    if row.get("role") == "tool" or not is_summary({**row, "tool_calls": None}):
        return (row,)
    merged = _MERGED_AFTER.fullmatch(text) or _MERGED_BEFORE.fullmatch(text)
    own = merged["own"].strip() if merged else ""
    if not (own or has_tool_calls(row)):
        return (row,)
    summary: dict[str, Any] = {
        name: row[name] for name in ("id", "timestamp", "active", "compacted") if name in row
    }
    summary |= {"role": "user", "content": merged["summary"] if merged else text, SUMMARY_OF: True}
    return summary, {**row, "content": own, "_compressed_summary": None}


def trace(row: Row) -> MessageTrace:
    """Return what a row shares with its copies; its content is text."""
    calls: tuple[ToolCall, ...] = ()
    with suppress(ValueError):  # reported when the message is read
        calls = parse_tool_calls(row.get("tool_calls"))
    return MessageTrace(
        role=str(row.get("role")),
        text=hash(row["content"].strip()),
        calls=tuple(call.id for call in calls),
        answers=_canonical_id(row.get("tool_call_id")),
        is_summary=is_summary(row),
    )


def has_tool_calls(row: Row) -> bool:
    return row.get("tool_calls") not in (None, "", "[]", "null", [])


def parse_message(
    row: Row, number: int, generation: int, calls: tuple[ToolCall, ...]
) -> Message | None:
    """Return a row as a message, None for bookkeeping. Raises ValueError for an unknown role."""
    if row.get("role") == "session_meta":
        return None
    role = row.get("role")
    if role not in _ROLES:
        raise ValueError(f"unknown role {role!r}")
    text = content_text(row.get("content"))
    kind: MessageKind = "summary" if is_summary(row) else "plain"
    if kind == "plain" and (
        row.get("display_kind") == "hidden" or _starts_with(row, _HARNESS_PREFIXES)
    ):
        kind = "harness"
    name = f"row{row['id']}" if row.get("id") is not None else f"@{number}"
    is_merged = SUMMARY_OF in row
    return Message(
        key=f"{name}#summary" if is_merged else name,
        # A summary that was merged into a row stands before it.
        position=2 * number - is_merged,
        role=role,
        text=text,
        kind=kind,
        reasoning=content_text(row.get("reasoning") or row.get("reasoning_content")),
        tool_calls=calls,
        tool_call_id=_canonical_id(row.get("tool_call_id")),
        tool_name=str(row.get("tool_name") or ""),
        at=seconds(row.get("timestamp")),
        finish_reason=str(row.get("finish_reason") or ""),
        generation=generation,
    )


def content_text(content: Any) -> str:
    """Return a content column as text: plain text, or parts after Hermes' prefix."""
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if isinstance(content, str) and content.startswith(_PARTS_PREFIX):
        parts = content.removeprefix(_PARTS_PREFIX)
        try:
            content = decode_repaired(parts)
        except ValueError:
            return parts
    try:
        return as_text(content)
    except RecursionError:
        return "[nested too deeply to be read]"


def parse_tool_calls(value: Any) -> tuple[ToolCall, ...]:
    """Parse a tool_calls column, which may be JSON inside a JSON string. Raises ValueError."""
    for _ in range(3):
        if not isinstance(value, str | bytes):
            break
        if not value:
            return ()
        try:
            value = decode_repaired(value)
        except ValueError as error:
            raise ValueError(f"tool_calls is not valid JSON: {error}") from error
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError("tool_calls is not a list")  # noqa: TRY004 - a fact about the data
    return tuple(_tool_call(call) for item in value if (call := _object(item)))


def _tool_call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = str(function.get("name") or "")
    arguments = as_json(function.get("arguments") or {})
    if name == "tool_call":
        # With tool search on, the model calls this tool and names the real one in its arguments.
        # Several tools in one call share one result, so such a call stays unchanged.
        inner = _object(arguments)
        inner_calls = inner.get("calls")
        if isinstance(inner_calls, list) and len(inner_calls) == 1:
            inner = _object(inner_calls[0])
        if isinstance(inner.get("name"), str):
            name, arguments = inner["name"], as_json(inner.get("arguments") or {})
    call_id = _canonical_id(call.get("id") or call.get("call_id"))
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _canonical_id(call_id: Any) -> str:
    return str(call_id or "").split("|", 1)[0]


def _starts_with(row: Row, prefixes: tuple[str, ...]) -> bool:
    content = row.get("content")
    return isinstance(content, str) and content.startswith(prefixes)


def _object(value: Any) -> dict[str, Any]:
    return only_object(json_value(value) if isinstance(value, str | bytes) else value)


_TOKEN_COUNTERS = tuple(name for name in Tokens.__struct_fields__ if name != "cost_usd")
COUNTERS = ("api_call_count", *_TOKEN_COUNTERS, "estimated_cost_usd", "actual_cost_usd")
"""The counters in a usage row."""

_USAGE_COLUMNS = ("task", "model", "billing_provider", "billing_base_url", "billing_mode")


def usage_of_session(session: Row, by_model: list[Row]) -> list[Usage]:
    """Return a session's usage. The session's own counters exclude side tasks, and the rows by
    model may have started after the session: for the conversation, the larger count is used.
    """
    side = [usage for row in by_model if row.get("task") if (usage := _usage(row))]
    main = [usage for row in by_model if not row.get("task") if (usage := _usage(row))]
    total = _usage({**session, "task": ""})
    if total is not None and (not main or _tokens(total) > sum(map(_tokens, main))):
        main = [total]
    return main + side


def _tokens(usage: Usage) -> int:
    return sum(getattr(usage, name) or 0 for name in _TOKEN_COUNTERS if name != "reasoning_tokens")


def _usage(row: Row) -> Usage | None:
    """Return one row of counters; None if all are zero, which in Hermes means unknown."""
    counts = {name: whole_number(row.get(name)) for name in _TOKEN_COUNTERS}
    actual, estimated = (
        float(cost)
        if isinstance(cost, int | float) and not isinstance(cost, bool) and cost
        else None
        for cost in (row.get("actual_cost_usd"), row.get("estimated_cost_usd"))
    )
    cost = actual or estimated
    if not any(counts.values()):
        if cost is None:
            return None
        counts = dict.fromkeys(counts)
    names = {name: str(row.get(name) or "") for name in _USAGE_COLUMNS}
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
