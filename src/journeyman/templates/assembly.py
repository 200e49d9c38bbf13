"""What openings of every kind are put together from: what the task has in common with the tools,
the room that is left, the opening with its cost, and the reason why there is none.
"""

import msgspec

from journeyman.embeddings.embedder import Embedder
from journeyman.models.tool_list import own_words
from journeyman.templates.cost import CountTokens, tokens_of_note
from journeyman.templates.schemas.tool_schemas import LiveTools
from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.selection import Limits, Selection
from journeyman.templates.selecting.words import words
from journeyman.templates.shown.briefing import Briefing
from journeyman.templates.shown.opening import Opening

NEAREST = 96
"""How many of the nearest examples are looked at closely."""

_WORDS_IN_COMMON = 0.25
"""What the tool with most words in common with a task gains beside its nearness in meaning."""


def assembled(
    task: str,
    briefing: Briefing,
    selection: Selection,
    count: CountTokens,
    *,
    note: str = "",
    addendum: str = "",
    for_small_model: bool = False,
) -> Opening:
    """The opening with what it costs."""
    opening = Opening(
        task=task,
        briefing=briefing,
        choices=selection.choices,
        left_out=selection.left_out,
        note=note,
        addendum=addendum if selection.choices else "",
        for_small_model=for_small_model,
    )
    if opening.is_empty:
        return opening
    tokens = tokens_of_note(opening.system, count)
    tokens += sum(one.tokens for one in selection.choices)
    return msgspec.structs.replace(opening, tokens=tokens)


def left_beside(limits: Limits, said: str, count: CountTokens) -> Limits:
    """The limits that are left beside a text."""
    return msgspec.structs.replace(limits, tokens=limits.tokens - tokens_of_note(said, count))


def tool_affinity(task: str, live: LiveTools | None, embedder: Embedder) -> dict[str, float]:
    """How near a task is to what tools say of themselves."""
    if live is None or not live.names or not task.strip():
        return {}
    uses = own_words([live.description(name) for name in live.names])
    said = [f"{name.replace('_', ' ')}: {use}" for name, use in zip(live.names, uses, strict=True)]
    vectors = embedder.embed([task, *said])
    matched = Bm25([words(one) for one in said]).scores(words(task))
    near = vectors[1:] @ vectors[0] + _WORDS_IN_COMMON * matched / (matched.max() or 1.0)
    return dict(zip(live.names, near.tolist(), strict=True))


def no_room(limits: Limits) -> str:
    """That the limits leave no room."""
    return (
        f"The limits leave no room for an example: {limits.tokens} tokens and "
        f"{limits.most} examples at most."
    )


def why_empty(selection: Selection, limits: Limits) -> str:
    """Why no candidate was chosen; empty if there was none."""
    left = selection.left_out
    if not left:
        return ""
    similar = [one for one in left if one.similarity is None or one.similarity >= limits.floor]
    if not similar:
        best = max(one.similarity or 0.0 for one in left)
        return (
            f"Nothing that was learned is similar enough to this task: the nearest has "
            f"{best:.3f}, and the floor is {limits.floor:.2f}."
        )
    if len(similar) == 1:
        return f"The only similar pattern cannot be shown: {similar[0].reason}."
    return (
        f"None of the {len(similar)} similar patterns can be shown. Of the nearest: "
        f"{similar[0].reason}."
    )
