"""Context compression: when a conversation has grown too long for the model's window, it goes on in
a new session that begins with a summary of the old one.

The new session keeps the system prompt and the opening as they are, so that the provider's cache
and the examples stay. What was done is told twice: in the model's own words, and as a list made
from the calls themselves, because summaries by models lose the trail of what was touched. Nothing
is copied as a message, so no call counts twice.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from journeyman.agent.conversation import Conversation
from journeyman.models.model import JsonObject, Model, Reply
from journeyman.outcomes.judge import judge
from journeyman.records import Call, Lineage, Message, SessionId, join_calls
from journeyman.records.errors import ContextFull, ModelUnavailable

FULL = 0.75
"""Compress when this much of the window is used."""

ROOM_TOKENS = 256
"""What a reply needs at least."""

_CHARACTERS_PER_TOKEN = 3.0
"""A careful guess, for what no model has counted yet."""

_SUMMARY_TOKENS = 600
_LAST_CALLS = 4
_SHARE = 0.25
"""How much of the window a summary may take."""
_LONGEST = 40_000

INSTRUCTION = (
    "The conversation has become too long. Summarise it for yourself, so that you can go on "
    "without it: what the user wants, what is done, which facts and file names matter, what is "
    "left to do. Do not call tools. Answer with the summary only."
)
_HAPPENED = "What happened so far:"
_DONE = "What was done:"
_RESULTS = "The last results:"
_REQUEST = "What the user asked for:"
_HEADINGS = (_HAPPENED, _DONE, _RESULTS, _REQUEST)
BEGIN = "[CONTEXT SUMMARY]: Earlier messages of this conversation were summarised to save space."


def is_due(conversation: Conversation, prompt_tokens: int | None, window: int | None) -> bool:
    """Whether the next request would be too large. `prompt_tokens` is what the last one and its
    reply took, None where the model did not say.
    """
    if window is None or conversation.is_short:
        return False
    used = estimated_tokens(conversation.messages)
    if prompt_tokens is not None:
        used = prompt_tokens + estimated_tokens(_after_reply(conversation.messages))
    return used > min(FULL * window, window - ROOM_TOKENS)


def estimated_tokens(messages: Sequence[Message]) -> int:
    """A guess from the length of the texts."""
    calls = sum(len(call.arguments) for one in messages for call in one.tool_calls)
    characters = calls + sum(len(one.text) + 20 for one in messages)
    return int(characters / _CHARACTERS_PER_TOKEN)


def _after_reply(messages: Sequence[Message]) -> Sequence[Message]:
    heard = [place for place, one in enumerate(messages) if one.role == "assistant"]
    return messages[heard[-1] + 1 :] if heard else messages


def ask_summary(
    conversation: Conversation,
    model: Model,
    tools: Sequence[JsonObject],
    cancelled: Callable[[], bool],
) -> Reply | None:
    """The model's own summary, asked for at the end of the same messages so that its cache serves
    them; None when it cannot be had, which is no reason to give up.
    """
    asked = [*conversation.chat, {"role": "user", "content": INSTRUCTION}]
    try:
        return model.ask(asked, tools, max_tokens=_SUMMARY_TOKENS, cancelled=cancelled)
    except (ContextFull, ModelUnavailable):
        return None


def continued(
    conversation: Conversation, summary: str, new_id: SessionId, at: float, window: int | None
) -> Conversation:
    """The conversation that goes on after this one."""
    parent = conversation.session
    session = msgspec.structs.replace(
        parent,
        id=new_id,
        lineage=Lineage(parent=parent.id, kind="compression"),
        started_at=at,
        ended_at=None,
        end_reason="running",
    )
    lead = conversation.messages[: conversation.lead]
    child = Conversation(session, lead, lead=len(lead))
    room = _LONGEST if window is None else int(window * _SHARE * _CHARACTERS_PER_TOKEN)
    child.add(child.said("user", _told(conversation, summary.strip(), room), at, kind="summary"))
    return child


def _told(conversation: Conversation, summary: str, room: int) -> str:
    """The old conversation in about `room` characters. What an earlier summary told is told on:
    the trail of what was done, and what was asked for first.
    """
    told = conversation.messages[conversation.lead :]
    before = _Parts.read(next((one.text for one in told if one.kind == "summary"), ""))
    asked = [one.text for one in told if one.role == "user" and one.kind == "plain"]
    calls = [call for call in join_calls(told) if call.asked_by == "assistant"]
    requests = [*before.requests, *asked]
    parts = _Parts(
        happened=_cut(summary or before.happened, room // 4),
        done=_last_lines([*before.done, *map(_line, calls)], room // 4),
        results=[_result(call) for call in calls[-_LAST_CALLS:]],
        # The first says what all is about, the last what to do now.
        requests=[_cut(one, room // 4) for one in dict.fromkeys([*requests[:1], *requests[-1:]])],
    )
    return parts.text


class _Parts(Struct, frozen=True, kw_only=True):
    """The parts of a summary, each under its heading."""

    happened: str = ""
    done: list[str] = []
    results: list[str] = []
    requests: list[str] = []

    @property
    def text(self) -> str:
        parts = [
            BEGIN,
            *([f"{_HAPPENED}\n{self.happened}"] if self.happened else []),
            *(["\n".join([_DONE, *self.done])] if self.done else []),
            *(["\n".join([_RESULTS, *self.results])] if self.results else []),
            *(f"{_REQUEST}\n{request}" for request in self.requests),
        ]
        return "\n\n".join(parts)

    @classmethod
    def read(cls, text: str) -> "_Parts":
        """The parts of a summary that was written before; nothing of any other text."""
        if not text.startswith(BEGIN):
            return cls()
        found: dict[str, list[str]] = {}
        heading = ""
        for line in text.splitlines():
            if line in _HEADINGS:
                heading = line if line != _REQUEST else f"{_REQUEST}{len(found)}"
            elif heading:
                found.setdefault(heading, []).append(line)
        requests = [lines for name, lines in found.items() if name.startswith(_REQUEST)]
        return cls(
            happened="\n".join(found.get(_HAPPENED, ())).strip(),
            done=[line for line in found.get(_DONE, ()) if line.strip()],
            requests=["\n".join(lines).strip() for lines in requests],
        )


def _line(call: Call) -> str:
    """A call in one line: tool, arguments, what became of it."""
    return f"- {call.tool} {_cut(call.arguments, 120)}: {judge(call).status}"


def _result(call: Call) -> str:
    return f"- {call.tool} {_cut(call.arguments, 200)} gave {_cut(call.result or 'nothing', 400)}"


def _last_lines(lines: Sequence[str], room: int) -> list[str]:
    """As many of the last lines as there is room for, and how many are left out."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    left = len(lines) - len(kept)
    return [f"({left} earlier calls)", *kept] if left else kept


def _cut(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: max(limit - 1, 0)] + "…"
