"""Openings from one template: its patterns in order, or those that fit a task."""

import msgspec

from journeyman.embeddings.embedder import Embedder, Vectors
from journeyman.records import Effect, Template
from journeyman.store.store import Store
from journeyman.templates.assembly import (
    NEAREST,
    assembled,
    left_beside,
    no_room,
    tool_affinity,
    why_empty,
)
from journeyman.templates.schemas.tool_schemas import LiveTools
from journeyman.templates.selecting.ranking import Index
from journeyman.templates.selecting.selection import (
    Candidate,
    Limits,
    Selection,
    select,
    why_not,
)
from journeyman.templates.selecting.words import compounds, words, words_of
from journeyman.templates.shown.briefing import Briefing
from journeyman.templates.shown.opening import Choice, LeftOut, Opening
from journeyman.templates.shown.opening_wording import note


class TemplateOpenings:
    """Makes openings from templates. What trials found about patterns is read from the store."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    def make(
        self, task: str, limits: Limits, live: LiveTools | None, template: Template
    ) -> Opening:
        """The opening for a task; without one, the patterns of the template in order."""
        count = self._embedder.count_tokens
        addendum = template.addendum.strip()
        within = left_beside(limits, f"{note(min(limits.most, 2))}\n\n{addendum}", count)
        if within.tokens <= 0:
            return Opening(task=task, note=no_room(limits))
        if task.strip():
            candidates, vectors = self._of_template(task, template)
            affinity = tool_affinity(task, live, self._embedder)
            selection = select(candidates, vectors, within, live, affinity)
        else:
            selection = self._in_order(template, within, live)
        empty = f"The template {template.name} has no patterns."
        why = "" if selection.choices else why_empty(selection, within) or empty
        opening = assembled(task, Briefing(), selection, count, note=why, addendum=addendum)
        return msgspec.structs.replace(opening, template=f"{template.name}@{template.version}")

    def _of_template(self, task: str, template: Template) -> tuple[list[Candidate], Vectors]:
        patterns = template.patterns
        effects = self._store.templates.effects([pattern.id for pattern in patterns])
        vectors = self._embedder.embed([pattern.intent for pattern in patterns])
        index = Index(range(len(patterns)), vectors, [words_of(one) for one in patterns])
        ranked = index.nearest(
            self._embedder.embed([task])[0], words(task), compounds(task), most=NEAREST
        )
        candidates = [
            Candidate(
                pattern=patterns[one.row],
                similarity=one.similarity,
                place=one.score,
                effect=effects.get(patterns[one.row].id, Effect()),
            )
            for one in ranked
        ]
        return candidates, vectors[[one.row for one in ranked]]

    def _in_order(self, template: Template, limits: Limits, live: LiveTools | None) -> Selection:
        """A template without a task: its patterns in their order, as many as are asked for and
        fit.
        """
        effects = self._store.templates.effects([pattern.id for pattern in template.patterns])
        choices: list[Choice] = []
        left_out: list[LeftOut] = []
        room = limits.tokens
        for pattern in template.patterns:
            effect = effects.get(pattern.id, Effect())
            one = Candidate(pattern=pattern, similarity=None, place=1.0, effect=effect)
            reason = why_not(one, limits, live)
            if not reason and len(choices) >= limits.most:
                reason = f"enough are chosen ({limits.most})"
            elif not reason and pattern.tokens > room:
                reason = f"no room: {pattern.tokens} tokens, {room} left"
            if reason:
                left_out.append(LeftOut(pattern=pattern, reason=reason))
                continue
            room -= pattern.tokens
            place = f"number {len(choices) + 1} of the template"
            choices.append(Choice(pattern=pattern, reason=place, tokens=pattern.tokens))
        return Selection(choices=tuple(choices), left_out=tuple(left_out))
