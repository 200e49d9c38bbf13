"""Trajectories in the ShareGPT form that Hermes writes for training: `conversations` of `from` and
`value`, with thoughts, calls and results as tagged text inside the values. The tags are taken
apart here; which program wrote the file is not guessed, and `completed` says how a run ended,
not whether it was right.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from journeyman.logs import documents
from journeyman.logs.chat import BadMessage, ChatReading
from journeyman.logs.fragments import SessionNames, in_fragments, read_session_lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.values import as_json, only_object, only_text, seconds, session_id
from journeyman.records import (
    Fragment,
    LogEvent,
    LogState,
    Mark,
    Message,
    Role,
    Session,
    SessionId,
    Skip,
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
_THOUGHTS = re.compile(r"\A\s*<think>\s*(.*?)\s*</think>\s*", re.DOTALL)
_END_REASONS = {True: "completed", False: "incomplete"}
_ENDS_TRIED = 50
_DETAILS = (
    "prompt_index",
    "partial",
    "api_calls",
    "toolsets_used",
    "tool_stats",
    "tool_error_counts",
    "metadata",
)


class ShareGPTReader:
    """ShareGPT conversations, one to a line or in one list."""

    name = "sharegpt"
    about = "ShareGPT trajectories with tool calls, as Hermes saves them (JSONL, also .gz)"

    def recognises(self, log: LogFile) -> bool:
        """Turns have `from` and `value`, not `role` and `content`."""
        keys = log.keys
        if {"conversations.item.from", "conversations.item.value"} <= keys:
            return True
        return "item.conversations" in keys or any(
            _is_conversation(value) for value in log.first_lines[:1]
        )

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Line by line from where the last reading ended; a document as a whole."""

        def read(
            value: Any, number: int, names: SessionNames, offset: int
        ) -> Iterator[Fragment | Skip]:
            return self._conversation(log, value, number, names, line=number, offset=offset)

        if log.is_jsonl:
            yield from read_session_lines(log, since, self.name, read)
            return
        names = SessionNames()
        if log.head.lstrip().startswith(b"{"):
            whole = documents.fields(log, without=())
            yield from self._conversation(log, whole, 0, names)
        else:
            for number, value in enumerate(documents.items(log, "item"), 1):
                if isinstance(value, Skip):
                    yield value
                else:
                    yield from self._conversation(log, value, number, names)
        yield Mark(state=documents.read_whole(log, self.name))

    def _conversation(
        self,
        log: LogFile,
        value: Any,
        number: int,
        names: SessionNames,
        *,
        line: int = 0,
        offset: int = 0,
    ) -> Iterator[Fragment | Skip]:
        if not _is_conversation(value):
            yield Skip(line=line, reason=f"number {number} has no conversation")
            return
        wanted = session_id(log, only_text(value.get("id")), str(number or ""))
        given, notes = names.give(wanted, line)
        yield from notes
        session = _session(self.name, log, value, given)
        parts = _parts(value["conversations"], session.model, line)
        yield from in_fragments(session, parts, read_bytes=offset)


def _is_conversation(value: Any) -> bool:
    turns = value.get("conversations") if isinstance(value, dict) else None
    return isinstance(turns, list) and any(
        isinstance(turn, dict) and {"from", "value"} <= turn.keys() for turn in turns[:3]
    )


def _session(source: str, log: LogFile, value: dict[str, Any], given: SessionId) -> Session:
    facts = {**only_object(value.get("metadata")), **value}
    completed = value.get("completed")
    return Session(
        id=given,
        source=source,
        model=only_text(facts.get("model")),
        # The program stamps a trajectory when it saves it, after the last turn.
        ended_at=seconds(facts.get("timestamp")),
        end_reason=_END_REASONS[completed] if isinstance(completed, bool) else "",
        log=log.name,
        details={key: value[key] for key in _DETAILS if value.get(key) is not None},
    )


def _parts(turns: list[Any], model: str, line: int) -> Iterator[Message | Skip]:
    chat = ChatReading()
    position = 0
    for index, turn in enumerate(turns):
        try:
            messages = _turn(chat, turn, index, position, model)
        except BadMessage as error:
            yield Skip(line=line, reason=f"turn {index + 1}: {error}")
            continue
        position += len(messages)
        yield from messages


def _turn(chat: ChatReading, turn: Any, index: int, position: int, model: str) -> list[Message]:
    speaker = turn.get("from") if isinstance(turn, dict) else None
    if not isinstance(speaker, str) or speaker not in _ROLES:
        raise BadMessage(f"it comes from {str(speaker)[:40]!r}, which is nobody known")
    value = turn.get("value")
    if not isinstance(value, str):
        raise BadMessage(f"its value is {type(value).__name__}, not text")
    role = _ROLES[speaker]
    if role == "tool":
        return list(_results(chat, value, index, position))
    if role == "assistant":
        return [_answer(chat, value, index, position, model)]
    return [Message(key=str(index), position=position, role=role, text=value)]


def _answer(chat: ChatReading, value: str, index: int, position: int, model: str) -> Message:
    thoughts = _THOUGHTS.match(value)
    rest = value[thoughts.end() :] if thoughts else value
    tagged, text = _tagged(rest, "tool_call")
    # Results follow their answer at once: what is open now was never answered.
    chat.forget_open()
    calls = tuple(
        chat.asked(_call(raw, call, f"call-{index}-{number}"))
        for number, (raw, call) in enumerate(tagged)
    )
    return Message(
        key=str(index),
        position=position,
        role="assistant",
        text=text,
        reasoning=thoughts[1] if thoughts else "",
        tool_calls=calls,
        model=model,
    )


def _call(raw: str, value: Any, minted: str) -> ToolCall:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return ToolCall(id=minted, name="", arguments=raw)
    given = value.get("id") or value.get("tool_call_id")
    arguments = value.get("arguments")
    return ToolCall(
        id=given if isinstance(given, str) else minted,
        name=value["name"],
        arguments="{}" if arguments is None else as_json(arguments),
    )


def _results(chat: ChatReading, value: str, index: int, position: int) -> Iterator[Message]:
    tagged, rest = _tagged(value, "tool_response")
    for number, (raw, response) in enumerate(tagged or [(rest, None)]):
        fields = response if isinstance(response, dict) and "content" in response else {}
        name = only_text(fields.get("name"))
        content = fields.get("content", raw)
        yield Message(
            key=f"{index}.{number}" if len(tagged) > 1 else str(index),
            position=position + number,
            role="tool",
            text="" if content is None else as_json(content),
            tool_call_id=_answered(chat, fields.get("tool_call_id"), name),
            tool_name=name,
        )


def _answered(chat: ChatReading, given: Any, name: str) -> str:
    """Results carry ids that the calls before them do not have: then order decides."""
    if isinstance(given, str) and any(given == call_id for call_id, _ in chat.waiting):
        return chat.answered(given, name)
    return chat.answered("", name) or (given if isinstance(given, str) else "")


def _tagged(text: str, tag: str) -> tuple[list[tuple[str, Any]], str]:
    """What stands between the tags, as text and as JSON (None if it is none), and the text around
    them. A closing tag inside a JSON string is no end: the first end that makes JSON is taken.
    """
    start, end = f"<{tag}>", f"</{tag}>"
    found: list[tuple[str, Any]] = []
    around = []
    while start in text:
        before, _, text = text.partition(start)
        around.append(before)
        at = first = text.find(end)
        value = None
        for _ in range(_ENDS_TRIED):
            if at < 0 or (value := _json(text[:at])) is not None:
                break
            at = text.find(end, at + 1)
        at = first if value is None else at
        raw = text if at < 0 else text[:at]
        if at < 0:
            value = _json(raw)
        found.append((raw.strip(), value))
        text = "" if at < 0 else text[at + len(end) :]
    around.append(text)
    return found, "\n".join(part.strip() for part in around if part.strip())


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
