"""Parses messages in the OpenAI and Anthropic API formats into records: roles, content parts and
blocks, tool calls, results and usage. Also turns a conversation that is in
memory into a session, and reads logs in these formats, which any tool can write: a list of
messages, an object that contains one, a list of either, or the same as JSON lines.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import msgspec

from journeyman.logs.fields import (
    as_text,
    only_text,
    path_id,
    seconds,
    session_id,
    tool_call,
    uncached,
    whole_number,
)
from journeyman.logs.fragments import Part, in_fragments, read_sessions
from journeyman.logs.line_reader import BadLine, Line, read_each_line
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    Fragment,
    LogEvent,
    LogState,
    Mark,
    Message,
    ResultFlags,
    Role,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)
from journeyman.records.errors import WrongInput
from journeyman.records.message import message_digest, replace_lone_surrogates

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_REASONING_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_NON_TEXT_BLOCKS = _REASONING_BLOCKS | {"tool_use", "tool_result"}


class BadMessage(ValueError):
    """A message cannot be used. The exception's text is the reason shown in the import report."""


def read_message(raw: Any, key: str, position: int, *, model: str = "") -> list[Message]:
    """Return a message as records, numbered from `position`: more than one if it holds several
    results. Calls without an id get a generated one. Raises BadMessage.
    """
    try:
        return list(_records(raw, key, position, model))
    except RecursionError as error:
        raise BadMessage("the message is nested too deeply") from error


def _records(raw: Any, key: str, position: int, model: str) -> Iterator[Message]:
    if not isinstance(raw, dict):
        _raise_wrong_type("a message", raw)
    role = raw.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadMessage(f"a message has the unknown role {str(role)[:40]!r}")
    content = raw.get("content")
    if content is not None and not isinstance(content, str | list | dict):
        _raise_wrong_type("content", content)
    at = message_time(raw)
    if ROLES[role] == "tool":
        yield _result(raw, "tool_call_id", key, position, at)
        return
    blocks = content if isinstance(content, list) else []
    results = [block for block in blocks if _type(block) == "tool_result"]
    for number, block in enumerate(results):
        yield _result(block, "tool_use_id", f"{key}.{number}", position + number, at)
    calls = tuple(_calls(raw, blocks, key))
    text_blocks = [block for block in blocks if _type(block) not in _NON_TEXT_BLOCKS]
    text = as_text(text_blocks if isinstance(content, list) else content)
    thinking = [block for block in blocks if _type(block) in ("thinking", "reasoning")]
    reasoning = "\n".join(as_text(block) for block in thinking)
    reasoning = reasoning or _text(raw, "reasoning_content") or _text(raw, "reasoning")
    if results and not (calls or text or reasoning):
        return
    yield Message(
        key=key,
        position=position + len(results),
        role=ROLES[role],
        text=text or _text(raw, "refusal"),
        reasoning=reasoning,
        tool_calls=calls,
        at=at,
        model=(_text(raw, "model") or model) if ROLES[role] == "assistant" else "",
        finish_reason=_text(raw, "finish_reason") or _text(raw, "stop_reason"),
    )


def _result(raw: dict[str, Any], field: str, key: str, position: int, at: float | None) -> Message:
    call_id = _text(raw, field)
    if not call_id:
        raise BadMessage(f"a tool result has no {field}")
    flags = (raw.get(flag) for flag in ("is_error", "isError", "error"))
    recorded = ResultFlags(
        is_error=next((flag for flag in flags if isinstance(flag, bool)), None),
        exit_code=whole_number(raw.get("exit_code")),
    )
    return Message(
        key=key,
        position=position,
        role="tool",
        text=as_text(raw.get("content")),
        tool_call_id=call_id,
        tool_name=_text(raw, "name"),
        recorded=None if recorded == ResultFlags() else recorded,
        at=at,
    )


def _calls(raw: dict[str, Any], blocks: list[Any], key: str) -> Iterator[ToolCall]:
    tool_calls = raw.get("tool_calls") or []
    if not isinstance(tool_calls, list):
        _raise_wrong_type("tool_calls", tool_calls)
    uses = [block for block in blocks if _type(block) == "tool_use"]
    for number, call in enumerate([*tool_calls, *uses]):
        if not isinstance(call, dict):
            _raise_wrong_type("a tool call", call)
        function = call.get("function")
        parts = function if isinstance(function, dict) else call
        id_ = _text(call, "id") or f"call-{key}-{number}"
        yield tool_call(id_, parts.get("name"), parts.get("arguments", parts.get("input")))


def chat_parts(
    values: Iterable[Any], *, model: str = "", with_usage: bool = True
) -> Iterator[Message | Usage | Skip]:
    """Yield the messages of one conversation and the usage recorded with them. A message that
    cannot be used becomes a skip that names it.
    """
    position = 0
    for index, raw in enumerate(values):
        try:
            messages = read_message(raw, str(index), position, model=model)
        except BadMessage as error:
            yield Skip(line=0, reason=f"message {index + 1}: {error}")
            continue
        position += len(messages)
        yield from messages
        key, answered_by = f"usage-{index}", messages[-1].model
        usage = parse_usage(raw.get("usage"), key, model=answered_by, at=message_time(raw))
        if usage and with_usage:
            yield usage


def is_message(value: Any) -> bool:
    """Return whether a decoded value looks like a chat message."""
    return (
        isinstance(value, dict)
        and value.get("role") in tuple(ROLES)
        and not value.keys().isdisjoint(("content", "tool_calls"))
    )


def message_time(raw: dict[str, Any]) -> float | None:
    """Return the time of a message, from whichever field holds it."""
    times = (seconds(raw.get(field)) for field in ("timestamp", "created_at", "created"))
    return next((at for at in times if at is not None), None)


def parse_usage(
    raw: Any,
    key: str,
    *,
    model: str = "",
    at: float | None = None,
    cost: Any = None,
) -> Usage | None:
    """Return recorded usage in the format of either API; None if nothing was recorded.

    OpenAI includes cached tokens in the prompt count; Anthropic counts them separately.
    """
    raw = raw if isinstance(raw, dict) else {}
    cost = cost if cost is not None else raw.get("cost")
    cost_usd = float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e9 else None
    prompt = whole_number(raw.get("prompt_tokens", raw.get("input_tokens")))
    answer = whole_number(raw.get("completion_tokens", raw.get("output_tokens")))
    if prompt is None and answer is None and not cost_usd:
        return None
    in_prompt = _detail(raw, "cached_tokens", "prompt_tokens_details", "input_tokens_details")
    separate = whole_number(raw.get("cache_read_input_tokens"))
    cache_read = in_prompt if in_prompt is not None else separate
    cache_write = whole_number(raw.get("cache_creation_input_tokens"))
    if "prompt_tokens" in raw or in_prompt is not None:
        prompt = uncached(prompt, cache_read, cache_write)
    return Usage(
        key=key,
        model=model,
        at=at,
        input_tokens=prompt,
        output_tokens=answer,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=_detail(
            raw, "reasoning_tokens", "completion_tokens_details", "output_tokens_details"
        ),
        cost_usd=cost_usd,
        cost_origin="" if cost_usd is None else "recorded",
    )


def _detail(raw: dict[str, Any], field: str, *groups: str) -> int | None:
    details = [raw[group] for group in groups if isinstance(raw.get(group), dict)]
    return whole_number(details[0].get(field)) if details else None


def _type(block: Any) -> str:
    return str(block.get("type", "")) if isinstance(block, dict) else ""


def _text(raw: dict[str, Any], field: str) -> str:
    return only_text(raw.get(field))


def _raise_wrong_type(what: str, value: Any) -> NoReturn:
    raise BadMessage(f"{what} has the unexpected type {type(value).__name__}")


def conversation_fragment(
    messages: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    *,
    now: float,
    usage: Sequence[Usage] = (),
) -> Fragment:
    """Return a conversation in memory as one fragment, with these facts about its session. Raises
    WrongInput, naming the fact or the message that cannot be used.
    """
    if not isinstance(messages, list | tuple) or not messages:
        raise WrongInput("There are no messages: pass a non-empty list of messages.")
    outcome, own_id = facts["outcome"], facts["id"]
    if outcome is not None and not (isinstance(outcome, int | float) and 0 <= outcome <= 1):
        raise WrongInput(f"The outcome {outcome!r} is not between 0 (failed) and 1 (succeeded).")
    derived = {"id": own_id or ""}
    if outcome is not None:
        derived["outcome_origin"] = "recorded"
    try:
        session = msgspec.convert({**facts, **derived}, Session)
    except msgspec.ValidationError as error:
        raise WrongInput(f"The session cannot be recorded: {error}.") from error
    if own_id == "" or not session.source:
        raise WrongInput("The session cannot be recorded: its id or its source is empty.")
    records: list[Message] = []
    for index, raw in enumerate(messages):
        try:
            parsed = read_message(dict(raw), f"m{index}", len(records), model=session.model)
        except (BadMessage, TypeError, ValueError) as error:  # dict() fails on a non-mapping
            raise WrongInput(f"Message {index} cannot be recorded: {error}.") from error
        records += [replace_lone_surrogates(message) for message in parsed]
    # The default id is a content digest: recording a conversation twice stores it once.
    content = hashlib.blake2b(b"".join(map(message_digest, records)), digest_size=12)
    session = msgspec.structs.replace(
        session,
        id=session.id or SessionId(content.hexdigest()),
        started_at=None if any(message.at for message in records) else now,
    )
    return Fragment(session=session, messages=tuple(records), usage=tuple(usage), replaces=True)


def continuation(fragment: Fragment, stored: int) -> Fragment:
    """Return a fragment as one that continues a session of which so many messages are stored."""
    messages = (
        msgspec.structs.replace(
            message, key=f"{stored}.{message.key}", position=stored + message.position
        )
        for message in fragment.messages
    )
    return msgspec.structs.replace(fragment, messages=tuple(messages), replaces=False)


_FIRST_LINES = 5
"""Lines examined to recognise a log: the first may be a header, or an empty conversation."""

_ID_FIELDS = ("id", "session_id", "conversation_id")
_OUTCOME_FIELDS = ("reward", "score", "success")
_START_FIELDS = ("started_at", "created_at", "created", "timestamp")
_SESSION_FIELDS = ("messages", "usage", "model", "title", *_ID_FIELDS, *_START_FIELDS)


class OpenAIChatReader:
    """Reads conversations stored as lists of messages."""

    name = "openai"
    about = "conversations in the OpenAI or Anthropic message format (JSON or JSONL)"

    def recognises(self, log: LogFile) -> bool:
        """Return whether the log holds messages with a role and content. Logs of other formats do
        too, so their readers must be tried first.
        """
        if not log.is_text or not log.head.lstrip().startswith((b"{", b"[")):
            return False
        if log.is_jsonl:
            return any(map(_is_conversation, log.first_lines[:_FIRST_LINES]))
        roles = {"messages.item.role", "item.role", "item.item.role", "item.messages"}
        return not roles.isdisjoint(log.keys)

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """Read JSON lines one by one, anything else as one document."""
        read = partial(self._conversation, log)
        if log.is_jsonl and any(map(is_message, log.first_lines[:_FIRST_LINES])):
            yield from in_fragments(self._session(log, {}, path_id(log)), _message_lines(log))
            yield Mark(state=log.state(self.name))
        elif log.is_jsonl:
            yield from read_sessions(log, self.name, read)
        elif isinstance(log.document, list) and "item.role" not in log.keys:
            yield from read_sessions(log, self.name, read, document=log.document)
        else:
            facts = log.document if isinstance(log.document, dict) else {"messages": log.document}
            session = self._session(log, facts, session_id(log, _recorded_id(facts)))
            yield from in_fragments(session, _parts(facts, session.model))
            yield Mark(state=log.state(self.name))

    def _conversation(
        self, log: LogFile, value: Any, number: int
    ) -> tuple[Session, Iterable[Part]]:
        facts = value if isinstance(value, dict) else {"messages": value}
        messages = facts.get("messages")
        if not isinstance(messages, list) or not messages:
            raise BadLine(f"conversation {number} has no messages")
        session = self._session(log, facts, session_id(log, _recorded_id(facts), str(number)))
        return session, _parts(facts, session.model)

    def _session(self, log: LogFile, facts: dict[str, Any], id_: str) -> Session:
        scores = {field: facts[field] for field in _OUTCOME_FIELDS if _is_score(facts.get(field))}
        origin, outcome = next(iter(scores.items()), ("", None))
        session_fields = (*_SESSION_FIELDS, origin)
        details = {key: value for key, value in facts.items() if key not in session_fields}
        if not isinstance(details.get("metadata"), dict):
            details.pop("metadata", None)
        starts = (seconds(facts.get(field)) for field in _START_FIELDS)
        return Session(
            id=SessionId(id_),
            source=self.name,
            title=only_text(facts.get("title")),
            model=only_text(facts.get("model")),
            started_at=next((start for start in starts if start is not None), None),
            outcome=None if outcome is None else float(outcome),
            outcome_origin=origin,
            log=log.name,
            details=details,
        )


def _message_lines(log: LogFile) -> Iterator[Part]:
    """Yield the messages of a log that has one message per line."""

    def read(line: Line, value: Any) -> list[Message]:
        # A line has more bytes than messages, so its positions never reach the next line's.
        try:
            return read_message(value, f"@{line.offset}", line.offset)
        except BadMessage as error:
            raise BadLine(str(error)) from error

    return read_each_line(log, read)


def _parts(facts: dict[str, Any], model: str) -> Iterator[Part]:
    total = parse_usage(facts.get("usage"), "session", model=model, cost=facts.get("cost_usd"))
    if total:
        yield total
    messages = facts.get("messages")
    values = messages if isinstance(messages, list) else []
    yield from chat_parts(values, model=model, with_usage=not total)


def _recorded_id(facts: dict[str, Any]) -> str:
    for value in map(facts.get, _ID_FIELDS):
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return ""


def _is_score(value: Any) -> bool:
    return isinstance(value, bool | int | float) and 0 <= value <= 1


def _is_conversation(value: Any) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else value
    return is_message(value) or (isinstance(messages, list) and any(map(is_message, messages[:3])))
