"""The messages of a running session. They are only ever appended to, and kept as the records that
the store keeps, so that what is read back gives the model the same bytes again.
"""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from journeyman.agent.tools.tool import Result
from journeyman.logs.chat import BadMessage, ChatReading
from journeyman.models.model import Reply
from journeyman.records import Message, Session, ToolCall, join_calls
from journeyman.records.chat import openai_messages
from journeyman.records.errors import WrongInput
from journeyman.records.message import MessageKind, whole
from journeyman.templates.mining.own_openings import is_own_call_id


class Conversation:
    """A session and its messages so far. `lead` is how many of them stand before the first task:
    the system prompt and the opening.
    """

    def __init__(
        self, session: Session, messages: Iterable[Message] = (), *, lead: int = 0
    ) -> None:
        self.session = session
        self.messages = list(messages)
        self.lead = lead

    @property
    def chat(self) -> list[dict[str, Any]]:
        """The messages as a model takes them."""
        return openai_messages(self.messages)

    @property
    def is_short(self) -> bool:
        """Whether there is nothing that could be summarised: only a request, or a summary."""
        return all(one.role == "user" for one in self.messages[self.lead :])

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls at the end that have no result yet, in the order they were asked for."""
        asking = next((one for one in reversed(self.messages) if one.role != "tool"), None)
        if asking is None or not asking.tool_calls:
            return []
        answered = {
            call.id
            for call in join_calls(self.messages)
            if call.asked_key == asking.key and call.result is not None
        }
        return [call for call in asking.tool_calls if call.id not in answered]

    def add(self, message: Message) -> None:
        """Put a message where its position says. Whoever adds has kept it before, so that the
        conversation never knows more than the store.
        """
        insort(self.messages, message, key=lambda one: one.position)

    def said(
        self, role: Literal["system", "user"], text: str, at: float, kind: MessageKind = "plain"
    ) -> Message:
        """What a person or the program says next."""
        return _made(self._next, role=role, text=text, at=at, kind=kind)

    def heard(self, reply: Reply, at: float) -> Message:
        """What the model replied."""
        return _made(
            self._next,
            role="assistant",
            text=reply.text,
            reasoning=reply.reasoning,
            tool_calls=tuple(map(_renamed, reply.tool_calls)),
            at=at,
            model=reply.model,
            finish_reason=reply.finish_reason,
        )

    def answered(self, call: ToolCall, result: Result, at: float) -> Message:
        """The result of a call, at its place: results stand in the order of their calls, also when
        they come in another.
        """
        asking = next(one for one in reversed(self.messages) if call in one.tool_calls)
        return _made(
            asking.position + 1 + asking.tool_calls.index(call),
            role="tool",
            text=result.text,
            tool_call_id=call.id,
            tool_name=call.name,
            recorded=result.recorded,
            at=at,
        )

    @property
    def _next(self) -> int:
        return self.messages[-1].position + 1 if self.messages else 0


def _renamed(call: ToolCall) -> ToolCall:
    """The call, not under an id as our openings have them: a model may copy one that it has read,
    and what looks like an example is not counted as work.
    """
    return msgspec.structs.replace(call, id=f"x{call.id}") if is_own_call_id(call.id) else call


def _made(position: int, **parts: Any) -> Message:
    return storable(Message(key=f"m{position}", position=position, **parts))


def storable(message: Message) -> Message:
    """The message as the store gives it back: without NULs and half characters, which not every
    database has.
    """
    made = whole(message)
    if not any("\x00" in text for text in _texts(made)):
        return made
    return msgspec.structs.replace(
        made,
        text=_without_nul(made.text),
        reasoning=_without_nul(made.reasoning),
        tool_call_id=_without_nul(made.tool_call_id),
        tool_name=_without_nul(made.tool_name),
        tool_calls=tuple(
            ToolCall(
                id=_without_nul(call.id),
                name=_without_nul(call.name),
                arguments=_without_nul(call.arguments),
            )
            for call in made.tool_calls
        ),
    )


def _texts(message: Message) -> list[str]:
    calls = [part for call in message.tool_calls for part in (call.id, call.name, call.arguments)]
    return [message.text, message.reasoning, message.tool_call_id, message.tool_name, *calls]


def _without_nul(text: str) -> str:
    return text.replace("\x00", "\ufffd")


def read_chat(given: Sequence[Mapping[str, Any]], at: float) -> list[Message]:
    """OpenAI messages as records. Raises WrongInput, naming the message that cannot be used."""
    if isinstance(given, str | Mapping):
        raise WrongInput("The conversation so far is not a list of messages.")
    reading = ChatReading()
    found: list[Message] = []
    for index, raw in enumerate(given):
        try:
            read = reading.read(dict(raw), f"m{index}", len(found))
        except (BadMessage, TypeError, ValueError) as error:
            raise WrongInput(
                f"Message {index} of the conversation cannot be used: {error}. Give messages in "
                "the OpenAI format."
            ) from error
        for message in read:
            place = len(found)
            found.append(
                storable(
                    msgspec.structs.replace(
                        message, key=f"m{place}", position=place, at=message.at or at
                    )
                )
            )
    return found
