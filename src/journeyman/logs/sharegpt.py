"""Reader for trajectories in the ShareGPT format that Hermes writes for training: `conversations`
of `from` and `value`, with reasoning, calls and results as tagged text inside the values.
`completed` states how a run ended, not whether it was right.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from journeyman.logs.chat import BadMessage, ChatParser, parse_each
from journeyman.logs.fields import as_json, json_value, only_object, only_text, seconds, session_id
from journeyman.logs.fragments import Part, read_session_lines, read_session_list
from journeyman.logs.line_reader import BadLine
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    LogEvent,
    LogState,
    Message,
    Role,
    Session,
    SessionId,
    ToolCall,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "tool": "tool",
}
_END_REASONS = {True: "completed", False: "incomplete"}
_MAX_TAGS = 1_000
"""Calls or results in one turn; further ones stay text. The standard library's decoder takes time
for all of the text before each error."""

_decode_first = json.JSONDecoder().raw_decode
_not_blank = re.compile(r"\S").search
_DETAILS = (
    *("prompt_index", "partial", "api_calls", "toolsets_used", "tool_stats", "tool_error_counts"),
    "metadata",
)


class ShareGPTReader:
    """Reads ShareGPT conversations, one per line or in one list."""

    name = "sharegpt"
    about = "ShareGPT trajectories with tool calls, as Hermes saves them (JSONL, also .gz)"

    def recognises(self, log: LogFile) -> bool:
        """Return whether the turns have `from` and `value` instead of `role` and `content`."""
        keys = log.keys
        if {"conversations.item.from", "conversations.item.value"} <= keys:
            return True
        return "item.conversations" in keys or any(
            _is_conversation(value) for value in log.first_lines[:1]
        )

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Read JSON lines from where the last read ended, a document as a whole."""
        read = partial(self._conversation, log)
        if log.is_jsonl:
            yield from read_session_lines(log, since, self.name, read)
        else:
            prefix = "" if log.is_object else "item"
            yield from read_session_list(log, self.name, prefix, read)

    def _conversation(
        self, log: LogFile, value: Any, number: int
    ) -> tuple[Session, Iterable[Part]]:
        if not _is_conversation(value):
            raise BadLine(f"item {number} has no conversation")
        session = _session(self.name, log, value, number)
        chat = ChatParser()
        return session, parse_each(
            value["conversations"],
            lambda turn, index, position: _turn(chat, turn, index, position, session.model),
            what="turn",
        )


def _is_conversation(value: Any) -> bool:
    turns = value.get("conversations") if isinstance(value, dict) else None
    return isinstance(turns, list) and any(
        isinstance(turn, dict) and {"from", "value"} <= turn.keys() for turn in turns[:3]
    )


def _session(source: str, log: LogFile, value: dict[str, Any], number: int) -> Session:
    facts = {**only_object(value.get("metadata")), **value}
    completed = value.get("completed")
    return Session(
        id=SessionId(session_id(log, only_text(value.get("id")), str(number or ""))),
        source=source,
        model=only_text(facts.get("model")),
        # Hermes sets the timestamp when it saves a trajectory, after the last turn.
        ended_at=seconds(facts.get("timestamp")),
        end_reason=_END_REASONS[completed] if isinstance(completed, bool) else "",
        log=log.name,
        details={key: value[key] for key in _DETAILS if value.get(key) is not None},
    )


def _turn(chat: ChatParser, turn: Any, index: int, position: int, model: str) -> list[Message]:
    speaker = turn.get("from") if isinstance(turn, dict) else None
    if not isinstance(speaker, str) or speaker not in _ROLES:
        raise BadMessage(f"the speaker {str(speaker)[:40]!r} is unknown")
    value = turn.get("value")
    if not isinstance(value, str):
        raise BadMessage(f"the value is {type(value).__name__}, not text")
    role = _ROLES[speaker]
    if role == "tool":
        return list(_results(chat, value, index, position))
    if role == "assistant":
        return [_answer(chat, value, index, position, model)]
    return [Message(key=str(index), position=position, role=role, text=value)]


def _answer(chat: ChatParser, value: str, index: int, position: int, model: str) -> Message:
    reasoning, rest = _split_reasoning(value)
    tagged, text = _split_tags(rest, "tool_call")
    # Results directly follow their answer: calls that are still open never got one.
    chat.open_calls.clear()
    calls = tuple(
        chat.open_call(_tool_call(raw, call, f"call-{index}-{number}"))
        for number, (raw, call) in enumerate(tagged)
    )
    return Message(
        key=str(index),
        position=position,
        role="assistant",
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        model=model,
    )


def _tool_call(raw: str, value: Any, default_id: str) -> ToolCall:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return ToolCall(id=default_id, name="", arguments=raw)
    recorded_id = value.get("id") or value.get("tool_call_id")
    arguments = value.get("arguments")
    return ToolCall(
        id=recorded_id if isinstance(recorded_id, str) else default_id,
        name=value["name"],
        arguments="{}" if arguments is None else as_json(arguments),
    )


def _results(chat: ChatParser, value: str, index: int, position: int) -> Iterator[Message]:
    tagged, rest = _split_tags(value, "tool_response")
    for number, (raw, response) in enumerate(tagged or [(rest, None)]):
        fields = response if isinstance(response, dict) and "content" in response else {}
        name = only_text(fields.get("name"))
        content = fields.get("content", raw)
        recorded_id = only_text(fields.get("tool_call_id"))
        # A result may have an id that none of the calls has: then the order decides.
        is_open = any(recorded_id == call_id for call_id, _ in chat.open_calls)
        yield Message(
            key=f"{index}.{number}" if len(tagged) > 1 else str(index),
            position=position + number,
            role="tool",
            text="" if content is None else as_json(content),
            tool_call_id=chat.close_call(recorded_id if is_open else "", name) or recorded_id,
            tool_name=name,
        )


def _split_reasoning(value: str) -> tuple[str, str]:
    """Return the reasoning at the start of an answer and the rest."""
    start, end = "<think>", "</think>"
    text = value.lstrip()
    inside, closed, rest = text.removeprefix(start).partition(end)
    return (inside.strip(), rest.lstrip()) if text.startswith(start) and closed else ("", value)


def _split_tags(text: str, tag: str) -> tuple[list[tuple[str, Any]], str]:
    """Return what is between the tags, as text and as decoded JSON (None if it is not JSON), and
    the text around them. A closing tag inside a JSON string does not count.
    """
    start, end = f"<{tag}>", f"</{tag}>"
    contents: list[tuple[str, Any]] = []
    around = []
    at = 0
    while len(contents) < _MAX_TAGS and (opened := text.find(start, at)) >= 0:
        around.append(text[at:opened])
        begin = opened + len(start)
        try:
            after_json = _decode_first(text, _after_blanks(text, begin))[1]
        except (ValueError, RecursionError):
            after_json = begin
        closed = _find(text, end, after_json)
        if text[after_json:closed].strip():  # there is more than JSON
            closed = _find(text, end, begin)
            after_json = begin
        raw = text[begin:after_json].strip() or text[begin:closed].strip()
        contents.append((raw, json_value(raw)))
        at = closed + len(end)
    around.append(text[at:])
    return contents, "\n".join(part.strip() for part in around if part.strip())


def _after_blanks(text: str, at: int) -> int:
    found = _not_blank(text, at)
    return len(text) if found is None else found.start()


def _find(text: str, part: str, at: int) -> int:
    found = text.find(part, at)
    return len(text) if found < 0 else found
