"""Making openings: from the whole library or from one template, for one task. The library's arrays
are kept in memory and read again only when the library has changed.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from journeyman.embeddings.embedder import DIMENSIONS, Embedder, Vectors
from journeyman.records import Effect, Template
from journeyman.records.errors import WrongInput
from journeyman.store.patterns import StoredPattern
from journeyman.store.store import Store
from journeyman.templates.cost import tokens_of_note
from journeyman.templates.schemas.tool_schemas import LiveTools
from journeyman.templates.selecting.ranking import Index, Ranked
from journeyman.templates.selecting.selection import Candidate, Limits, Selection, select
from journeyman.templates.selecting.words import compounds, words, words_of
from journeyman.templates.shown.opening import Choice, Opening
from journeyman.templates.shown.opening_wording import note

_NEAREST = 96
"""How many of the nearest patterns are looked at closely."""

_MOST_AT_HAND = 5_000

_Candidates = tuple[list[Candidate], Vectors]


class Openings:
    """Makes openings from what a store has learned."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._revision = -1
        self._index: Index | None = None
        self._read: dict[int, StoredPattern] = {}

    def make(
        self,
        task: str,
        limits: Limits,
        *,
        live: LiveTools | None = None,
        template: Template | None = None,
    ) -> Opening:
        """The opening for a task, or for a template without one. It is empty, with a note that
        says why, where nothing fits.
        """
        if not task.strip() and template is None:
            raise WrongInput("An opening is made for a task. Say what the session is to do.")
        addendum = template.addendum.strip() if template else ""
        note_tokens = self._note_tokens(min(limits.most, 2), addendum)
        within = msgspec.structs.replace(limits, tokens=limits.tokens - note_tokens)
        if within.tokens <= 0 or within.most <= 0:
            selection, why = Selection(), _no_room(limits)
        elif task.strip() and not len(words(task)):
            selection, why = Selection(), "The task has no words to go by. Say what is to be done."
        else:
            candidates, vectors = self._candidates(task, template)
            selection = select(candidates, vectors, within, live, self._affinity(task, live))
            why = "" if selection.choices else _why_empty(selection, template, within)
        return Opening(
            task=task,
            choices=selection.choices,
            left_out=selection.left_out,
            note=why,
            addendum=addendum if selection.choices else "",
            template=f"{template.name}@{template.version}" if template else "",
            tokens=self._tokens(selection.choices, addendum),
        )

    def _candidates(self, task: str, template: Template | None) -> _Candidates:
        if template is None:
            return self._of_library(task)
        return self._of_template(task, template)

    def _of_library(self, task: str) -> _Candidates:
        index = self._current_index()
        vector = self._embedder.embed([task])[0]
        ranked = index.nearest(vector, words(task), compounds(task), most=_NEAREST)
        places = {one.row: one for one in ranked}
        stored = self._patterns_at([one.row for one in ranked])
        stored.sort(key=lambda one: (-places[one.row].score, one.pattern.id))
        # Read each time, because trials go on while the patterns stay the same.
        effects = self._store.templates.effects([one.pattern.id for one in stored])
        best = ranked[0].score if ranked else 1.0
        candidates = [
            Candidate(
                pattern=one.pattern,
                similarity=places[one.row].similarity,
                place=places[one.row].score / best,
                effect=effects.get(one.pattern.id, Effect()),
            )
            for one in stored
        ]
        return candidates, index.vectors_of([one.row for one in stored])

    def _of_template(self, task: str, template: Template) -> _Candidates:
        patterns = template.patterns
        effects = self._store.templates.effects([pattern.id for pattern in patterns])
        vectors = self._embedder.embed([pattern.intent for pattern in patterns])
        if task.strip():
            index = Index(range(len(patterns)), vectors, [words_of(one) for one in patterns])
            vector = self._embedder.embed([task])[0]
            ranked = index.nearest(vector, words(task), compounds(task), most=_NEAREST)
        else:  # in the order of the template, which has the most useful first
            ranked = [
                Ranked(row=row, similarity=0.0, score=1.0 - row / len(patterns))
                for row in range(len(patterns))
            ]
        best = ranked[0].score if ranked else 1.0
        candidates = [
            Candidate(
                pattern=patterns[one.row],
                similarity=one.similarity if task.strip() else None,
                place=one.score / best,
                effect=effects.get(patterns[one.row].id, Effect()),
            )
            for one in ranked
        ]
        return candidates, vectors[[one.row for one in ranked]]

    def _current_index(self) -> Index:
        revision = self._store.patterns.revision()
        if self._index is None or revision != self._revision:
            rows = self._store.patterns.search_rows()
            vectors = np.frombuffer(b"".join(row.vector for row in rows), dtype=np.float16)
            self._index = Index(
                [row.row for row in rows],
                vectors.astype(np.float32).reshape(-1, DIMENSIONS),
                [np.frombuffer(row.words, dtype=np.uint32) for row in rows],
            )
            self._revision = revision
            self._read = {}
        return self._index

    def _patterns_at(self, rows: Sequence[int]) -> list[StoredPattern]:
        """The patterns at rows; those that were asked for before are still at hand."""
        if len(self._read) > _MOST_AT_HAND:
            self._read = {}
        missing = [row for row in rows if row not in self._read]
        self._read |= {one.row: one for one in self._store.patterns.at(missing)}
        return [self._read[row] for row in rows if row in self._read]

    def _affinity(self, task: str, live: LiveTools | None) -> dict[str, float]:
        """How near a task is to what tools say of themselves."""
        if live is None or not live.names or not task.strip():
            return {}
        said = [f"{name.replace('_', ' ')}: {live.description(name)}" for name in live.names]
        vectors = self._embedder.embed([task, *said])
        return dict(zip(live.names, (vectors[1:] @ vectors[0]).tolist(), strict=True))

    def _note_tokens(self, examples: int, addendum: str) -> int:
        return tokens_of_note(f"{note(examples)}\n\n{addendum}", self._embedder.count_tokens)

    def _tokens(self, choices: Sequence[Choice], addendum: str) -> int:
        if not choices:
            return 0
        return self._note_tokens(len(choices), addendum) + sum(one.tokens for one in choices)


def _no_room(limits: Limits) -> str:
    return (
        f"The limits leave no room for an example: {limits.tokens} tokens and "
        f"{limits.most} examples at most."
    )


def _why_empty(selection: Selection, template: Template | None, limits: Limits) -> str:
    left = selection.left_out
    if not left:
        if template is not None:
            return f"The template {template.name} has no patterns."
        return "Nothing has been learned yet. `journeyman learn` learns from imported sessions."
    similar = [one for one in left if one.similarity is None or one.similarity >= limits.floor]
    if not similar:
        best = max(one.similarity or 0.0 for one in left)
        return (
            f"Nothing that was learned is similar enough to this task: the nearest has "
            f"{best:.3f}, and the floor is {limits.floor:.2f}."
        )
    nearest = similar[0].reason
    if len(similar) == 1:
        return f"The only similar pattern cannot be shown: {nearest}."
    return f"None of the {len(similar)} similar patterns can be shown. Of the nearest: {nearest}."
