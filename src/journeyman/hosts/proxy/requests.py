"""Requests to model APIs: what the proxy reads in them, and the places where an opening goes. A
request is never written anew: an opening is only inserted, so that every other byte stays the same.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.decoder import WHITESPACE  # type: ignore[attr-defined]
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Struct

from journeyman.logs.claude_chain import HARNESS_PREFIXES as CLAUDE_PREFIXES
from journeyman.logs.codex import HARNESS_PREFIXES as CODEX_PREFIXES
from journeyman.logs.fields import as_text, only_text
from journeyman.templates.mining.requests import is_program_text, without_reminders
from journeyman.templates.opening import MessageForm

_FORMS: dict[str, MessageForm] = {
    "/chat/completions": "openai",
    "/responses": "responses",
    "/messages": "anthropic",
}
_LISTS = {"openai": "messages", "responses": "input", "anthropic": "messages"}
"""The field of each API that has the conversation."""

_SYSTEM_ROLES = ("system", "developer")
_ON_SERVER = ("previous_response_id", "conversation")
"""Fields of the Responses API by which a request continues a conversation that the server keeps,
with the opening in it."""

_NOT_SPOKEN = (*CLAUDE_PREFIXES, *CODEX_PREFIXES)
_FOLDER = re.compile(
    r"(?:<cwd>|(?:working|current) directory(?: is)?\s*[:(=]?|workspace root folder:)"
    r"[ \t]*[`\"']?(/[^\n<>`\"')]*)",
    re.IGNORECASE,
)
_SEARCHED_CHARACTERS = 200_000

_decode = json.JSONDecoder().raw_decode


class _Value(NamedTuple):
    """A value in the text of a request, and where it stands."""

    start: int
    end: int
    content: Any


class Injection(Struct, frozen=True, kw_only=True):
    """An opening as JSON text, ready to be inserted: the same for every request of a session."""

    id: str
    system: str
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, id_: str, system: str, messages: Iterable[Mapping[str, Any]]) -> Self:
        return cls(id=id_, system=system, examples=tuple(map(_encoded, messages)))


class ModelRequest:
    """A request for an answer of a model, in one of the three APIs."""

    def __init__(
        self, form: MessageForm, text: str, fields: dict[str, _Value], items: list[_Value]
    ) -> None:
        self.form = form
        self._text = text
        self._fields = fields
        self._items = items
        self.system, self.messages = self._conversation()

    @classmethod
    def read(cls, form: MessageForm, body: bytes) -> Self | None:
        """Read a body; return None if it is not a request of this API."""
        try:
            text = body.decode()
            fields, items = _scan(text, _LISTS[form])
        except (ValueError, RecursionError):
            return None
        conversation = fields.get(_LISTS[form])
        is_text = form == "responses" and conversation and isinstance(conversation.content, str)
        if not (items or is_text) or not all(isinstance(item.content, dict) for item in items):
            return None
        return cls(form, text, fields, items)

    @property
    def takes_opening(self) -> bool:
        """Whether an opening can be part of the request: it has tools, and its whole conversation,
        which must begin with the user in Anthropic's API.
        """
        if any(self._value(name) for name in _ON_SERVER) or not self.tools:
            return False
        return self.form != "anthropic" or self.messages[0].get("role") == "user"

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The definitions of the tools; empty if the request has none."""
        tools = self._value("tools")
        return [one for one in tools if isinstance(one, dict)] if isinstance(tools, list) else []

    @property
    def model(self) -> str:
        return only_text(self._value("model"))

    @property
    def is_fresh(self) -> bool:
        """Whether the model has not answered in this conversation yet."""
        return not any(message.get("role") == "assistant" for message in self.messages)

    @property
    def task(self) -> str:
        """What the user asked for, first of all."""
        said = (spoken(message) for message in self.messages if message.get("role") == "user")
        return next(filter(None, said), "")

    @property
    def folder(self) -> str:
        """The folder that the agent works in, if the request says so; empty otherwise."""
        begun = [self.system]
        for message in self.messages:
            if message.get("role") == "assistant":
                break
            begun.append(as_text(message.get("content")))
        text = "\n".join(begun)[:_SEARCHED_CHARACTERS]
        found = (match[1].rstrip(" .,\t/") for match in _FOLDER.finditer(text))
        return next(filter(os.path.isdir, found), "")

    def contains(self, injection: Injection) -> bool:
        """Whether a plugin or a hook has added the opening already."""
        system = (json.dumps(injection.system)[1:-1], _encoded(injection.system)[1:-1])
        return injection.id in self._text or any(text in self._text for text in system)

    def with_opening(self, injection: Injection) -> bytes:
        """Return the request with the opening in it."""
        pieces, at = [], 0
        for position, added in self.insertions(injection):
            pieces += [self._text[at:position], added]
            at = position
        return "".join([*pieces, self._text[at:]]).encode()

    def insertions(self, injection: Injection) -> list[tuple[int, str]]:
        """Return what to insert for an opening, and before which character, in order."""
        add = {
            "openai": self._add_to_chat,
            "responses": self._add_to_responses,
            "anthropic": self._add_to_anthropic,
        }[self.form]
        return sorted(add(injection), key=lambda insertion: insertion[0])

    def _add_to_chat(self, injection: Injection) -> Iterator[tuple[int, str]]:
        """The system text joins the agent's own, because many servers accept a system message only
        at the beginning; the examples follow.
        """
        count = self._leading_system_count()
        examples = injection.examples
        last = self._items[count - 1] if count else None
        content = _members(self._text, last.start)[0].get("content") if last else None
        if content is not None and isinstance(content.content, str | list):
            yield self._appended(content, injection.system)
        else:
            examples = (_encoded({"role": "system", "content": injection.system}), *examples)
        yield self._before_item(count, examples)

    def _add_to_responses(self, injection: Injection) -> Iterator[tuple[int, str]]:
        """A message of the developer follows those of the agent. The role is that of the agent's
        own, else `developer`, because some servers refuse `system`.
        """
        count = self._leading_system_count()
        role = self._items[count - 1].content["role"] if count else "developer"
        system = {"type": "message", "role": role, "content": injection.system}
        added = (_encoded(system), *injection.examples)
        whole = self._fields["input"]
        if isinstance(whole.content, str):
            yield whole.start, f'[{",".join(added)},{{"type":"message","role":"user","content":'
            yield whole.end, "}]"
        else:
            yield self._before_item(count, added)

    def _add_to_anthropic(self, injection: Injection) -> Iterator[tuple[int, str]]:
        """The system text goes behind the agent's own blocks: the cache covers tools, then system,
        then messages, so what the agent has marked for the cache before stays what it was.
        """
        yield self._before_item(0, injection.examples)
        system = self._fields.get("system")
        if system is None:
            yield self._text.rindex("}"), f',"system":{_encoded(injection.system)}'
        elif isinstance(system.content, str | list):
            yield self._appended(system, injection.system)

    def _appended(self, value: _Value, text: str) -> tuple[int, str]:
        """Return the insertion of more text at the end of a text, or of a list of text blocks."""
        if isinstance(value.content, str):
            separator = "\n\n" if value.content else ""
            return value.end - 1, _encoded(separator + text)[1:-1]
        block = _encoded({"type": "text", "text": text})
        return value.end - 1, f",{block}" if value.content else block

    def _before_item(self, index: int, added: Sequence[str]) -> tuple[int, str]:
        joined = ",".join(added)
        if index < len(self._items):
            return self._items[index].start, f"{joined}," if joined else ""
        return self._items[-1].end, f",{joined}" if joined else ""

    def _leading_system_count(self) -> int:
        roles = (item.content.get("role") for item in self._items)
        others = (index for index, role in enumerate(roles) if role not in _SYSTEM_ROLES)
        return next(others, len(self._items))

    def _value(self, name: str) -> Any:
        return self._fields[name].content if name in self._fields else None

    def _conversation(self) -> tuple[str, list[dict[str, Any]]]:
        """Return the agent's system text, and its conversation as messages of a chat."""
        items = [item.content for item in self._items]
        if self.form == "anthropic":
            return as_text(self._value("system")), items
        count = self._leading_system_count()
        system = [as_text(item.get("content")) for item in items[:count]]
        if self.form == "openai":
            return "\n\n".join(system), items[count:]
        system = [only_text(self._value("instructions")), *system]
        if isinstance(whole := self._value("input"), str):
            items = [{"role": "user", "content": whole}]
        return "\n\n".join(filter(None, system)), chat_messages(items[count:])


def form_of(method: str, path: str) -> MessageForm | None:
    """Return the API that a path belongs to, if the proxy reads it."""
    if method != "POST":
        return None
    path = path.rstrip("/")
    return next((form for end, form in _FORMS.items() if path.endswith(end)), None)


def spoken(message: Mapping[str, Any]) -> str:
    """Return what a person said in a message, without what their agent added to it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(filter(None, map(spoken_text, filter(None, map(only_text, texts)))))


def spoken_text(text: str) -> str:
    """Return a text without what an agent added to it; empty if a person wrote nothing of it."""
    text = without_reminders(text).strip()
    return "" if text.startswith(_NOT_SPOKEN) or is_program_text(text) else text


def chat_messages(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return items of the Responses API as messages of a chat. Items of one answer are one message;
    encrypted reasoning and what a server did by itself are left out.
    """
    messages: list[dict[str, Any]] = []
    answer: dict[str, Any] | None = None
    for item in items:
        kind = only_text(item.get("type")) or "message"
        is_answer = kind.endswith("_call") or kind == "reasoning" or item.get("role") == "assistant"
        if not is_answer:
            answer = None
            messages += _not_answered(kind, item)
            continue
        if answer is None:
            answer = {"role": "assistant", "content": ""}
            messages.append(answer)
        if kind == "reasoning":
            thought = as_text(item.get("summary")) or as_text(item.get("content"))
            answer["reasoning"] = "\n".join(filter(None, [answer.get("reasoning"), thought]))
        elif kind == "message":
            said = as_text(item.get("content"))
            answer["content"] = "\n".join(filter(None, [answer["content"], said]))
        elif call := _chat_call(kind, item):
            answer.setdefault("tool_calls", []).append(call)
    return [message for message in messages if message != {"role": "assistant", "content": ""}]


def _not_answered(kind: str, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if kind == "message":
        yield {"role": item.get("role"), "content": item.get("content")}
    elif kind.endswith("_call_output"):
        call_id = item.get("call_id") or item.get("id")
        yield {"role": "tool", "tool_call_id": call_id, "content": item.get("output")}


def _chat_call(kind: str, item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a call in the form of a chat; None if the server made it, and not the agent."""
    arguments = item.get("arguments", item.get("input", item.get("action")))
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or arguments is None:
        return None
    name = item.get("name") or kind.removesuffix("_call")
    return {"id": call_id, "function": {"name": name, "arguments": arguments}}


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _scan(text: str, listed: str) -> tuple[dict[str, _Value], list[_Value]]:
    """Return the fields of the object that a text is, and the elements of one of its lists."""
    items: list[_Value] = []
    fields, end = _members(text, _after_space(text, 0), listed, items)
    if _after_space(text, end) != len(text):
        raise ValueError("more than an object")
    return fields, items


def _members(
    text: str, at: int, listed: str = "", items: list[_Value] | None = None
) -> tuple[dict[str, _Value], int]:
    """Return the members of the object at a place, of equal keys the last, as decoders do; and
    where it ends. `items` gets the elements of the list under the key `listed`.
    """
    if text[at : at + 1] != "{":
        raise ValueError("not an object")
    members: dict[str, _Value] = {}
    at = _after_space(text, at + 1)
    while text[at : at + 1] != "}":
        key, end = _decode(text, at)
        at = _after_space(text, end)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError("not an object")
        at = _after_space(text, at + 1)
        if items is not None and key == listed and text[at : at + 1] == "[":
            items[:], end = _elements(text, at)
            content: Any = [item.content for item in items]
        else:
            content, end = _decode(text, at)
        members[key] = _Value(at, end, content)
        at = _after_separator(text, end)
    return members, at + 1


def _elements(text: str, at: int) -> tuple[list[_Value], int]:
    """Return the elements of the list at a place, and where it ends."""
    elements: list[_Value] = []
    at = _after_space(text, at + 1)
    while text[at : at + 1] != "]":
        content, end = _decode(text, at)
        elements.append(_Value(at, end, content))
        at = _after_separator(text, end)
    return elements, at + 1


def _after_space(text: str, at: int) -> int:
    return int(WHITESPACE.match(text, at).end())


def _after_separator(text: str, at: int) -> int:
    """Return the place of the next element, or of the bracket that ends the list."""
    at = _after_space(text, at)
    if text[at : at + 1] == ",":
        return _after_space(text, at + 1)
    if text[at : at + 1] not in ("]", "}"):
        raise ValueError("a list or an object does not end")
    return at
