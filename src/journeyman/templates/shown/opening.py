"""Openings: the messages a new session starts with, made from the patterns chosen for one task, in
the forms that hosts take. Each is valid where the rules are strictest: roles take turns, every call
is answered at once, no text is empty. The same choices give the same bytes, so that prompt caches
keep hitting.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Literal, get_args, overload

import msgspec
from msgspec import Struct

from journeyman.records import Pattern, Step
from journeyman.records.errors import WrongInput
from journeyman.templates.shown import wording
from journeyman.templates.shown.briefing import Briefing, briefing_text
from journeyman.templates.shown.wording import NO_OUTPUT, NO_REQUEST, call_ids, closing
from journeyman.templates.strict_json import is_deeper

MessageForm = Literal["openai", "responses", "anthropic"]
Form = Literal["openai", "responses", "anthropic", "text"]
"""`text` is for hosts that cannot be handed messages."""

JsonObject = dict[str, Any]

_CALLABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_DEEPEST = 64
"""How deep arguments may be nested: deeper, it depends on the caller's stack what can be read."""
_NOTE_PART = {"openai": "text", "responses": "input_text"}


class Example(Struct, frozen=True, kw_only=True):
    """A pattern in texts that every host takes: none is empty, none holds half characters."""

    intent: str
    calls: tuple[Step, ...]
    closing: str


def why_not_shown(pattern: Pattern) -> str:
    """Why a pattern cannot be an example; empty if it can."""
    if pattern.quarantined:
        return f"it is in quarantine ({pattern.quarantined})"
    if not pattern.steps:
        return "it has no calls"
    mended = pattern.kind == "recovery" and len(pattern.steps) > 1
    if not all(step.worked for step in pattern.steps[1 if mended else 0 :]):
        return "it shows a failed call that no other call mends"
    for step in pattern.steps:
        if not _CALLABLE.fullmatch(step.tool):
            return f"no host takes {step.tool[:80]!r} as the name of a tool"
        if _sendable_arguments(step.arguments) is None:
            return f"the arguments of {step.tool} are not a JSON object"
    return ""


def example_of(pattern: Pattern) -> Example:
    """The pattern as an example. It must be showable."""
    return Example(
        intent=_sendable(pattern.intent, NO_REQUEST),
        calls=tuple(
            Step(
                tool=step.tool,
                arguments=_sendable_arguments(step.arguments) or "{}",
                result=_sendable(step.result, NO_OUTPUT),
                worked=step.worked,
            )
            for step in pattern.steps
        ),
        closing=closing(pattern.kind, pattern.steps),
    )


def example_messages(
    form: MessageForm, examples: Iterable[Example], ids: Iterable[str]
) -> Iterator[JsonObject]:
    """Examples as messages. `ids` names the calls of all examples in their order."""
    fresh = iter(ids)
    for example in examples:
        yield said(form, "user", example.intent)
        for call in example.calls:
            yield from _called(form, call, next(fresh))
        yield said(form, "assistant", example.closing)


def said(form: MessageForm, role: str, text: str) -> JsonObject:
    kind = {"type": "message"} if form == "responses" else {}
    return {**kind, "role": role, "content": text}


def _called(form: MessageForm, call: Step, call_id: str) -> tuple[JsonObject, JsonObject]:
    """A call and its result, which in Anthropic's form the user says."""
    named = {"name": call.tool, "arguments": call.arguments}
    if form == "responses":
        answer = {"type": "function_call_output", "call_id": call_id, "output": call.result}
        return {"type": "function_call", "call_id": call_id, **named}, answer
    if form == "openai":
        asked: JsonObject = {"id": call_id, "type": "function", "function": named}
        answer = {"role": "tool", "tool_call_id": call_id, "content": call.result}
        return {"role": "assistant", "content": None, "tool_calls": [asked]}, answer
    given = json.loads(call.arguments)
    asked = {"type": "tool_use", "id": call_id, "name": call.tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": call.result}
    failed = {} if call.worked else {"is_error": True}
    return {"role": "assistant", "content": [asked]}, {
        "role": "user",
        "content": [{**answer, **failed}],
    }


def numbered_text(examples: Sequence[Example]) -> str:
    """The examples as one text, for a model and for a person."""
    return "\n\n".join(
        "\n".join([f"Example {number} of {len(examples)}", *_lines(example)])
        for number, example in enumerate(examples, 1)
    )


def call_ids_in(message: Mapping[str, Any]) -> set[str]:
    """Every id of a call that a message of any form has, asked or answered."""
    found = [message.get("tool_call_id"), message.get("call_id")]
    for field in ("tool_calls", "content"):
        parts = message.get(field)
        for part in parts if isinstance(parts, list | tuple) else ():
            if isinstance(part, Mapping):
                found += [part.get("id"), part.get("tool_use_id")]
    return {one for one in found if isinstance(one, str)}


def sendable_text(text: str) -> str:
    """The text with what some host refuses replaced: half characters and the null character."""
    return _UNSENDABLE.sub("\ufffd", text)


def _lines(example: Example) -> Iterator[str]:
    said = [("User", example.intent)]
    for call in example.calls:
        said.append(("Call", f"{call.tool} {call.arguments}"))
        said.append(("Result" if call.worked else "Result (did not work)", call.result))
    for label, text in (*said, ("Assistant", example.closing)):
        yield f"{label}: " + "\n  ".join(text.splitlines())


def _sendable(text: str, if_empty: str) -> str:
    return sendable_text(text) if text.strip() else if_empty


@lru_cache(maxsize=2_048)
def _sendable_arguments(text: str) -> str | None:
    """The arguments as short JSON text; None if they are no JSON object that hosts can read."""
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or is_deeper(value, _DEEPEST):
            return None
        # NaN can be read and must not be written: it is no JSON.
        short = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None
    return sendable_text(short)


class Choice(Struct, frozen=True, kw_only=True):
    """A chosen pattern, and why it was chosen."""

    pattern: Pattern
    reason: str
    similarity: float | None = None
    tokens: int = 0


class LeftOut(Struct, frozen=True, kw_only=True):
    """A pattern that was considered, and why it was not chosen."""

    pattern: Pattern
    reason: str
    similarity: float | None = None


class Opening(Struct, frozen=True, kw_only=True):
    """What a session on `task` starts with.

    `briefing` is told in the system's words, `choices` are shown as messages. `note` tells people
    why it is empty or what to know; no model sees it. `addendum` is the own
    text of the template `name@version` in `template`. `tokens` is an estimate for the form
    `openai`. A choice that `why_not_shown` has something against is in no form; whoever makes
    an opening leaves it out before.
    """

    task: str
    briefing: Briefing = Briefing()
    choices: tuple[Choice, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    note: str = ""
    addendum: str = ""
    template: str = ""
    tokens: int = 0
    for_small_model: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether a session starts with nothing from here."""
        return not self._shown and self.briefing.is_empty

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns that are shown."""
        return tuple(choice.pattern for choice in self._shown)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each of them was chosen."""
        return tuple(choice.reason for choice in self._shown)

    @property
    def id(self) -> str:
        """A digest of all that the model gets to see: 16 characters, none for an empty opening."""
        if self.is_empty:
            return ""
        content = msgspec.json.encode((self.system, self._examples))
        return hashlib.sha256(content).hexdigest()[:16]

    @property
    def system(self) -> str:
        """The briefing, the note on the examples, and the addendum; empty for an empty opening."""
        if self.is_empty:
            return ""
        briefing = sendable_text(briefing_text(self.briefing))
        count = len(self._shown)
        on_examples = wording.note(count, short=self.for_small_model) if count else ""
        addendum = sendable_text(self.addendum).strip()
        return "\n\n".join(filter(None, [briefing, on_examples, addendum]))

    @overload
    def messages(self, form: MessageForm = "openai") -> list[JsonObject]: ...
    @overload
    def messages(self, form: Literal["text"]) -> str: ...
    @overload
    def messages(self, form: Form) -> list[JsonObject] | str: ...

    def messages(self, form: Form = "openai") -> list[JsonObject] | str:
        """The opening on its own, ending with an assistant's message. In the form `anthropic` the
        note is not among the messages: give `system` as the parameter of that name.
        """
        if form == "text":
            return self._text()
        messages = self._example_messages(form)
        if form == "anthropic" or self.is_empty:
            return messages
        return [said(form, "system", self.system), *messages]

    def inject(
        self,
        messages: Sequence[Mapping[str, Any]],
        form: Form = "openai",
        *,
        one_system: bool = False,
    ) -> list[JsonObject]:
        """A new list with the opening in it; what was given stays as it is. The dicts in the list
        are new, what they hold is shared.

        The opening follows the leading system messages. Some hosts take only one system message:
        with `one_system` the note is added to the last leading one. Anthropic's messages come
        after the examples, and the note is for the parameter `system`. Where the opening is
        already, nothing changes.
        """
        if form == "text":
            raise WrongInput(
                'An opening in the form "text" cannot be put into messages. Use messages("text") '
                "and place the text yourself, or inject it in another form."
            )
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                raise WrongInput(
                    f"Message {index} is a {type(message).__name__}, and an opening can be put "
                    "only into a list of dicts. Turn the message into one, for instance with its "
                    "model_dump()."
                )
        given = [dict(message) for message in messages]
        seen = set[str]().union(*map(call_ids_in, given))
        examples = self._example_messages(form, taken=seen)
        if self.is_empty or (self._shown and seen.issuperset(self._call_ids())):
            return given
        if not self._shown and any(self.system in str(one.get("content")) for one in given):
            return given
        if form == "anthropic":
            if given and (role := given[0].get("role")) != "user":
                raise WrongInput(
                    "An opening was to be put before Anthropic messages, and the first has the "
                    f"role {role!r}. Such a list begins with a user's message; give system texts "
                    "apart."
                )
            return [*examples, *given]
        at = leading(given)
        front, rest = given[:at], given[at:]
        if one_system and front and (noted := _with_note(front[-1], self.system, form)):
            return [*front[:-1], noted, *examples, *rest]
        return [*front, said(form, "system", self.system), *examples, *rest]

    @property
    def _shown(self) -> tuple[Choice, ...]:
        return tuple(choice for choice in self.choices if not why_not_shown(choice.pattern))

    @property
    def _examples(self) -> tuple[Example, ...]:
        return tuple(example_of(pattern) for pattern in self.patterns)

    def _call_ids(self, taken: Set[str] = frozenset()) -> list[str]:
        return call_ids(self.id, sum(len(pattern.steps) for pattern in self.patterns), taken)

    def _example_messages(
        self, form: MessageForm, taken: Set[str] = frozenset()
    ) -> list[JsonObject]:
        known = get_args(MessageForm)
        if form not in known:
            choices = ", ".join((*known, "text"))
            raise WrongInput(f"There is no form {form!r} of an opening. Choose one of: {choices}.")
        return list(example_messages(form, self._examples, self._call_ids(taken)))

    def _text(self) -> str:
        if self.is_empty:
            return ""
        parts = (self.system, numbered_text(self._examples))
        return "\n\n".join(
            [wording.begin_mark(self.id), *filter(None, parts), wording.end_mark(self.id)]
        )


def leading(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many system messages stand in front."""
    roles = (one.get("role") if isinstance(one, Mapping) else None for one in messages)
    others = (index for index, role in enumerate(roles) if role not in ("system", "developer"))
    return next(others, len(messages))


def _with_note(message: JsonObject, text: str, form: MessageForm) -> JsonObject | None:
    """A system message that says this too, once; None if its content is not of a known shape."""
    content = message.get("content") or ""
    if isinstance(content, str):
        said = content if text in content else f"{content}\n\n{text}".lstrip()
        return {**message, "content": said} if said != content else message
    if isinstance(content, list):
        part = {"type": _NOTE_PART[form], "text": text}
        return message if part in content else {**message, "content": [*content, part]}
    return None
