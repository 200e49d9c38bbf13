"""Messages in the shapes of the OpenAI and Anthropic APIs, as records: roles, content parts and
blocks, tool calls of three generations, results, usage. Which file they stand in, and what is
known about their session, is left to the readers.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from journeyman.logs.values import as_json, as_text, seconds, whole_number
from journeyman.records import Message, Recorded, Role, ToolCall, Usage

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
    answer: the first open one of that name, else the first open one. `waiting` are the open
    calls, to read on from there later.
    """

    def __init__(self, waiting: Iterable[Iterable[str]] = ()) -> None:
        self._waiting: list[tuple[str, str]] = []
        for call_id, name in waiting:
            self._waiting.append((call_id, name))

    @property
    def waiting(self) -> list[list[str]]:
        return [list(call) for call in self._waiting]

    def read(self, raw: Any, key: str, position: int, *, model: str = "") -> list[Message]:
        """The message as records: more than one where several results came in one message, at
        `position` and the positions after it. Raises BadMessage.
        """
        before = list(self._waiting)
        try:
            return list(self._read(raw, key, position, model))
        except BadMessage:
            self._waiting = before
            raise
        except RecursionError as error:
            self._waiting = before
            raise BadMessage("the message is nested too deeply to be read") from error

    def _read(self, raw: Any, key: str, position: int, model: str) -> Iterator[Message]:
        role = role_of(raw)
        content = raw.get("content")
        if content is not None and not isinstance(content, str | list | dict):
            _wrong("content", content)
        if role == "tool":
            call_id = _text(raw, "tool_call_id")
            yield self._result(raw, content, call_id, key=key, place=position, at=seconds_of(raw))
            return
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if _type(block) == "tool_result"]
        for number, block in enumerate(results):
            call_id = _text(block, "tool_use_id")
            yield self._result(
                block,
                block.get("content"),
                call_id,
                key=f"{key}.{number}",
                place=position + number,
                at=seconds_of(raw),
            )
        calls = tuple(self._calls(raw, blocks, key))
        said = [block for block in blocks if _type(block) not in _OTHER_BLOCKS]
        text = as_text(said if isinstance(content, list) else content)
        reasoning = _reasoning(raw, blocks)
        if results and not (calls or text or reasoning):
            return
        yield Message(
            key=key,
            position=position + len(results),
            role=role,
            text=text or _text(raw, "refusal"),
            reasoning=reasoning,
            tool_calls=calls,
            at=seconds_of(raw),
            model=(_text(raw, "model") or model) if role == "assistant" else "",
            finish_reason=_text(raw, "finish_reason") or _text(raw, "stop_reason"),
        )

    def _result(
        self,
        raw: dict[str, Any],
        content: Any,
        call_id: str,
        *,
        key: str,
        place: int,
        at: float | None,
    ) -> Message:
        name = _text(raw, "name")
        return Message(
            key=key,
            position=place,
            role="tool",
            text=as_text(content),
            tool_call_id=self.answered(call_id, name),
            tool_name=name,
            recorded=_flags(raw),
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
        self._waiting.append((call.id, call.name))
        del self._waiting[:-_WAITING_LIMIT]
        return call

    def answered(self, call_id: str, name: str) -> str:
        """The id of the call that a result with this id, or without one, answers."""
        matching = [call for call in self._waiting if call[0] == call_id]
        if not call_id:
            matching = [call for call in self._waiting if call[1] == name] or self._waiting
        if not matching:
            return call_id
        answered = matching[0]
        self._waiting.remove(answered)
        return answered[0]

    def forget_open(self) -> None:
        """No result will come any more for the calls that are still open."""
        self._waiting.clear()


def role_of(raw: Any) -> Role:
    """The role of a message. Raises BadMessage for what is no message."""
    if not isinstance(raw, dict):
        _wrong("a message", raw)
    role = raw.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadMessage(f"a message has the unknown role {str(role)[:40]!r}")
    return ROLES[role]


def is_message(value: Any) -> bool:
    """Whether a decoded value looks like one message of a chat."""
    return (
        isinstance(value, dict)
        and value.get("role") in tuple(ROLES)
        and not value.keys().isdisjoint(("content", "tool_calls", "function_call"))
    )


def seconds_of(raw: dict[str, Any]) -> float | None:
    """When a message was recorded, under any of the names for it."""
    for field in ("timestamp", "created_at", "created"):
        if (at := seconds(raw.get(field))) is not None:
            return at
    return None


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
    inside = _detail(raw, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
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
            raw, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
        ),
        cost_usd=cost_usd,
        cost_origin="" if cost_usd is None else "recorded",
    )


def _detail(raw: dict[str, Any], groups: tuple[str, ...], field: str) -> int | None:
    for group in groups:
        if isinstance(raw.get(group), dict):
            return whole_number(raw[group].get(field))
    return None


def _reasoning(raw: dict[str, Any], blocks: list[Any]) -> str:
    thoughts = [as_text(block) for block in blocks if _type(block) in ("thinking", "reasoning")]
    return "\n".join(thoughts) or _text(raw, "reasoning_content") or _text(raw, "reasoning")


def _flags(raw: dict[str, Any]) -> Recorded | None:
    flags = (raw.get(field) for field in ("is_error", "isError", "error"))
    is_error = next((flag for flag in flags if isinstance(flag, bool)), None)
    exit_code = whole_number(raw.get("exit_code"))
    if is_error is None and exit_code is None:
        return None
    return Recorded(is_error=is_error, exit_code=exit_code)


def _type(block: Any) -> str:
    return str(block.get("type", "")) if isinstance(block, dict) else ""


def _text(raw: dict[str, Any], field: str) -> str:
    value = raw.get(field)
    return value if isinstance(value, str) else ""


def _wrong(what: str, value: Any) -> NoReturn:
    raise BadMessage(f"{what} is {type(value).__name__}, which cannot be read")
