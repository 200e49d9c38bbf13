"""Openings: the messages a new session starts with, made from the patterns chosen for one task.
Which patterns fit is decided before; how a host takes them is in `forms`. The same choices give
the same bytes, so that prompt caches keep hitting.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Literal, overload

import msgspec
from msgspec import Struct

from journeyman.records import Pattern
from journeyman.records.errors import WrongInput
from journeyman.templates.shown import forms, opening_wording
from journeyman.templates.shown.briefing import Briefing, briefing_text
from journeyman.templates.shown.call_ids import call_ids
from journeyman.templates.shown.forms import Example, Form, JsonObject

__all__ = ["Choice", "Form", "LeftOut", "Opening"]

MessageForm = Literal["openai", "responses", "anthropic"]

_MESSAGES: dict[MessageForm, Callable[[Sequence[Example], Sequence[str]], list[JsonObject]]] = {
    "openai": forms.openai_messages,
    "responses": forms.responses_items,
    "anthropic": forms.anthropic_messages,
}
_NOTE_PART = {"openai": "text", "responses": "input_text"}


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
    `openai`. A choice that `forms.why_not_shown` has something against is in no form; whoever makes
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
        briefing = forms.sendable_text(briefing_text(self.briefing))
        on_examples = self._note if self._shown else ""
        addendum = forms.sendable_text(self.addendum).strip()
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
        return [_note_message(self.system, form), *messages]

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
        given = [_as_dict(message, index) for index, message in enumerate(messages)]
        seen = {call_id for message in given for call_id in forms.call_ids_in(message)}
        examples = self._example_messages(form, taken=seen)
        if self.is_empty or (self._shown and seen.issuperset(self._call_ids())):
            return given
        if not self._shown and any(self.system in str(one.get("content")) for one in given):
            return given
        if form == "anthropic":
            _check_first(given)
            return [*examples, *given]
        front, rest = given[: leading(given)], given[leading(given) :]
        if one_system and front and (noted := _with_note(front[-1], self.system, form)):
            return [*front[:-1], noted, *examples, *rest]
        return [*front, _note_message(self.system, form), *examples, *rest]

    @property
    def _note(self) -> str:
        return opening_wording.note(len(self._shown), short=self.for_small_model)

    @property
    def _shown(self) -> tuple[Choice, ...]:
        return tuple(choice for choice in self.choices if not forms.why_not_shown(choice.pattern))

    @property
    def _examples(self) -> tuple[Example, ...]:
        return tuple(forms.example_of(pattern) for pattern in self.patterns)

    def _call_ids(self, taken: Set[str] = frozenset()) -> list[str]:
        return call_ids(self.id, sum(len(pattern.steps) for pattern in self.patterns), taken)

    def _example_messages(
        self, form: MessageForm, taken: Set[str] = frozenset()
    ) -> list[JsonObject]:
        if form not in _MESSAGES:
            known = ", ".join((*_MESSAGES, "text"))
            raise WrongInput(f"There is no form {form!r} of an opening. Choose one of: {known}.")
        return _MESSAGES[form](self._examples, self._call_ids(taken))

    def _text(self) -> str:
        if self.is_empty:
            return ""
        parts = [self.system, forms.numbered_text(self._examples)]
        return "\n\n".join(
            [
                opening_wording.begin_mark(self.id),
                *filter(None, parts),
                opening_wording.end_mark(self.id),
            ]
        )


def _as_dict(message: Mapping[str, Any], index: int) -> JsonObject:
    if not isinstance(message, Mapping):
        raise WrongInput(
            f"Message {index} is a {type(message).__name__}, and an opening can be put only into "
            "a list of dicts. Turn the message into one, for instance with its model_dump()."
        )
    return dict(message)


def leading(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many system messages stand in front."""
    roles = (one.get("role") if isinstance(one, Mapping) else None for one in messages)
    others = (index for index, role in enumerate(roles) if role not in ("system", "developer"))
    return next(others, len(messages))


def _note_message(text: str, form: MessageForm) -> JsonObject:
    kind = {"type": "message"} if form == "responses" else {}
    return {**kind, "role": "system", "content": text}


def _with_note(message: JsonObject, text: str, form: MessageForm) -> JsonObject | None:
    """A system message that says this too, once; None if its content is not of a known shape."""
    content = message.get("content") or ""
    if isinstance(content, str):
        said = text in content
        return message if said else {**message, "content": f"{content}\n\n{text}".lstrip()}
    if isinstance(content, list):
        part = {"type": _NOTE_PART[form], "text": text}
        return message if part in content else {**message, "content": [*content, part]}
    return None


def _check_first(messages: Sequence[JsonObject]) -> None:
    role = messages[0].get("role") if messages else "user"
    if role != "user":
        raise WrongInput(
            f"An opening was to be put before Anthropic messages, and the first has the role "
            f"{role!r}. Such a list begins with a user's message; give system texts apart."
        )
