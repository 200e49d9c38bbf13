"""Hermes' own columns as records, shared by its database and its JSONL export: sessions, messages,
and counters as usage. Columns differ between Hermes' versions, so a row is a mapping and every
column may be missing.
"""

import re
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from journeyman.logs.lines import repaired_json
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
    Tokens,
    ToolCall,
    Usage,
)

Row = Mapping[str, Any]

SOURCE = "hermes"
_PARTS_PREFIX = "\x00json:"
_ROLES: tuple[Role, ...] = get_args(Role)
_SUMMARY_TEXTS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]", "[PRIOR CONTEXT")

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

# "[memory]", left by reviews too; not "[SILENT]", with which a cron job says it has no news.
_BARE_TAG = re.compile(r"\[[a-z_]+\]")

# A compaction copies the last rows, with these equal and a new id.
_SAME_IN_COPIES = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "tool_name")

# Which mark in model_config makes which edge. A child inherits its parent's marks, so a mark
# counts only when it names the parent itself.
_LINEAGE_MARKS: tuple[tuple[str, LineageKind], ...] = (
    ("_branched_from", "branch"),
    ("_delegate_from", "subagent"),
    ("_reset_from", "reset"),
)

_TEXTS = ("title", "cwd", "git_branch", "model", "end_reason")
_DETAILS = (
    *("user_id", "chat_id", "chat_type", "profile_name", "git_repo_root", "billing_provider"),
    *("rewind_count", "archived"),
)


def session_of(row: Row, parent_end_reason: str | None, log: str) -> Session:
    """The facts of a session row; `parent_end_reason` decides between two meanings of a parent."""
    details = {name: row[name] for name in _DETAILS if row.get(name) not in (None, "", 0)}
    details["channel"] = row.get("source") or "unknown"
    texts: dict[str, Any] = {name: str(row.get(name) or "") for name in _TEXTS}
    return Session(
        id=SessionId(str(row["id"])),
        source=SOURCE,
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
    if marked := [means for mark, means in _LINEAGE_MARKS if config.get(mark) == parent]:
        kind = marked[0]
    elif source == "subagent":
        kind = "subagent"
    elif parent_end_reason == "compression" and source != "tool":
        kind = "compression"
    return Lineage(parent=SessionId(str(parent)), kind=kind)


def was_undone(row: Row) -> bool:
    """The user took this back: neither live nor archived by a compaction."""
    return row.get("active", 1) == 0 and not row.get("compacted")


def copy_mark(row: Row) -> int | None:
    """Equal for a message and its copies; None for a row that cannot be told from others."""
    if row.get("timestamp") is None:
        return None
    return hash(tuple(str(row.get(name)) for name in _SAME_IN_COPIES))


def is_summary(row: Row) -> bool:
    if row.get("_compressed_summary"):
        return True
    return row.get("role") != "tool" and _begins(row, _SUMMARY_TEXTS)


def starts_review(row: Row) -> bool:
    return row.get("role") in ("user", "system") and _begins(row, REVIEW_TEXTS)


def asks_for_tools(row: Row) -> bool:
    return row.get("tool_calls") not in (None, "", "[]", "null", [])


def message_of(
    row: Row, position: int, generation: int, calls: tuple[ToolCall, ...]
) -> Message | None:
    """A row as a message; None for bookkeeping. Raises ValueError for a role nobody knows."""
    if row.get("role") == "session_meta":
        return None
    role = row.get("role")
    if role not in _ROLES:
        raise ValueError(f"unknown role {role!r}")
    text = content_text(row.get("content"))
    if role == "assistant" and _BARE_TAG.fullmatch(text) and not asks_for_tools(row):
        return None
    kind: MessageKind = "summary" if is_summary(row) else "plain"
    if kind == "plain" and (row.get("display_kind") == "hidden" or _begins(row, _HARNESS_TEXTS)):
        kind = "harness"
    effect = row.get("effect_disposition")
    return Message(
        key=f"row{row['id']}" if row.get("id") is not None else f"@{position}",
        position=position,
        role=role,
        text=text,
        kind=kind,
        reasoning=content_text(row.get("reasoning") or row.get("reasoning_content")),
        tool_calls=calls,
        tool_call_id=_canonical(row.get("tool_call_id")),
        tool_name=str(row.get("tool_name") or ""),
        recorded=Recorded(details={"effect_disposition": str(effect)}) if effect else None,
        at=seconds(row.get("timestamp")),
        finish_reason=str(row.get("finish_reason") or ""),
        generation=generation,
    )


def content_text(content: Any) -> str:
    """A content column as text: plain, or parts behind Hermes' prefix."""
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if isinstance(content, str) and content.startswith(_PARTS_PREFIX):
        parts = content.removeprefix(_PARTS_PREFIX)
        try:
            content = _decoded(parts)
        except ValueError:
            return parts
    try:
        return as_text(content)
    except RecursionError:
        return "[nested too deeply to be read]"


def tool_calls_of(value: Any) -> tuple[ToolCall, ...]:
    """A tool_calls column, which may be JSON text inside JSON text. Raises ValueError."""
    for _ in range(3):
        if not isinstance(value, str | bytes):
            break
        if not value:
            return ()
        try:
            value = _decoded(value)
        except ValueError as error:
            raise ValueError(f"tool_calls is not valid JSON: {error}") from error
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError("tool_calls is not a list")  # noqa: TRY004 - a fact about the data
    return tuple(_tool_call(call) for one in value if (call := _object(one)))


def _tool_call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name = str(function.get("name") or "")
    arguments = as_json(function.get("arguments") or {})
    if name == "tool_call":
        # With tool search on, the model calls this and names the real tool inside. Several tools
        # in one call have one result between them, and stay as they are.
        inner = _object(arguments)
        several = inner.get("calls")
        if isinstance(several, list) and len(several) == 1:
            inner = _object(several[0])
        if isinstance(inner.get("name"), str):
            name, arguments = inner["name"], as_json(inner.get("arguments") or {})
    call_id = _canonical(call.get("id") or call.get("call_id"))
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _canonical(call_id: Any) -> str:
    return str(call_id or "").split("|", 1)[0]


def _begins(row: Row, texts: tuple[str, ...]) -> bool:
    content = row.get("content")
    return isinstance(content, str) and content.startswith(texts)


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str | bytes):
        try:
            value = _decoded(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _decoded(text: str | bytes) -> Any:
    """JSON in a column. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return msgspec.json.decode(repaired_json(text))
    except RecursionError as error:
        raise ValueError("nested too deeply to be read") from error


_TOKENS = tuple(name for name in Tokens.__struct_fields__ if name != "cost_usd")
COUNTERS = ("api_call_count", *_TOKENS, "estimated_cost_usd", "actual_cost_usd")
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
    return sum(getattr(usage, name) or 0 for name in _TOKENS if name != "reasoning_tokens")


def _usage(row: Row) -> Usage | None:
    """One row of counters; None when all are zero, which in Hermes means not known."""
    counts = {name: whole_number(row.get(name)) for name in _TOKENS}
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
