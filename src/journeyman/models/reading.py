"""A reply read from what an OpenAI-compatible server sends: events of a stream, or one whole
answer, which is read as a stream of one event. How the events are had, and what is done about an
answer that is none, is left to others.
"""

from collections.abc import Collection, Mapping
from typing import Any

from journeyman.models.call_pieces import CallPieces
from journeyman.models.model import JsonObject, Reply
from journeyman.models.reported_usage import read_tokens

_CALLS_IN_OTHER_WORDS = frozenset({"stop", "function_call", "tool_use"})
"""What servers say at the end of a reply with tool calls, apart from `tool_calls`."""


class NotAReply(Exception):
    """What came cannot be a reply of a chat model. Its text says why, for a person."""


class ReplyReader:
    """One reply as it comes. `is_complete` once the server has said why it ended."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = CallPieces()
        self._finish_reason = ""
        self._model = ""
        self._usage: object = None
        self._timings: object = None
        self._has_choice = False

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_reason)

    def take(self, event: object) -> str:
        """Add an event; the text it brings."""
        if not isinstance(event, Mapping):
            return ""
        if isinstance(model := event.get("model"), str):
            self._model = self._model or model
        choice = _first_choice(event.get("choices"))
        self._take_usage(event, choice)
        if choice is None:
            return ""
        self._has_choice = True
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish_reason = reason
        said = choice.get("delta")
        if not isinstance(said, Mapping):
            said = choice.get("message")
        return self._take_said(said) if isinstance(said, Mapping) else ""

    def _take_said(self, said: Mapping[str, Any]) -> str:
        text, thoughts = _content(said.get("content"))
        if isinstance(refusal := said.get("refusal"), str):
            text += refusal
        for key in ("reasoning_content", "reasoning"):
            if isinstance(reasoning := said.get(key), str) and reasoning:
                thoughts += reasoning
                break  # servers that use both names say the same under each
        if (pieces := said.get("tool_calls")) is not None:
            self._calls.take(pieces)
        self._text.append(text)
        self._reasoning.append(thoughts)
        return text

    def _take_usage(self, event: Mapping[str, Any], choice: Mapping[str, Any] | None) -> None:
        """The last count wins: some servers count as they go."""
        groq = event.get("x_groq")
        for place in (choice, groq, event):  # Moonshot, Groq, and where it belongs
            if isinstance(place, Mapping) and isinstance(place.get("usage"), Mapping):
                self._usage = place["usage"]
        if isinstance(timings := event.get("timings"), Mapping):
            self._timings = timings

    def reply(self, used_ids: Collection[str]) -> Reply:
        """The whole reply. Raises NotAReply when what came is none, or not all of it."""
        if not self._has_choice:
            raise NotAReply("the answer has no choices")
        if not self.is_complete:
            raise NotAReply("the answer broke off before its end")
        calls = self._calls.calls(used_ids)
        if any(not call.name for call in calls):
            raise NotAReply("the answer has a tool call without a name")
        reason = self._finish_reason
        return Reply(
            text="".join(self._text),
            tool_calls=calls,
            reasoning="".join(self._reasoning),
            finish_reason="tool_calls" if calls and reason in _CALLS_IN_OTHER_WORDS else reason,
            model=self._model,
            tokens=read_tokens(self._usage, self._timings),
        )


def used_call_ids(messages: Collection[JsonObject]) -> frozenset[str]:
    """The ids of all tool calls in a conversation."""
    used = set()
    for message in messages:
        used.add(message.get("tool_call_id"))
        for call in message.get("tool_calls") or ():
            used.add(call.get("id"))
    return frozenset(one for one in used if isinstance(one, str) and one)


def _first_choice(choices: object) -> Mapping[str, Any] | None:
    """The one choice that was asked for; a server may send more."""
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and choice.get("index") in (0, None):
            return choice
    return None


def _content(content: object) -> tuple[str, str]:
    """The text of a message and the thoughts in it: plain, or in parts with their types."""
    if isinstance(content, str):
        return content, ""
    text, thoughts = "", ""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, Mapping):
            continue
        if isinstance(said := part.get("text"), str):
            text += said
        if isinstance(thought := part.get("thinking"), str | list):
            thoughts += "".join(_content(thought))
    return text, thoughts
