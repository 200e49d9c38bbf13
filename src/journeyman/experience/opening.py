"""Openings: the messages that a new session starts with, built from the patterns selected for a
task, in the forms that hosts accept. Each form is valid under the strictest rules: roles alternate,
every call is answered at once, no text is empty. The same choices give the same bytes, so that
prompt caches keep hitting.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal, get_args, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from journeyman.learning import opening_text
from journeyman.learning.opening_text import NO_OUTPUT, NO_REQUEST, call_ids, closing_sentence
from journeyman.records import Episode, Pattern, PatternId, Step
from journeyman.records.errors import WrongInput
from journeyman.records.fact import Fact
from journeyman.records.host import begin_mark, end_mark

MessageForm = Literal["openai", "responses", "anthropic"]
Form = Literal[MessageForm, "text"]
"""`text` is for hosts that do not accept messages."""

JsonObject = dict[str, Any]

_CALLABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def episode_pattern(episode: Episode) -> Pattern:
    """Return an episode as the pattern that represents it in an opening."""
    return Pattern(
        id=PatternId(f"{episode.session}#{episode.number}"),
        intent=episode.request,
        steps=episode.steps,
        source=episode.source,
        sessions=(episode.session,),
        at=episode.at,
    )


def why_not_shown(pattern: Pattern) -> str:
    """Return why a pattern cannot be an example; empty if it can."""
    if not pattern.steps:
        return "it has no calls"
    for step in pattern.steps:
        if not _CALLABLE.fullmatch(step.tool):
            return f"no host accepts {step.tool[:80]!r} as the name of a tool"
        if _sendable_arguments(step.arguments) is None:
            return f"the arguments of {step.tool} are not a JSON object"
    return ""


def as_example(pattern: Pattern) -> Pattern:
    """Return the pattern with texts that every host accepts: none is empty or holds lone
    surrogates. `why_not_shown` must have nothing against it.
    """
    steps = (
        Step(
            tool=step.tool,
            arguments=_sendable_arguments(step.arguments) or "{}",
            result=_sendable(step.result, NO_OUTPUT),
        )
        for step in pattern.steps
    )
    return replace(pattern, intent=_sendable(pattern.intent, NO_REQUEST), steps=tuple(steps))


def example_messages(
    form: MessageForm, examples: Iterable[Pattern], ids: Iterable[str]
) -> Iterator[JsonObject]:
    """Yield examples as messages. `ids` names the calls of all examples in their order."""
    remaining_ids = iter(ids)
    for example in examples:
        yield text_message(form, "user", example.intent)
        for call in example.steps:
            yield from _call_messages(form, call, next(remaining_ids))
        yield text_message(form, "assistant", closing_sentence(example.steps))


def text_message(form: MessageForm, role: str, text: str) -> JsonObject:
    type_field = {"type": "message"} if form == "responses" else {}
    return {**type_field, "role": role, "content": text}


def _call_messages(form: MessageForm, call: Step, call_id: str) -> tuple[JsonObject, JsonObject]:
    """Return a call and its result, which has the role of the user in Anthropic's form."""
    function = {"name": call.tool, "arguments": call.arguments}
    if form == "responses":
        result = {"type": "function_call_output", "call_id": call_id, "output": call.result}
        return {"type": "function_call", "call_id": call_id, **function}, result
    if form == "openai":
        request: JsonObject = {"id": call_id, "type": "function", "function": function}
        result = {"role": "tool", "tool_call_id": call_id, "content": call.result}
        return {"role": "assistant", "content": None, "tool_calls": [request]}, result
    arguments = json.loads(call.arguments)
    request = {"type": "tool_use", "id": call_id, "name": call.tool, "input": arguments}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": call.result}
    return {"role": "assistant", "content": [request]}, {"role": "user", "content": [result]}


def numbered_text(examples: Sequence[Pattern]) -> str:
    """Return the examples as one text, for a model and for a person."""
    texts = []
    for number, example in enumerate(examples, 1):
        labelled = [("User", example.intent)]
        for call in example.steps:
            labelled.append(("Call", f"{call.tool} {call.arguments}"))
            labelled.append(("Result", call.result))
        labelled.append(("Assistant", closing_sentence(example.steps)))
        lines = (f"{label}: " + "\n  ".join(text.splitlines()) for label, text in labelled)
        texts.append("\n".join([f"Example {number} of {len(examples)}", *lines]))
    return "\n\n".join(texts)


def sendable_text(text: str) -> str:
    """Replace what some host refuses: lone surrogates and the null character."""
    return _UNSENDABLE.sub("\ufffd", text)


def _sendable(text: str, if_empty: str) -> str:
    return sendable_text(text) if text.strip() else if_empty


@lru_cache(maxsize=2_048)
def _sendable_arguments(text: str) -> str | None:
    """Return the arguments as compact JSON; None if they are not a JSON object that hosts
    can read.
    """
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            return None
        # NaN can be read but must not be written: it is not JSON.
        short = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None
    return sendable_text(short)


class Choice(Struct, frozen=True, kw_only=True):
    """A selected pattern, and why it was selected."""

    pattern: Pattern
    reason: str
    similarity: float | None = None
    tokens: int = 0


class Opening(Struct, frozen=True, kw_only=True):
    """What a session on `task` starts with.

    `preamble` is the part of the system text that tells `facts`, `choices` are shown as messages.
    `note` is for people: why the opening is empty, or what to know about it; no model sees it.
    `addendum` is the text of the template that `template` names as `name@version`. `tokens` is an
    estimate for the form `openai`. No choice may be one that `why_not_shown` rejects.
    """

    task: str
    preamble: str = ""
    facts: tuple[Fact, ...] = ()
    choices: tuple[Choice, ...] = ()
    note: str = ""
    addendum: str = ""
    template: str = ""
    tokens: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the opening adds nothing to a session."""
        return not (self.choices or self.addendum.strip() or self.preamble.strip())

    @property
    def summary(self) -> str:
        """What it holds, in a line for people."""
        counts = (len(self.facts), "fact"), (len(self.choices), "example")
        held = [f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count]
        origin = f" of {self.template}" if self.template else ""
        return f"{', '.join(held) or 'a text'}{origin}, about {self.tokens:,} tokens"

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns that are shown."""
        return tuple(choice.pattern for choice in self.choices)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each shown pattern was selected."""
        return tuple(choice.reason for choice in self.choices)

    @property
    def id(self) -> str:
        """A digest of all that the model sees: 16 characters, empty for an empty opening."""
        if self.is_empty:
            return ""
        examples = [
            {"intent": one.intent, "calls": one.steps, "closing": closing_sentence(one.steps)}
            for one in self._examples
        ]
        content = msgspec.json.encode((self.system, examples))
        return hashlib.sha256(content).hexdigest()[:16]

    @property
    def system(self) -> str:
        """The preamble, the note on the examples, and the addendum; empty for an empty opening."""
        if self.is_empty:
            return ""
        preamble = sendable_text(self.preamble)
        count = len(self.choices)
        note = opening_text.note(count, short=not self.template) if count else ""
        addendum = sendable_text(self.addendum).strip()
        return "\n\n".join(filter(None, [preamble, note, addendum]))

    @overload
    def messages(self, form: MessageForm = "openai") -> list[JsonObject]: ...
    @overload
    def messages(self, form: Literal["text"]) -> str: ...
    @overload
    def messages(self, form: Form) -> list[JsonObject] | str: ...

    def messages(self, form: Form = "openai") -> list[JsonObject] | str:
        """Return the opening on its own, ending with an assistant's message. In the form
        `anthropic` the note is not among the messages: pass `system` as the parameter of that name.
        """
        return self._text() if form == "text" else self.inject([], form)

    def inject(
        self,
        messages: Sequence[Mapping[str, Any]],
        form: Form = "openai",
        *,
        one_system: bool = False,
    ) -> list[JsonObject]:
        """Return a new list with the opening in it; `messages` is not changed. The dicts in the
        list are new, their values are shared.

        The opening follows the leading system messages. Some hosts accept only one system message:
        with `one_system` the note is appended to the text of the last leading one. In Anthropic's
        form the examples come before the messages, and the note is for the parameter `system`. A
        list that already holds the opening is returned unchanged.
        """
        if form not in get_args(Form):
            choices = ", ".join(get_args(Form))
            raise WrongInput(f"Unknown opening form {form!r}. Choose one of: {choices}.")
        if form == "text":
            raise WrongInput(
                'An opening in the form "text" cannot be put into messages. Use messages("text") '
                "and place the text yourself, or inject it in another form."
            )
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                raise WrongInput(
                    f"Cannot add an opening: message {index} is a {type(message).__name__}, not a "
                    "dict. Convert the messages to dicts, for example with model_dump()."
                )
        copies = [dict(message) for message in messages]
        if self.is_empty or self._is_in(copies):
            return copies
        examples = example_messages(form, self._examples, self._call_ids())
        if form == "anthropic":
            if copies and (role := copies[0].get("role")) != "user":
                raise WrongInput(
                    "Cannot add an opening to Anthropic messages: the first has the role "
                    f"{role!r}. Begin the list with a user message, and pass system texts "
                    "separately."
                )
            return [*examples, *copies]
        at = leading_system_count(copies)
        front, rest = copies[:at], copies[at:]
        if one_system and front and isinstance(said := front[-1].get("content"), str):
            noted = {**front[-1], "content": f"{said}\n\n{self.system}"}
            return [*front[:-1], noted, *examples, *rest]
        return [*front, text_message(form, "system", self.system), *examples, *rest]

    @property
    def _examples(self) -> tuple[Pattern, ...]:
        return tuple(map(as_example, self.patterns))

    def _call_ids(self) -> list[str]:
        return call_ids(self.id, sum(len(pattern.steps) for pattern in self.patterns))

    def _is_in(self, messages: Sequence[JsonObject]) -> bool:
        """Whether messages hold the calls of the opening, or without any, its text."""
        if ids := self._call_ids():
            text = str(messages)
            return all(id_ in text for id_ in ids)
        return any(self.system in str(message.get("content")) for message in messages)

    def _text(self) -> str:
        if self.is_empty:
            return ""
        parts = (self.system, numbered_text(self._examples))
        return "\n".join([begin_mark(self.id), "\n\n".join(filter(None, parts)), end_mark(self.id)])


def leading_system_count(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of leading system messages."""
    roles = ("system", "developer")
    return len([*takewhile(lambda message: message.get("role") in roles, messages)])
