"""The append-only messages of a running session. Each message is stored before the next step
begins, and messages read back from the store give the model the same bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from journeyman.agent.tools.tool import Result
from journeyman.learning.opening_text import is_own_call_id
from journeyman.models.model import Reply
from journeyman.records import Fragment, Message, Session, Tokens, ToolCall, Usage
from journeyman.records.errors import WrongInput
from journeyman.records.message import Role, openai_messages
from journeyman.records.usage import validated_usage
from journeyman.store.rows import storable
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
    def open_calls(self) -> Sequence[ToolCall]:
        """The calls of the last reply that have no result yet, in order."""
        results = [*takewhile(lambda message: message.role == "tool", reversed(self.messages))]
        asked = self.messages[: len(self.messages) - len(results)]
        return asked[-1].tool_calls[len(results) :] if asked else ()

    def next_message(
        self,
        role: Role,
        text: str,
        at: float,
        *,
        reasoning: str = "",
        tool_calls: Iterable[ToolCall] = (),
        **fields: Any,
    ) -> Message:
        """The next message, as the store returns it."""
        position = self.messages[-1].position + 1 if self.messages else 0
        return Message(
            key=f"m{position}",
            position=position,
            role=role,
            text=storable(text),
            reasoning=storable(reasoning),
            tool_calls=tuple(map(_as_stored, tool_calls)),
            at=at,
            **fields,
        )

    def result_message(self, call: ToolCall, result: Result, at: float) -> Message:
        """The result of a call as the next message."""
        return self.next_message(
            "tool",
            result.text,
            at,
            tool_call_id=call.id,
            tool_name=call.name,
            recorded=result.recorded,
        )


def _as_stored(call: ToolCall) -> ToolCall:
    """The call as the store returns it, renamed if its id looks like one from an opening: those do
    not count as work.
    """
    call_id = f"x{call.id}" if is_own_call_id(call.id) else call.id
    return ToolCall(id=call_id, name=storable(call.name), arguments=storable(call.arguments))


class SessionRecorder:
    """Stores the steps of one agent's sessions; `prices` estimates the cost of a request."""

    def __init__(self, store: Store, prices: Prices) -> None:
        self._store, self._prices = store, prices

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
        numbers, origin = msgspec.structs.asdict(reply.tokens), "model"
        if numbers["cost_usd"] is None:
            numbers["cost_usd"] = self._prices(reply.model, reply.tokens)
            origin = "" if numbers["cost_usd"] is None else "estimated"
        usage = Usage(key=key, model=reply.model, task=task, at=at, cost_origin=origin, **numbers)
        # Invalid counts become unknown: accounting must never withhold an answer from a person.
        return validated_usage(usage)

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
