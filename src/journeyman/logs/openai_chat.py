"""Conversations in the OpenAI message format, the form every other tool can write: a list of
messages, an object around one, a list of either, or the same line by line. Anthropic's content
blocks are understood inside. Formats that have a reader of their own are left to it, and so are
requests, tools and everything else that is no conversation.
"""

from collections.abc import Iterator
from typing import Any

from journeyman.logs import documents
from journeyman.logs.chat import BadMessage, ChatReading, is_message, seconds_of, usage_of
from journeyman.logs.fragments import SessionNames, in_fragments, read_session_lines
from journeyman.logs.lines import BadLine, Line, Lines
from journeyman.logs.logfile import LogFile
from journeyman.logs.reader import FRAGMENT_MESSAGES
from journeyman.logs.taking import take_lines
from journeyman.logs.values import only_text, path_id, seconds, session_id
from journeyman.records import (
    Fragment,
    LogEvent,
    LogState,
    Mark,
    Message,
    Session,
    SessionId,
    Skip,
    Usage,
)

_FOREIGN_KEYS = (
    ({"started_at", "source"}, "a Hermes session export"),
    ({"journeyman", "session"}, "Journeyman's own export"),
    ({"conversations"}, "ShareGPT"),
    ({"traj"}, "tau-bench"),
    ({"simulations"}, "tau2-bench"),
    ({"trajectory_format"}, "mini-swe-agent"),
    ({"info.mini_version"}, "mini-swe-agent"),
    ({"info.model_stats"}, "mini-swe-agent"),
    ({"payload"}, "a Codex rollout"),
    ({"sessionId", "uuid"}, "a Claude Code transcript"),
)
"""Keys that show that another reader knows the file better, and whose it is."""

_FIRST_LINES = 5
"""How many lines may say what a log is: the first may be a header, or an empty conversation."""

_ID_FIELDS = ("id", "session_id", "conversation_id")
_OUTCOME_FIELDS = ("reward", "score", "success")
_START_FIELDS = ("started_at", "created_at", "created", "timestamp")
_KNOWN_FIELDS = frozenset(
    {
        "messages",
        "usage",
        "model",
        "title",
        "metadata",
        *_ID_FIELDS,
        *_OUTCOME_FIELDS,
        *_START_FIELDS,
    }
)


class OpenAIChatReader:
    """Chats as lists of messages."""

    name = "openai"
    about = "conversations in the OpenAI or Anthropic message format (JSON or JSONL)"

    def recognises(self, log: LogFile) -> bool:
        """A message has a role beside its content; a conversation has such messages."""
        if not log.is_text or not log.head.lstrip().startswith((b"{", b"[")):
            return False
        keys = log.keys
        if not keys and log.first_lines:
            keys = _keys_of(log.first_lines[0])
        for foreign, _ in _FOREIGN_KEYS:
            if foreign <= keys or {f"item.{key}" for key in foreign} <= keys:
                return False
        if "messages.item.role" in keys or "item.role" in keys or "item.item.role" in keys:
            return True
        if log.is_jsonl:
            return any(_is_chat(value) for value in log.first_lines[:_FIRST_LINES])
        return "item.messages" in keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        """Line by line if the log has lines, otherwise as one document."""
        if not log.is_jsonl:
            yield from self._document(log)
            yield Mark(state=documents.read_whole(log, self.name))
        elif any(is_message(value) for value in log.first_lines[:_FIRST_LINES]):
            yield from self._message_lines(log, since)
        else:

            def read(
                value: Any, number: int, names: SessionNames, offset: int
            ) -> Iterator[Fragment | Skip]:
                return self._conversation(
                    log, value, str(number), names, line=number, offset=offset
                )

            yield from read_session_lines(log, since, self.name, read)

    def _document(self, log: LogFile) -> Iterator[Fragment | Skip]:
        if log.head.lstrip().startswith(b"{"):
            facts = documents.fields(log, without=("messages",))
            session = self._session(log, facts, session_id(log, _id(facts)))
            yield from in_fragments(
                session, _parts(documents.items(log, "messages.item"), facts, session.model)
            )
        elif "item.role" in log.keys:
            session = self._session(log, {}, path_id(log))
            yield from in_fragments(session, _parts(documents.items(log, "item"), {}, ""))
        else:
            names = SessionNames()
            for number, value in enumerate(documents.items(log, "item"), 1):
                if isinstance(value, Skip):
                    yield value
                else:
                    yield from self._conversation(log, value, str(number), names)

    def _conversation(
        self,
        log: LogFile,
        value: Any,
        part: str,
        names: SessionNames,
        *,
        line: int = 0,
        offset: int = 0,
    ) -> Iterator[Fragment | Skip]:
        facts = value if isinstance(value, dict) else {"messages": value}
        messages = facts.get("messages")
        if not isinstance(messages, list) or not messages:
            yield Skip(line=line, reason=f"number {part} is no conversation: it has no messages")
            return
        given, notes = names.give(session_id(log, _id(facts), part), line)
        yield from notes
        session = self._session(log, facts, given)
        parts = _parts(iter(messages), facts, session.model, line)
        yield from in_fragments(session, parts, read_bytes=offset)

    def _message_lines(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:
        lines = Lines(log, since if since is not None and since.reader == self.name else None)
        session = self._session(log, {}, path_id(log))
        return take_lines(self.name, lines, Any, lambda: _Transcript(session, lines, since))

    def _session(self, log: LogFile, facts: dict[str, Any], given: str) -> Session:
        outcome, origin = _outcome(facts)
        details = {key: value for key, value in facts.items() if key not in _KNOWN_FIELDS}
        if isinstance(facts.get("metadata"), dict):
            details["metadata"] = facts["metadata"]
        for field in _OUTCOME_FIELDS:
            if field in facts and field != origin:
                details[field] = facts[field]
        starts = (seconds(facts.get(field)) for field in _START_FIELDS)
        return Session(
            id=SessionId(given),
            source=self.name,
            title=only_text(facts.get("title")),
            model=only_text(facts.get("model")),
            started_at=next((start for start in starts if start is not None), None),
            outcome=outcome,
            outcome_origin=origin,
            log=log.name,
            details=details,
        )


class _Transcript:
    """One session whose messages stand in lines of their own, read on from where it ended."""

    def __init__(self, session: Session, lines: Lines, since: LogState | None) -> None:
        self.ready: list[LogEvent] = []
        memory = since.memory if since is not None and lines.resumed else {}
        self._replaces = not lines.resumed
        self._chat = ChatReading(memory.get("waiting", ()))
        self._session = session
        self._messages: list[Message] = []

    def memory(self) -> dict[str, Any]:
        return {"waiting": self._chat.waiting}

    def take(self, value: Any, line: Line) -> None:
        try:
            # A line is longer than it has parts, so the positions of one never reach the next.
            self._messages += self._chat.read(value, f"@{line.offset}", line.offset)
        except BadMessage as error:
            raise BadLine(str(error)) from error
        if line.whole and len(self._messages) >= FRAGMENT_MESSAGES:
            self.ready += self.close(line.offset)

    def close(self, read_bytes: int) -> Iterator[Fragment]:
        """What is left, or has been gathered so far."""
        if self._messages:
            messages, self._messages = tuple(self._messages), []
            replaces, self._replaces = self._replaces, False
            yield Fragment(
                session=self._session, messages=messages, replaces=replaces, read_bytes=read_bytes
            )


def _parts(
    values: Iterator[Any], facts: dict[str, Any], model: str, line: int = 0
) -> Iterator[Message | Usage | Skip]:
    chat = ChatReading()
    position = 0
    if whole := usage_of(facts.get("usage"), "session", model=model, cost=facts.get("cost_usd")):
        yield whole
    for index, raw in enumerate(values):
        if isinstance(raw, Skip):
            yield raw
            continue
        try:
            messages = chat.read(raw, str(index), position, model=model)
        except BadMessage as error:
            yield Skip(line=line, reason=f"message {index + 1}: {error}")
            continue
        position += len(messages)
        yield from messages
        usage = usage_of(
            raw.get("usage"), f"usage-{index}", model=messages[-1].model, at=seconds_of(raw)
        )
        if usage and not whole:
            yield usage


def _id(facts: dict[str, Any]) -> str:
    for field in _ID_FIELDS:
        value = facts.get(field)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return ""


def _outcome(facts: dict[str, Any]) -> tuple[float | None, str]:
    for field in _OUTCOME_FIELDS:
        value = facts.get(field)
        if isinstance(value, bool | int | float) and 0 <= value <= 1:
            return float(value), field
    return None, ""


def _is_chat(value: Any) -> bool:
    return is_message(value) or not _keys_of(value).isdisjoint(("messages.item.role", "item.role"))


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
