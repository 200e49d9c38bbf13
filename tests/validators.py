"""The requirements of hosts for messages passed to them, as checks. Each returns the faults found,
by the strictest rule known of any host: Mistral's ids, system messages only at the start,
Anthropic's alternation of turns. Hosts that accept only one system message are checked separately.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9]{9}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BEGIN = re.compile(r"\[Journeyman ([0-9a-f]{16}):\]")
_END = re.compile(r"\[end of ([0-9a-f]{16})\]")

Faults = list[str]

_MAY_FOLLOW = {
    "start": ("system", "developer", "user"),
    "system": ("system", "developer", "user"),
    "developer": ("system", "developer", "user"),
    "user": ("assistant", "assistant calls"),
    "assistant": ("user",),
    "assistant calls": (),
    "tool": ("assistant", "assistant calls"),
}


def openai_faults(messages: Sequence[dict[str, Any]]) -> Faults:
    """Messages of the Chat Completions API."""
    turns = _Turns()
    for index, message in enumerate(messages):
        role, content, calls = (message.get(field) for field in ("role", "content", "tool_calls"))
        turns.at(index)
        if role == "tool":
            turns.answer(message.get("tool_call_id"), content)
        elif role == "assistant" and calls:
            turns.say("assistant calls", "" if content is None else content, may_be_empty=True)
            for call in calls:
                turns.call(call.get("id"), call.get("function", {}))
                turns.fault_if(call.get("type") != "function", "a call of another type")
        elif role in ("system", "developer", "user", "assistant"):
            turns.say(role, content)
            turns.fault_if("tool_calls" in message, "an empty list of calls")
        else:
            turns.fault_if(True, f"the unknown role {role!r}")
    return [*turns.finished(), *_unsendable(messages)]


def responses_faults(items: Sequence[dict[str, Any]]) -> Faults:
    """Items of the Responses API."""
    turns = _Turns()
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        turns.at(index)
        if kind == "function_call_output":
            turns.answer(item.get("call_id"), item.get("output"))
        elif kind == "function_call":
            if index == 0 or items[index - 1].get("type") != "function_call":
                turns.say("assistant calls", "", may_be_empty=True)
            turns.call(item.get("call_id"), item)
            turns.fault_if("id" in item, "an id that the host has not given out")
        elif kind == "message" and item.get("role") in ("system", "developer", "user", "assistant"):
            turns.say(item["role"], item.get("content"))
        else:
            turns.fault_if(True, f"the unknown item {kind!r} {item.get('role')!r}")
    return [*turns.finished(), *_unsendable(items)]


def anthropic_faults(messages: Sequence[dict[str, Any]]) -> Faults:
    """Messages of Anthropic's API."""
    faults: Faults = []
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role != ("user", "assistant")[index % 2]:
            faults.append(f"{index}: {role!r} is not whose turn it is")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list) or not blocks:
            faults.append(f"{index}: no content")
            continue
        faults += [f"{index}: {fault}" for block in blocks for fault in _block_faults(block, role)]
        results = [b.get("tool_use_id") for b in blocks if b["type"] == "tool_result"]
        if [b["type"] for b in blocks[: len(results)]] != ["tool_result"] * len(results):
            faults.append(f"{index}: results are not first")
        if sorted(map(str, results)) != sorted(waiting):
            faults.append(f"{index}: waiting for results of {waiting}, got {results}")
        waiting = [str(b.get("id")) for b in blocks if b["type"] == "tool_use"]
        for call_id in waiting:
            if call_id in seen:
                faults.append(f"{index}: the id {call_id} is there twice")
            seen.add(call_id)
    if waiting:
        faults.append(f"end: no results of {waiting}")
    return [*faults, *_unsendable(messages)]


def text_faults(text: str) -> Faults:
    """The text form: matching marks around it, and as many examples as announced."""
    if not text:
        return []
    lines = text.split("\n")
    begin, end = _BEGIN.fullmatch(lines[0]), _END.fullmatch(lines[-1])
    faults: Faults = []
    if not begin or not end or begin[1] != end[1]:
        faults.append("no marks that belong together in the first line and the last")
    elif any(line in (lines[0], lines[-1]) for line in lines[1:-1]):
        faults.append("a mark inside")
    announced = re.search(r"^Journeyman shows (\d+) examples? ", text, re.M)
    count = int(announced[1]) if announced else 0
    numbered = [line for line in lines if re.fullmatch(r"Example \d+ of \d+", line)]
    if numbered != [f"Example {number} of {count}" for number in range(1, count + 1)]:
        faults.append(f"{count} examples announced, and there are {numbered}")
    return [*faults, *_unsendable(text)]


class _Turns:
    """Whose turn it is, in formats with separate messages for tools."""

    def __init__(self) -> None:
        self._faults: Faults = []
        self._last = "start"
        self._seen: set[str] = set()
        self._waiting: list[str] = []
        self._index = 0

    def at(self, index: int) -> None:
        self._index = index

    def fault_if(self, wrong: bool, what: str) -> None:
        if wrong:
            self._faults.append(f"{self._index}: {what}")

    def say(self, who: str, content: Any, *, may_be_empty: bool = False) -> None:
        self.fault_if(bool(self._waiting), f"no results of {self._waiting}")
        self._waiting = []
        self.fault_if(who not in _MAY_FOLLOW[self._last], f"{who} follows {self._last}")
        self.fault_if(not may_be_empty and _is_empty(content), "no content")
        self._last = who

    def call(self, call_id: Any, function: dict[str, Any]) -> None:
        self.fault_if(not _ID.fullmatch(str(call_id)), f"the id {call_id!r}")
        self.fault_if(call_id in self._seen, f"the id {call_id} is there twice")
        self.fault_if(not _NAME.fullmatch(str(function.get("name"))), "the name of a tool")
        self.fault_if(not _holds_object(function.get("arguments")), "arguments are no JSON object")
        self._seen.add(call_id)
        self._waiting.append(call_id)

    def answer(self, call_id: Any, content: Any) -> None:
        self.fault_if(call_id not in self._waiting, f"a result of {call_id!r}, not asked just now")
        self.fault_if(_is_empty(content), "an empty result")
        self._waiting = [one for one in self._waiting if one != call_id]
        self._last = "tool"

    def finished(self) -> Faults:
        if self._waiting:
            self._faults.append(f"end: no results of {self._waiting}")
        return self._faults


def _block_faults(block: dict[str, Any], role: Any) -> Iterator[str]:
    kind = block["type"]
    if kind == "text":
        if _is_empty(block.get("text")):
            yield "an empty text"
    elif kind == "tool_use":
        if role != "assistant":
            yield "a call that no assistant asks for"
        if not _ID.fullmatch(str(block.get("id"))):
            yield f"the id {block.get('id')!r}"
        if not _NAME.fullmatch(str(block.get("name"))):
            yield "the name of a tool"
        if not isinstance(block.get("input"), dict):
            yield "arguments are no object"
    elif kind == "tool_result":
        if role != "user":
            yield "a result that no user gives"
        if _is_empty(block.get("content")):
            yield "an empty result"
    else:
        yield f"a block of the unknown type {kind!r}"


def _is_empty(content: Any) -> bool:
    if isinstance(content, list):
        return not content or any(_is_empty(part.get("text")) for part in content)
    return not isinstance(content, str) or not content.strip()


def _holds_object(text: Any) -> bool:
    """Whether JSON text holds an object, without lone surrogates hidden in escapes."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        return False
    return isinstance(value, dict)


def _unsendable(value: Any) -> Iterator[str]:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        yield f"not to be sent as JSON: {error}"
