"""The append-only messages of a running session. Each message is stored before the next step
begins, and messages read back from the store give the model the same bytes.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from journeyman.agent.tools.tool import Result
from journeyman.learning.opening_text import is_own_call_id
from journeyman.logs.chat import BadMessage, ChatParser
from journeyman.models.model import Reply
from journeyman.records import Fragment, Message, Session, Tokens, ToolCall, Usage, join_calls
from journeyman.records.errors import WrongInput
from journeyman.records.message import MessageKind, openai_messages, replace_lone_surrogates
from journeyman.records.usage import validated_usage
from journeyman.store.store import Store

Prices = Callable[[str, Tokens], float | None]


class Conversation:
    """A session and its messages; the first `lead` are the system prompt and the opening."""

    def __init__(
        self, session: Session, messages: Iterable[Message] = (), *, lead: int = 0
    ) -> None:
        self.session = session
        self.messages = list(messages)
        self.lead = lead

    @property
    def chat(self) -> list[dict[str, Any]]:
        """The messages in the format that models accept."""
        return openai_messages(self.messages)

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls of the last reply that have no result yet, in order."""
        last = next(
            (message for message in reversed(self.messages) if message.role != "tool"), None
        )
        if last is None or not last.tool_calls:
            return []
        answered_ids = {
            call.id
            for call in join_calls(self.messages, with_copies=True)
            if call.asked_key == last.key and call.result is not None
        }
        return [call for call in last.tool_calls if call.id not in answered_ids]

    def input_message(
        self, role: Literal["system", "user"], text: str, at: float, kind: MessageKind = "plain"
    ) -> Message:
        """The next message, from a person or from the program."""
        return _message(self._next_position, role=role, text=text, at=at, kind=kind)

    def reply_message(self, reply: Reply, at: float) -> Message:
        """The model's reply as the next message."""
        return _message(
            self._next_position,
            role="assistant",
            text=reply.text,
            reasoning=reply.reasoning,
            tool_calls=tuple(map(_with_distinct_id, reply.tool_calls)),
            at=at,
            model=reply.model,
            finish_reason=reply.finish_reason,
        )

    def result_message(self, call: ToolCall, result: Result, at: float) -> Message:
        """The result of a call as the next message."""
        return _message(
            self._next_position,
            role="tool",
            text=result.text,
            tool_call_id=call.id,
            tool_name=call.name,
            recorded=result.recorded,
            at=at,
        )

    @property
    def _next_position(self) -> int:
        return self.messages[-1].position + 1 if self.messages else 0


def _with_distinct_id(call: ToolCall) -> ToolCall:
    """The call, renamed if its id looks like one from an opening: those do not count as work."""
    return msgspec.structs.replace(call, id=f"x{call.id}") if is_own_call_id(call.id) else call


# A \u0000 escape, but not one that follows an escaped backslash.
_NUL = re.compile(rb"((?<!\\)(?:\\\\)*)\\u0000")


def _message(position: int, **parts: Any) -> Message:
    return storable(Message(key=f"m{position}", position=position, **parts))


def storable(message: Message) -> Message:
    """The message as the store returns it: NULs and lone surrogates are replaced."""
    text = msgspec.json.encode(replace_lone_surrogates(message))
    return msgspec.json.decode(_NUL.sub(rb"\1\\ufffd", text), type=Message)


def read_chat(history: Sequence[Mapping[str, Any]], at: float) -> list[Message]:
    """Convert OpenAI messages to records. Raise WrongInput, naming the message that is invalid."""
    if isinstance(history, str | Mapping):
        raise WrongInput(
            "The conversation history is not a list of messages. Pass a list in the OpenAI format."
        )
    reading = ChatParser()
    messages: list[Message] = []
    for index, raw in enumerate(history):
        try:
            records = reading.read(dict(raw), f"m{index}", len(messages))
        except (BadMessage, TypeError, ValueError) as error:
            raise WrongInput(
                f"Message {index} of the conversation cannot be used: {error}. Pass messages in "
                "the OpenAI format."
            ) from error
        for record in records:
            position = len(messages)
            place = {"key": f"m{position}", "position": position, "at": record.at or at}
            messages.append(storable(msgspec.structs.replace(record, **place)))
    return messages


class SessionRecorder:
    """Stores the steps of one agent's sessions; `prices` estimates the cost of a request."""

    def __init__(self, store: Store, prices: Prices) -> None:
        self._store = store
        self._prices = prices

    def begin(self, conversation: Conversation) -> None:
        """Store a new session with all its messages so far."""
        fragment = Fragment(session=conversation.session, messages=tuple(conversation.messages))
        with self._store.writing() as writing:
            writing.add(fragment)
            writing.finish()

    def save(
        self, conversation: Conversation, message: Message, usage: Usage | None = None
    ) -> None:
        """Store a message and its usage, then add it to the conversation. Raise WrongInput."""
        usages = () if usage is None else (usage,)
        session = conversation.session
        self._write(conversation, Fragment(session=session, messages=(message,), usage=usages))
        conversation.messages.append(message)

    def end(self, conversation: Conversation, reason: str, at: float) -> None:
        """Store how a turn ended. Raise WrongInput."""
        ended = msgspec.structs.replace(conversation.session, end_reason=reason, ended_at=at)
        self._write(conversation, Fragment(session=ended))
        conversation.session = ended

    def usage(self, key: str, reply: Reply, at: float, task: str = "") -> Usage:
        """The usage of one request. Its cost is as reported by the model, or estimated, or None."""
        reported = reply.tokens.cost_usd
        cost = self._prices(reply.model, reply.tokens) if reported is None else reported
        origin = "estimated" if reported is None else "model"
        numbers = msgspec.structs.asdict(reply.tokens) | {"cost_usd": cost}
        numbers["cost_origin"] = "" if cost is None else origin
        usage = Usage(key=key, model=reply.model, task=task, at=at, **numbers)
        # Invalid counts become unknown: accounting must never withhold an answer from a person.
        return validated_usage(usage)[0]

    def _write(self, conversation: Conversation, fragment: Fragment) -> None:
        """Write a fragment. Raise WrongInput if the session was deleted or changed meanwhile."""
        session_id = conversation.session.id
        with self._store.writing() as writing:
            if writing.message_count(session_id) != len(conversation.messages):
                raise WrongInput(
                    f"The session {session_id} was deleted or changed while this agent was running "
                    "it, so the agent stops and stores nothing more. Start a new session."
                )
            writing.add(fragment)
            writing.finish()
