"""Context compression: a conversation that is too long for the model's window goes on in a new
session with the same system prompt and opening, and a summary of the old one: in the model's own
words, and as a list made from the calls, whose trail summaries by models lose.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from journeyman.agent.conversation import Conversation
from journeyman.models.model import JsonObject, Model, Reply
from journeyman.outcomes.judge import judge
from journeyman.records import Lineage, Message, SessionId, join_calls
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
    """Whether the next request would be too large; `prompt_tokens` is what the last one took."""
    if window is None or conversation.is_short:
        return False
    used = estimated_tokens(conversation.messages)
    if prompt_tokens is not None:
        after = takewhile(lambda one: one.role != "assistant", reversed(conversation.messages))
        used = prompt_tokens + estimated_tokens([*after])
    return used > min(FULL * window, window - ROOM_TOKENS)


def estimated_tokens(messages: Sequence[Message]) -> int:
    """A guess from the length of the texts."""
    calls = sum(len(call.arguments) for one in messages for call in one.tool_calls)
    characters = calls + sum(len(one.text) + 20 for one in messages)
    return int(characters / _CHARACTERS_PER_TOKEN)


def ask_summary(
    conversation: Conversation,
    model: Model,
    tools: Sequence[JsonObject],
    cancelled: Callable[[], bool],
) -> Reply | None:
    """The model's own summary, from the same messages, which are cached; None if none is had."""
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
        details={"first_session": parent.id, **parent.details},
    )
    lead = conversation.messages[: conversation.lead]
    child = Conversation(session, lead, lead=len(lead))
    room = _LONGEST if window is None else int(window * _SHARE * _CHARACTERS_PER_TOKEN)
    child.add(child.said("user", _told(conversation, summary.strip(), room), at, kind="summary"))
    return child


def _told(conversation: Conversation, summary: str, room: int) -> str:
    """The old conversation in about `room` characters, with what an earlier summary told."""
    told = conversation.messages[conversation.lead :]
    before = _sections(next((one.text for one in told if one.kind == "summary"), ""))
    asked = [one.text for one in told if one.role == "user" and one.kind == "plain"]
    calls = [call for call in join_calls(told) if call.asked_by == "assistant"]
    requests = [*before[_REQUEST], *asked]
    done = [line for part in before[_DONE] for line in part.splitlines() if line.strip()]
    made = [f"- {call.tool} {_cut(call.arguments, 120)}: {judge(call).status}" for call in calls]
    results = [
        f"- {call.tool} {_cut(call.arguments, 200)} gave {_cut(call.result or 'nothing', 400)}"
        for call in calls[-_LAST_CALLS:]
    ]
    parts = [
        (_HAPPENED, _cut(summary or "".join(before[_HAPPENED]), room // 4)),
        (_DONE, "\n".join(_last_lines([*done, *made], room // 4))),
        (_RESULTS, "\n".join(results)),
        # The first says what all is about, the last what to do now.
        *(
            (_REQUEST, _cut(one, room // 4))
            for one in dict.fromkeys([*requests[:1], *requests[-1:]])
        ),
    ]
    return "\n\n".join([BEGIN, *(f"{heading}\n{text}" for heading, text in parts if text)])


def _sections(text: str) -> dict[str, list[str]]:
    """What a summary that was written before has under each heading; nothing of another text."""
    found: dict[str, list[str]] = {heading: [] for heading in _HEADINGS}
    current: list[str] | None = None
    for line in text.splitlines() if text.startswith(BEGIN) else ():
        if line in found:
            current = found[line]
            current.append("")
        elif current is not None:
            current[-1] += f"{line}\n"
    return {heading: [part.strip() for part in parts] for heading, parts in found.items()}


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
