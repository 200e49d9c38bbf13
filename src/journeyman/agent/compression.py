"""Context compression: a conversation that outgrows the model's context window continues in a new
session with the same system prompt and opening. A summary replaces the old messages: the model's
own words, and a list of the calls, because summaries written by models lose track of those.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from journeyman.agent.conversation import Conversation
from journeyman.models.model import JsonObject, Model, Reply
from journeyman.outcomes.judge import judge
from journeyman.records import Lineage, Message, SessionId, join_calls
from journeyman.records.errors import ContextFull, ModelUnavailable
from journeyman.text.truncation import one_line

_COMPRESS_AT = 0.75
"""Compress when this share of the window is used."""

_MIN_REPLY_TOKENS = 256

_CHARACTERS_PER_TOKEN = 3.0
"""A conservative estimate for text whose tokens no model has counted yet."""

_SUMMARY_TOKENS = 600
_LAST_CALLS = 4
_SUMMARY_SHARE = 0.25
"""The largest share of the window for a summary."""
_SUMMARY_CHARACTERS = 40_000
"""The longest summary where the window is unknown."""

INSTRUCTION = (
    "The conversation has become too long. Summarise it for yourself, so that you can go on "
    "without it: what the user wants, what is done, which facts and file names matter, what is "
    "left to do. Do not call tools. Answer with the summary only."
)
_HAPPENED = "What happened so far:"
_DONE = "What was done:"
_RESULTS = "The last results:"
_REQUEST = "What the user asked for:"
# Earlier summaries are parsed by these headings and by the first line.
_HEADINGS = (_HAPPENED, _DONE, _RESULTS, _REQUEST)
_FIRST_LINE = (
    "[CONTEXT SUMMARY]: Earlier messages of this conversation were summarised to save space."
)


def is_due(conversation: Conversation, prompt_tokens: int | None, window: int | None) -> bool:
    """Whether the next request would be too large; `prompt_tokens` is the size of the last one."""
    if window is None or not conversation.can_be_compressed:
        return False
    used = estimated_tokens(conversation.messages)
    if prompt_tokens is not None:
        newest = takewhile(lambda item: item.role != "assistant", reversed(conversation.messages))
        used = prompt_tokens + estimated_tokens([*newest])
    return used > min(_COMPRESS_AT * window, window - _MIN_REPLY_TOKENS)


def estimated_tokens(messages: Sequence[Message]) -> int:
    """An estimate from the length of the texts."""
    in_calls = sum(len(call.arguments) for message in messages for call in message.tool_calls)
    in_texts = sum(len(message.text) + 20 for message in messages)
    return int((in_calls + in_texts) / _CHARACTERS_PER_TOKEN)


def request_summary(
    conversation: Conversation,
    model: Model,
    tools: Sequence[JsonObject],
    cancelled: Callable[[], bool],
) -> Reply | None:
    """The model's own summary, from the same, cached messages; None if the model gives none."""
    messages = [*conversation.chat, {"role": "user", "content": INSTRUCTION}]
    try:
        return model.ask(messages, tools, max_tokens=_SUMMARY_TOKENS, cancelled=cancelled)
    except (ContextFull, ModelUnavailable):
        return None


def successor(
    conversation: Conversation, summary: str, new_id: SessionId, at: float, window: int | None
) -> Conversation:
    """The conversation that continues after this one."""
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
    limit = _SUMMARY_CHARACTERS
    if window is not None:
        limit = int(window * _SUMMARY_SHARE * _CHARACTERS_PER_TOKEN)
    text = _summary_text(conversation, summary.strip(), limit)
    child.add(child.input_message("user", text, at, kind="summary"))
    return child


def _summary_text(conversation: Conversation, summary: str, limit: int) -> str:
    """The conversation, including an earlier summary in it, in about `limit` characters."""
    messages = conversation.messages[conversation.lead :]
    earlier = _sections(next((item.text for item in messages if item.kind == "summary"), ""))
    new_requests = [item.text for item in messages if item.role == "user" and item.kind == "plain"]
    requests = [*earlier[_REQUEST], *new_requests]
    calls = [call for call in join_calls(messages) if call.asked_by == "assistant"]
    done = [line for part in earlier[_DONE] for line in part.splitlines() if line.strip()]
    done += [
        f"- {call.tool} {one_line(call.arguments, 120)}: {judge(call).status}" for call in calls
    ]
    results = [
        f"- {call.tool} {one_line(call.arguments, 200)} gave "
        f"{one_line(call.result or 'nothing', 400)}"
        for call in calls[-_LAST_CALLS:]
    ]
    parts = [
        (_HAPPENED, one_line(summary or "".join(earlier[_HAPPENED]), limit // 4)),
        (_DONE, "\n".join(_last_lines(done, limit // 4))),
        (_RESULTS, "\n".join(results)),
        # The first request states the goal, the last one what to do now.
        *(
            (_REQUEST, one_line(request, limit // 4))
            for request in dict.fromkeys([*requests[:1], *requests[-1:]])
        ),
    ]
    return "\n\n".join([_FIRST_LINE, *(f"{heading}\n{text}" for heading, text in parts if text)])


def _sections(text: str) -> dict[str, list[str]]:
    """The parts of an earlier summary by heading; empty for any other text."""
    sections: dict[str, list[str]] = {heading: [] for heading in _HEADINGS}
    current: list[str] | None = None
    for line in text.splitlines() if text.startswith(_FIRST_LINE) else ():
        if line in sections:
            current = sections[line]
            current.append("")
        elif current is not None:
            current[-1] += f"{line}\n"
    return {heading: [part.strip() for part in parts] for heading, parts in sections.items()}


def _last_lines(lines: Sequence[str], limit: int) -> list[str]:
    """As many of the last lines as fit `limit` characters, after the number of omitted ones."""
    kept: list[str] = []
    for line in reversed(lines):
        limit -= len(line) + 1
        if limit < 0:
            break
        kept.insert(0, line)
    omitted = len(lines) - len(kept)
    return [f"({omitted} earlier calls)", *kept] if omitted else kept
