"""The messages of a running session, which are only ever appended to. Each is in the store before
the next step begins, and what is read back gives the model the same bytes again.
"""

import re
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from journeyman.agent.tools.tool import Result
from journeyman.logs.chat import BadMessage, ChatReading
from journeyman.models.model import Reply
from journeyman.records import Fragment, Message, Session, Tokens, ToolCall, Usage, join_calls
from journeyman.records.errors import SessionTaken, WrongInput
from journeyman.records.message import MessageKind, openai_messages, whole
from journeyman.records.usage import checked
from journeyman.store.store import Store
from journeyman.templates.shown.wording import is_own_call_id

Prices = Callable[[str, Tokens], float | None]


class Conversation:
    """A session and its messages; the first `lead` ones are the system prompt and the opening."""

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
        """Put a message, which is in the store already, where its position says."""
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
        """The result of a call; results stand in the order of their calls, whenever they come."""
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
    """The call under an id that is not like those of openings, which are not counted as work."""
    return msgspec.structs.replace(call, id=f"x{call.id}") if is_own_call_id(call.id) else call


# An escape, and not the end of a backslash that is escaped itself.
_NUL = re.compile(rb"((?<!\\)(?:\\\\)*)\\u0000")


def _made(position: int, **parts: Any) -> Message:
    return storable(Message(key=f"m{position}", position=position, **parts))


def storable(message: Message) -> Message:
    """The message as the store gives it back: without NULs and half characters."""
    text = msgspec.json.encode(whole(message))
    return msgspec.json.decode(_NUL.sub(rb"\1\\ufffd", text), type=Message)


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
            place = {"key": f"m{len(found)}", "position": len(found), "at": message.at or at}
            found.append(storable(msgspec.structs.replace(message, **place)))
    return found


class Recording:
    """Writes the steps of one agent's sessions; `prices` estimates what a request cost."""

    def __init__(self, store: Store, prices: Prices) -> None:
        self._store = store
        self._prices = prices

    def begin(self, conversation: Conversation) -> None:
        """Keep a session with all its messages so far."""
        fragment = Fragment(session=conversation.session, messages=tuple(conversation.messages))
        with self._store.writing() as writing:
            writing.add(fragment)
            writing.finish()

    def keep(
        self, conversation: Conversation, message: Message, usage: Usage | None = None
    ) -> None:
        """Keep a message and what it used, then add it to the conversation. Raises SessionTaken."""
        counted = () if usage is None else (usage,)
        session = conversation.session
        self._write(conversation, Fragment(session=session, messages=(message,), usage=counted))
        conversation.add(message)

    def end(self, conversation: Conversation, reason: str, at: float) -> None:
        """Keep how a turn ended."""
        ended = msgspec.structs.replace(conversation.session, end_reason=reason, ended_at=at)
        self._write(conversation, Fragment(session=ended))
        conversation.session = ended

    def continue_in(
        self, parent: Conversation, child: Conversation, at: float, usage: Usage | None
    ) -> None:
        """End a session that was compressed and begin the one that goes on: both or neither."""
        ended = msgspec.structs.replace(parent.session, end_reason="compression", ended_at=at)
        counted = () if usage is None else (usage,)
        self._write(
            parent,
            Fragment(session=ended, usage=counted),
            Fragment(session=child.session, messages=tuple(child.messages)),
        )

    def usage(self, key: str, reply: Reply, at: float, task: str = "") -> Usage:
        """What one request used. Its cost is the model's word, else an estimate, else unknown."""
        told = reply.tokens.cost_usd
        cost = self._prices(reply.model, reply.tokens) if told is None else told
        origin = "estimated" if told is None else "model"
        numbers = msgspec.structs.asdict(reply.tokens) | {"cost_usd": cost}
        numbers["cost_origin"] = "" if cost is None else origin
        counted = Usage(key=key, model=reply.model, task=task, at=at, **numbers)
        # What is no count is unknown: counting must never keep an answer from a person.
        return checked(counted)[0]

    def _write(self, conversation: Conversation, *fragments: Fragment) -> None:
        """Write, unless another program runs this session too. Raises SessionTaken."""
        session_id = conversation.session.id
        with self._store.writing() as writing:
            stored = writing.message_count(session_id)
            if stored != len(conversation.messages):
                gone = "was deleted" if stored is None else "was taken up by another program"
                raise SessionTaken(
                    f"The session {session_id} {gone} while this agent was in it, so it stops here "
                    "and keeps nothing more. Start a new one, or resume it when nobody else does."
                )
            for fragment in fragments:
                writing.add(fragment)
            writing.finish()
