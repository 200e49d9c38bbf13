"""Reader for conversations in the OpenAI or Anthropic message format, which any tool can write: a
list of messages, an object that contains one, a list of either, or the same as JSON lines.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from journeyman.logs.chat import (
    BadMessage,
    ChatParser,
    chat_parts,
    is_message,
    parse_usage,
)
from journeyman.logs.fields import only_text, path_id, seconds, session_id
from journeyman.logs.fragments import Part, in_fragments, read_sessions
from journeyman.logs.line_reader import BadLine, Line, decoded_lines
from journeyman.logs.log_file import LogFile
from journeyman.records import (
    LogEvent,
    LogState,
    Mark,
    Session,
    SessionId,
    Skip,
)

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
            yield from read_sessions(log, self.name, decoded_lines(log), read)
        elif isinstance(log.document, list) and "item.role" not in log.keys:
            items = enumerate(log.document, 1)
            values = ((Line(number, 0, b"", whole=True), value) for number, value in items)
            yield from read_sessions(log, self.name, values, read)
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
    chat = ChatParser()
    for item in decoded_lines(log):
        if isinstance(item, Skip):
            yield item
            continue
        line, value = item
        try:
            # A line has more bytes than messages, so its positions never reach the next line's.
            yield from chat.read(value, f"@{line.offset}", line.offset)
        except BadMessage as error:
            yield Skip(line=line.number, reason=str(error))


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
