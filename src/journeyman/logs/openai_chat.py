"""Conversations in the OpenAI or Anthropic message format, the form every other tool can write: a
list of messages, an object around one, a list of either, or the same line by line.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from journeyman.logs.chat import (
    BadMessage,
    ChatReading,
    is_message,
    read_each,
    seconds_of,
    usage_of,
)
from journeyman.logs.fragments import (
    Part,
    document_fields,
    document_items,
    in_fragments,
    read_session_lines,
    read_session_list,
)
from journeyman.logs.lines import BadLine, LineDecoder, Lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.values import only_text, path_id, seconds, session_id
from journeyman.records import (
    LogEvent,
    LogState,
    Mark,
    Message,
    Session,
    SessionId,
    Skip,
    Usage,
)

_FIRST_LINES = 5
"""How many lines may say what a log is: the first may be a header, or an empty conversation."""

_ID_FIELDS = ("id", "session_id", "conversation_id")
_OUTCOME_FIELDS = ("reward", "score", "success")
_START_FIELDS = ("started_at", "created_at", "created", "timestamp")
_KNOWN_FIELDS = ("messages", "usage", "model", "title", *_ID_FIELDS, *_START_FIELDS)


class OpenAIChatReader:
    """Chats as lists of messages."""

    name = "openai"
    about = "conversations in the OpenAI or Anthropic message format (JSON or JSONL)"

    def recognises(self, log: LogFile) -> bool:
        """A message has a role beside its content; a conversation has such messages. So do logs
        that other readers know better, which are asked before.
        """
        if not log.is_text or not log.head.lstrip().startswith((b"{", b"[")):
            return False
        keys = log.keys
        if not keys and log.first_lines:
            keys = _keys_of(log.first_lines[0])
        if "messages.item.role" in keys or "item.role" in keys or "item.item.role" in keys:
            return True
        if log.is_jsonl:
            wanted = {"messages.item.role", "item.role"}
            lines = log.first_lines[:_FIRST_LINES]
            return any(is_message(one) or wanted & _keys_of(one) for one in lines)
        return "item.messages" in keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Line by line if the log has lines, otherwise as one document."""
        read = partial(self._conversation, log)
        if log.is_jsonl and any(map(is_message, log.first_lines[:_FIRST_LINES])):
            yield from in_fragments(self._session(log, {}, path_id(log)), _message_lines(log))
            yield Mark(state=log.state(self.name))
        elif log.is_jsonl:
            yield from read_session_lines(log, since, self.name, read)
        elif not log.is_object and "item.role" not in log.keys:
            yield from read_session_list(log, self.name, "item", read)
        else:
            yield from self._document(log)

    def _document(self, log: LogFile) -> Iterator[LogEvent]:
        """A document that is one conversation."""
        facts, given, prefix = {}, path_id(log), "item"
        if log.is_object:
            facts, prefix = document_fields(log, without=("messages",)), "messages.item"
            given = session_id(log, _id(facts))
        session = self._session(log, facts, given)
        yield from in_fragments(session, _parts(document_items(log, prefix), facts, session.model))
        yield Mark(state=log.state(self.name))

    def _conversation(
        self, log: LogFile, value: Any, number: int
    ) -> tuple[Session, Iterable[Part]]:
        facts = value if isinstance(value, dict) else {"messages": value}
        messages = facts.get("messages")
        if not isinstance(messages, list) or not messages:
            raise BadLine(f"number {number} is no conversation: it has no messages")
        session = self._session(log, facts, session_id(log, _id(facts), str(number)))
        return session, _parts(messages, facts, session.model)

    def _session(self, log: LogFile, facts: dict[str, Any], given: str) -> Session:
        scores = {field: facts[field] for field in _OUTCOME_FIELDS if _is_score(facts.get(field))}
        origin, outcome = next(iter(scores.items()), ("", None))
        known = (*_KNOWN_FIELDS, origin)
        details = {key: value for key, value in facts.items() if key not in known}
        if not isinstance(details.get("metadata"), dict):
            details.pop("metadata", None)
        starts = (seconds(facts.get(field)) for field in _START_FIELDS)
        return Session(
            id=SessionId(given),
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
    """The messages of a log in which each stands in a line of its own."""
    chat, decoder = ChatReading(), LineDecoder[Any](Any)
    for line in Lines(log, None):
        if isinstance(line, Skip):
            yield line
            continue
        try:
            # A line is longer than it has parts, so the positions of one never reach the next.
            yield from chat.read(decoder.decode(line), f"@{line.offset}", line.offset)
        except (BadLine, BadMessage) as error:
            yield Skip(line=line.number, reason=str(error))


def _parts(values: Iterable[Any], facts: dict[str, Any], model: str) -> Iterator[Part]:
    chat = ChatReading()
    whole = usage_of(facts.get("usage"), "session", model=model, cost=facts.get("cost_usd"))
    if whole:
        yield whole

    def read(raw: Any, index: int, position: int) -> list[Message | Usage]:
        messages = chat.read(raw, str(index), position, model=model)
        usage = usage_of(
            raw.get("usage"), f"usage-{index}", model=messages[-1].model, at=seconds_of(raw)
        )
        return [*messages, usage] if usage and not whole else [*messages]

    yield from read_each(values, read)


def _id(facts: dict[str, Any]) -> str:
    for value in map(facts.get, _ID_FIELDS):
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return ""


def _is_score(value: Any) -> bool:
    return isinstance(value, bool | int | float) and 0 <= value <= 1


def _keys_of(value: Any) -> frozenset[str]:
    found: set[str] = set()
    if isinstance(value, dict):
        found.update(value)
        messages = value.get("messages")
        if isinstance(messages, list) and any(is_message(message) for message in messages[:3]):
            found.add("messages.item.role")
    elif isinstance(value, list) and any(is_message(message) for message in value[:3]):
        found.add("item.role")
    return frozenset(found)
