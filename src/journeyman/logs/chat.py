"""Messages in the shapes of the OpenAI and Anthropic APIs, as records: roles, content parts and
blocks, tool calls of three generations, results, usage; and a conversation handed over in memory
as a session.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from journeyman.logs.values import as_json, as_text, only_text, seconds, whole_number
from journeyman.records import (
    Fragment,
    Message,
    Recorded,
    Role,
    Session,
    SessionId,
    Skip,
    ToolCall,
    Usage,
)
from journeyman.records.errors import WrongInput
from journeyman.records.message import message_digest, whole

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

_REASONING_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_OTHER_BLOCKS = _REASONING_BLOCKS | {"tool_use", "tool_result"}
_WAITING_LIMIT = 256


class BadMessage(ValueError):
    """A message that cannot be used; the text is the reason for the report."""


class ChatReading:
    """Reads the messages of one session in their order.

    It makes up ids for calls that have none and gives results without an id to the call they
    answer: the first open one of that name, else the first open one. `waiting` are the ids and
    names of the open calls.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[str, str]] = []

    def read(self, raw: Any, key: str, position: int, *, model: str = "") -> list[Message]:
        """The message as records: more than one where several results came in one message, at
        `position` and the positions after it. Raises BadMessage.
        """
        before = list(self.waiting)
        try:
            return list(self._read(raw, key, position, model))
        except (BadMessage, RecursionError) as error:
            self.waiting = before
            if isinstance(error, BadMessage):
                raise
            raise BadMessage("the message is nested too deeply to be read") from error

    def _read(self, raw: Any, key: str, position: int, model: str) -> Iterator[Message]:
        if not isinstance(raw, dict):
            _wrong("a message", raw)
        role = raw.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise BadMessage(f"a message has the unknown role {str(role)[:40]!r}")
        content = raw.get("content")
        if content is not None and not isinstance(content, str | list | dict):
            _wrong("content", content)
        at = seconds_of(raw)
        if ROLES[role] == "tool":
            yield self._result(raw, _text(raw, "tool_call_id"), key, position, at)
            return
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if _type(block) == "tool_result"]
        for number, block in enumerate(results):
            call_id = _text(block, "tool_use_id")
            yield self._result(block, call_id, f"{key}.{number}", position + number, at)
        calls = tuple(self._calls(raw, blocks, key))
        said = [block for block in blocks if _type(block) not in _OTHER_BLOCKS]
        text = as_text(said if isinstance(content, list) else content)
        thoughts = [as_text(one) for one in blocks if _type(one) in ("thinking", "reasoning")]
        reasoning = "\n".join(thoughts)
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

    def _result(
        self, raw: dict[str, Any], call_id: str, key: str, position: int, at: float | None
    ) -> Message:
        name = _text(raw, "name")
        flags = (raw.get(field) for field in ("is_error", "isError", "error"))
        recorded = Recorded(
            is_error=next((flag for flag in flags if isinstance(flag, bool)), None),
            exit_code=whole_number(raw.get("exit_code")),
        )
        return Message(
            key=key,
            position=position,
            role="tool",
            text=as_text(raw.get("content")),
            tool_call_id=self.answered(call_id, name),
            tool_name=name,
            recorded=None if recorded == Recorded() else recorded,
            at=at,
        )

    def _calls(self, raw: dict[str, Any], blocks: list[Any], key: str) -> Iterator[ToolCall]:
        asked = raw.get("tool_calls") or []
        if not isinstance(asked, list):
            _wrong("tool_calls", asked)
        legacy = raw.get("function_call")
        uses = [block for block in blocks if _type(block) == "tool_use"]
        for number, call in enumerate([*asked, *uses, *([legacy] if legacy else [])]):
            if not isinstance(call, dict):
                _wrong("a tool call", call)
            function = call.get("function")
            parts = function if isinstance(function, dict) else call
            arguments = parts.get("arguments", parts.get("input"))
            yield self.asked(
                ToolCall(
                    id=_text(call, "id") or f"call-{key}-{number}",
                    name=_text(parts, "name"),
                    arguments="{}" if arguments is None else as_json(arguments),
                )
            )

    def asked(self, call: ToolCall) -> ToolCall:
        """The call, remembered as open."""
        self.waiting.append((call.id, call.name))
        del self.waiting[:-_WAITING_LIMIT]
        return call

    def answered(self, call_id: str, name: str) -> str:
        """The id of the call that a result with this id, or without one, answers."""
        if call_id:
            matching = [call for call in self.waiting if call[0] == call_id]
        else:
            matching = [call for call in self.waiting if call[1] == name] or self.waiting
        if not matching:
            return call_id
        answered = matching[0]
        self.waiting.remove(answered)
        return answered[0]


def read_each(
    values: Iterable[Any],
    read: Callable[[Any, int, int], Sequence[Message | Usage]],
    *,
    what: str = "message",
    label: Callable[[Any, int], object] = lambda _, index: index + 1,
) -> Iterator[Message | Usage | Skip]:
    """What `read` makes of each value, its index and the position it has among the messages. One
    that cannot be used is left out, with a skip that names it.
    """
    position = 0
    for index, value in enumerate(values):
        if isinstance(value, Skip):
            yield value
            continue
        try:
            parts = read(value, index, position)
        except BadMessage as error:
            yield Skip(line=0, reason=f"{what} {label(value, index)}: {error}")
            continue
        position += sum(isinstance(part, Message) for part in parts)
        yield from parts


def is_message(value: Any) -> bool:
    """Whether a decoded value looks like one message of a chat."""
    return (
        isinstance(value, dict)
        and value.get("role") in tuple(ROLES)
        and not value.keys().isdisjoint(("content", "tool_calls", "function_call"))
    )


def seconds_of(raw: dict[str, Any]) -> float | None:
    """When a message was recorded, under any of the names for it."""
    times = (seconds(raw.get(field)) for field in ("timestamp", "created_at", "created"))
    return next((at for at in times if at is not None), None)


def usage_of(
    raw: Any,
    key: str,
    *,
    model: str = "",
    task: str = "",
    at: float | None = None,
    cost: Any = None,
) -> Usage | None:
    """Recorded usage in the spelling of either API; None when nothing was recorded.

    OpenAI counts what the cache served into the prompt, Anthropic counts it apart.
    """
    raw = raw if isinstance(raw, dict) else {}
    cost = cost if cost is not None else raw.get("cost")
    cost_usd = float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e9 else None
    prompt = whole_number(raw.get("prompt_tokens", raw.get("input_tokens")))
    answer = whole_number(raw.get("completion_tokens", raw.get("output_tokens")))
    if prompt is None and answer is None and not cost_usd:
        return None
    inside = _detail(raw, "cached_tokens", "prompt_tokens_details", "input_tokens_details")
    served = whole_number(raw.get("cache_read_input_tokens"))
    stored = whole_number(raw.get("cache_creation_input_tokens"))
    if prompt is not None and ("prompt_tokens" in raw or inside is not None):
        prompt = max(0, prompt - (inside if inside is not None else served or 0) - (stored or 0))
    return Usage(
        key=key,
        model=model,
        task=task,
        at=at,
        input_tokens=prompt,
        output_tokens=answer,
        cache_read_tokens=inside if inside is not None else served,
        cache_write_tokens=stored,
        reasoning_tokens=_detail(
            raw, "reasoning_tokens", "completion_tokens_details", "output_tokens_details"
        ),
        cost_usd=cost_usd,
        cost_origin="" if cost_usd is None else "recorded",
    )


def _detail(raw: dict[str, Any], field: str, *groups: str) -> int | None:
    found = [raw[group] for group in groups if isinstance(raw.get(group), dict)]
    return whole_number(found[0].get(field)) if found else None


def _type(block: Any) -> str:
    return str(block.get("type", "")) if isinstance(block, dict) else ""


def _text(raw: dict[str, Any], field: str) -> str:
    return only_text(raw.get(field))


def _wrong(what: str, value: Any) -> NoReturn:
    raise BadMessage(f"{what} is {type(value).__name__}, which cannot be read")


def recorded_session(
    messages: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], *, now: float
) -> Fragment:
    """The session with these facts as one fragment. Raises WrongInput, naming the fact or the
    message that cannot be used.
    """
    if isinstance(messages, str | Mapping) or not messages:
        raise WrongInput("There is nothing to record: give a list of messages that is not empty.")
    outcome, given_id = facts["outcome"], facts["id"]
    if outcome is not None and not (isinstance(outcome, int | float) and 0 <= outcome <= 1):
        raise WrongInput(f"The outcome {outcome!r} is not between 0 (failed) and 1 (succeeded).")
    told = {"id": "" if given_id is None else given_id}
    if outcome is not None:
        told["outcome_origin"] = "recorded"
    try:
        session = msgspec.convert({**facts, **told}, Session)
    except msgspec.ValidationError as error:
        raise WrongInput(f"The session cannot be recorded: {error}.") from error
    if given_id == "" or not session.source:
        raise WrongInput("The session cannot be recorded: its id or its source is empty.")
    chat = ChatReading()
    read: list[Message] = []
    for index, raw in enumerate(messages):
        try:
            found = chat.read(dict(raw), f"m{index}", len(read), model=session.model)
        except (BadMessage, TypeError, ValueError) as error:  # a message that is no mapping
            raise WrongInput(f"Message {index} cannot be recorded: {error}.") from error
        read += [whole(message) for message in found]
    # Without an id it is named by content: recording the same conversation twice keeps one.
    content = hashlib.blake2b(b"".join(map(message_digest, read)), digest_size=12)
    session = msgspec.structs.replace(
        session,
        id=session.id or SessionId(content.hexdigest()),
        started_at=None if any(message.at for message in read) else now,
    )
    return Fragment(session=session, messages=tuple(read), replaces=True)
