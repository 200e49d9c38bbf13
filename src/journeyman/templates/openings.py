"""Making openings: from what a project has taught, from the whole library, or from one template,
for one task. What was learned is kept in memory and read again only when it has changed.
"""

import sys
from collections.abc import Sequence
from typing import Any, Literal

from msgspec.structs import replace

from journeyman.embeddings.embedder import Embedder
from journeyman.models.chat_text import own_words
from journeyman.records import Effect, Pattern, PatternId, Template
from journeyman.records.errors import WrongInput
from journeyman.records.playbook import Playbook
from journeyman.records.project import is_in_project
from journeyman.store.episodes import EpisodeRow
from journeyman.store.store import Store
from journeyman.templates.examples import episode_pattern, tokens_of, tokens_of_note
from journeyman.templates.experience import Experience, brief, carried_over
from journeyman.templates.playbook import build_playbook
from journeyman.templates.ranking import (
    Bm25,
    Index,
    Ranked,
    says_nothing,
    task_words,
    words,
    words_of,
)
from journeyman.templates.selection import (
    Candidate,
    Limits,
    Selection,
    select,
    select_in_order,
    too_far,
    why_not,
)
from journeyman.templates.shown.briefing import ELSEWHERE, Briefing, briefing_text, episode_line
from journeyman.templates.shown.opening import Choice, LeftOut, Opening
from journeyman.templates.shown.wording import note
from journeyman.templates.tool_schemas import LiveTools
from journeyman.templates.tool_translation import find_dialect, operation_of, translate_pattern
from journeyman.templates.translation.argument_fields import SHELLS

Style = Literal["auto", "text", "messages"]
"""How experience is told. `text`: a briefing in words and at most one episode as messages, which
suits strong models. `messages`: examples as messages, which suits small models and tools that no
model knows. `auto` decides by the model and the tools."""

_NEAREST = 96
"""How many of the nearest examples are looked at closely."""

_WORDS_IN_COMMON = 0.25
"""What the tool with most words in common with a task gains beside its nearness in meaning."""

_TAKEN_APART = 24
_MOST_EPISODES = 3
_JUDGED_BY = 5
"""By how many of the nearest it is decided whether anything fits, and whether the tools are known.
"""

_LONGEST_EXAMPLE = 450
"""In tokens: a longer episode is told in a line."""

_A_LINE = 8
"""What an episode's line costs beside its text, its share of the heading included."""

_BRIEFING_FLOOR = 0.6
"""What share of the floor for examples a briefing needs: it tells what holds in the project, which
also helps where no request was quite like this one. Questions about something else altogether were
at 0.08 to 0.16 from the nearest of a project's requests, its own later requests at 0.20 and more.
"""

_WITHOUT_WORDS = 0.83
"""The same where the task has no word in common with the nearest requests: random letters came as
near as 0.23."""


class Openings:
    """Makes openings from what a store has learned."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._revision = -1
        self._rows: list[EpisodeRow] = []
        self._experiences: dict[str, Experience] = {}

    def make(
        self,
        task: str,
        limits: Limits,
        *,
        live: LiveTools | None = None,
        template: Template | None = None,
        project: str = "",
        style: Style = "auto",
    ) -> Opening:
        """The opening for a task, or for a template without one; an empty one says why."""
        if not task.strip() and template is None:
            raise WrongInput("An opening is made for a task. Say what the session is to do.")
        if task.strip() and says_nothing(task):
            missing = "asks for no work" if any(map(str.isalnum, task)) else "has no words to go by"
            return Opening(task=task, note=f"The task {missing}. Say what is to be done.")
        if template is not None:
            making = _Making(self._store, self._embedder, task, limits, live)
            return making.from_template(template)
        experience = self.experience(project)
        opening = self.from_experience(task, limits, experience, live=live, style=style)
        if opening.is_empty and experience.project == project != "":
            elsewhere = self._elsewhere(project)
            found = self.from_experience(task, limits, elsewhere, live=live, style=style)
            return opening if found.is_empty else found
        return opening

    def experience(self, project: str = "") -> Experience:
        """What was learned in a project. Where none is named, that is the whole library; where the
        one that is named has taught nothing, it is what other projects taught.
        """
        revision = self._store.patterns.revision()
        if revision != self._revision:
            self._rows = self._store.episodes.rows()
            self._experiences = {}
            self._revision = revision
        if project not in self._experiences:
            rows = [one for one in self._rows if not project or is_in_project(one.project, project)]
            taught = bool(rows) or not project
            self._experiences[project] = (
                Experience(project, rows, self._embedder) if taught else self._elsewhere(project)
            )
        return self._experiences[project]

    def _elsewhere(self, project: str) -> Experience:
        """What the other projects taught, as far as it carries over."""
        key = f"{project}\0"
        if key not in self._experiences:
            rows = [one for one in self._rows if not is_in_project(one.project, project)]
            self._experiences[key] = Experience(ELSEWHERE, carried_over(rows), self._embedder)
        return self._experiences[key]

    def playbook(self, project: str) -> Playbook:
        """The playbook of a project with requests that its commands and files served."""
        experience = self.experience(project)
        if experience.project != project or not project:
            return Playbook(project=project)
        requests = self._store.episodes.requests([one.row for one in experience.rows])
        return build_playbook(project, experience.rows, requests)

    def from_experience(
        self,
        task: str,
        limits: Limits,
        experience: Experience,
        *,
        live: LiveTools | None = None,
        style: Style = "auto",
    ) -> Opening:
        """The opening for a task from this experience."""
        making = _Making(self._store, self._embedder, task, limits, live)
        return making.from_experience(experience, style)


class _Making:
    """The making of one opening."""

    def __init__(
        self, store: Store, embedder: Embedder, task: str, limits: Limits, live: LiveTools | None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._count = embedder.count_tokens
        self._task = task
        self._limits = limits
        self._live = live
        self._tools = None if live is None else live.names

    def from_experience(self, experience: Experience, style: Style) -> Opening:
        """The opening from what was learned."""
        limits = self._limits
        if limits.tokens <= 0:
            return self._no_room()
        # A small model copies the call for the nearest request, so the request decides.
        ranked = experience.nearest(self._task, widened=not limits.alike)
        if why := self._why_nothing_fits(ranked, experience.nearness_to_commands(self._task)):
            return Opening(task=self._task, note=why)
        likely = experience.likely_commands(self._task, ranked)
        candidates = self._candidates(experience, ranked[:_NEAREST])
        if (self._style(candidates) if style == "auto" else style) == "messages":
            return self._as_messages(experience, candidates)
        briefing = brief(experience, ranked, likely, limits.tokens, self._count, tools=self._tools)
        within = self._left_beside(f"{briefing_text(briefing)}\n\n{note(1)}")
        selection, others = self._examples(candidates, within)
        opening = self._assembled(replace(briefing, episodes=tuple(others)), selection)
        return self._no_room() if opening.is_empty else opening

    def _as_messages(self, experience: Experience, candidates: Sequence[Candidate]) -> Opening:
        """Examples as messages; unless the model is small, with the mistakes that recur."""
        limits, briefing = self._limits, Briefing()
        if not limits.alike:
            candidates = self._with_single_calls(candidates)
            half = limits.tokens // 2
            briefing = brief(experience, (), (), half, self._count, tools=self._tools)
        said = f"{briefing_text(briefing)}\n\n{note(min(limits.most, 2), short=limits.alike)}"
        within = self._left_beside(said)
        if within.tokens <= 0 or limits.most <= 0:
            return self._no_room()
        selection = select(candidates, within, self._live, self._tool_affinity())
        if not selection.choices:
            return self._assembled(Briefing(), selection, note=selection.why_empty(within))
        return self._assembled(briefing, selection, for_small_model=limits.alike)

    def from_template(self, template: Template) -> Opening:
        """The opening from one template; without a task, its patterns in order."""
        addendum, patterns = template.addendum.strip(), template.patterns
        within = self._left_beside(f"{note(min(self._limits.most, 2))}\n\n{addendum}")
        if within.tokens <= 0:
            return self._no_room()
        effects = self._store.templates.effects([pattern.id for pattern in patterns])
        candidates = [
            Candidate(pattern=one, similarity=None, place=1.0, effect=effects.get(one.id, Effect()))
            for one in patterns
        ]
        if self._task.strip():
            vectors = self._embedder.embed([pattern.intent for pattern in patterns])
            index = Index(range(len(patterns)), vectors, [words_of(one) for one in patterns])
            vector = self._embedder.embed([self._task])[0]
            ranked = index.nearest(vector, task_words(self._task), most=_NEAREST)
            near = [
                replace(candidates[one.row], similarity=one.similarity, place=one.score)
                for one in ranked
            ]
            selection = select(near, within, self._live, self._tool_affinity())
        else:
            selection = select_in_order(candidates, within, self._live)
        empty = f"The template {template.name} has no patterns."
        why = "" if selection.choices else selection.why_empty(within) or empty
        opening = self._assembled(Briefing(), selection, note=why, addendum=addendum)
        return replace(opening, template=f"{template.name}@{template.version}")

    def _assembled(self, briefing: Briefing, selection: Selection, **said: Any) -> Opening:
        """The opening with what it costs."""
        if not selection.choices:
            said.pop("addendum", None)
        opening = Opening(
            task=self._task,
            briefing=briefing,
            choices=selection.choices,
            left_out=selection.left_out,
            **said,
        )
        if opening.is_empty:
            return opening
        tokens = sum(one.tokens for one in selection.choices)
        return replace(opening, tokens=tokens + tokens_of_note(opening.system, self._count))

    def _no_room(self) -> Opening:
        note = (
            f"The limits leave no room for an example: {self._limits.tokens} tokens and "
            f"{self._limits.most} examples at most."
        )
        return Opening(task=self._task, note=note)

    def _left_beside(self, said: str) -> Limits:
        tokens = self._limits.tokens - tokens_of_note(said, self._count)
        return replace(self._limits, tokens=tokens)

    def _tool_affinity(self) -> dict[str, float]:
        """How near the task is to what tools say of themselves."""
        if not self._live or not self._tools or not self._task.strip():
            return {}
        uses = own_words([self._live.description(name) for name in self._tools])
        named = zip(self._tools, uses, strict=True)
        said = [f"{name.replace('_', ' ')}: {use}" for name, use in named]
        vectors = self._embedder.embed([self._task, *said])
        matched = Bm25([words(one) for one in said]).scores(words(self._task))
        near = vectors[1:] @ vectors[0] + _WORDS_IN_COMMON * matched / (matched.max() or 1.0)
        return dict(zip(self._tools, near.tolist(), strict=True))

    def _candidates(self, experience: Experience, ranked: Sequence[Ranked]) -> list[Candidate]:
        """The nearest episodes that may be examples, as calls of the live tools."""
        rows = [one.row for one in ranked if experience.at(one.row).ending == "well"]
        found = self._store.episodes.by_row(rows)
        near = [one for one in ranked if one.row in found and found[one.row].teaches]
        translated = [self._translated(episode_pattern(found[one.row])) for one in near]
        # Read each time, because trials go on while the episodes stay the same.
        effects = self._store.templates.effects([pattern.id for pattern, _ in translated])
        return [
            Candidate(
                pattern=pattern,
                similarity=one.similarity,
                place=one.score,
                effect=effects.get(pattern.id, Effect()),
                untranslatable=why,
            )
            for one, (pattern, why) in zip(near, translated, strict=True)
        ]

    def _with_single_calls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The examples, and each call of the nearest ones by itself: where whole episodes are too
        long to show all tools that are needed, single calls may.
        """
        found = list(candidates)
        near = candidates[:_TAKEN_APART]
        names = [f"{one.pattern.id}/{at}" for one in near for at in range(len(one.pattern.steps))]
        effects = self._store.templates.effects(names)
        for one in near:
            for number, step in enumerate(one.pattern.steps if len(one.pattern.steps) > 1 else ()):
                id_ = PatternId(f"{one.pattern.id}/{number}")
                single = replace(one.pattern, id=id_, kind="first_try", steps=(step,))
                single = replace(single, tokens=tokens_of(single, self._count))
                found.append(replace(one, pattern=single, effect=effects.get(id_, one.effect)))
        return found

    def _translated(self, pattern: Pattern) -> tuple[Pattern, str]:
        """A pattern as calls of the live tools; where that cannot be, as it was, and why."""
        dialect = find_dialect(self._tools or ())
        if dialect is None or self._live is None or not self._live.misfit_of(pattern):
            return pattern, ""
        found = translate_pattern(pattern, dialect, self._live)
        if isinstance(found, str):
            return pattern, found
        return replace(found, tokens=tokens_of(found, self._count)), ""

    def _style(self, candidates: Sequence[Candidate]) -> Style:
        if self._limits.alike:
            return "messages"
        if self._tools:
            is_known = find_dialect(self._tools) or not SHELLS.isdisjoint(self._tools)
            return "text" if is_known else "messages"
        steps = [step for one in candidates[:_JUDGED_BY] for step in one.pattern.steps]
        known = sum(operation_of(step.tool, step.arguments) is not None for step in steps)
        return "messages" if 2 * known < len(steps) else "text"

    def _examples(
        self, candidates: Sequence[Candidate], limits: Limits
    ) -> tuple[Selection, list[Pattern]]:
        """The nearest examples, each of another request: the first in full if it is short enough
        and fits the live tools, the others to be told in a line each.
        """
        choices: list[Choice] = []
        lines: list[Pattern] = []
        left_out: list[LeftOut] = []
        room, requests = limits.tokens, set[str]()
        unlimited = replace(limits, tokens=sys.maxsize)
        for one in candidates:
            pattern, reason = one.pattern, why_not(one, unlimited, None)
            if not reason and len(requests) >= min(_MOST_EPISODES, limits.most):
                reason = f"enough are chosen ({len(requests)})"
            elif not reason and pattern.intent in requests:
                reason = "its request is shown already"
            if not reason:
                in_full = not requests and pattern.tokens <= min(_LONGEST_EXAMPLE, room)
                in_full = in_full and not (self._live and self._live.misfit_of(pattern))
                cost = pattern.tokens
                if not in_full:
                    cost = self._count(episode_line(pattern)) + _A_LINE
                if cost > room:
                    reason = f"no room: {cost} tokens, {room} left"
            if reason:
                left_out.append(one.left_out(reason))
                continue
            room -= cost
            requests.add(pattern.intent)
            if in_full:
                choices.append(one.chosen(f"the nearest request ({one.similarity or 0.0:.2f})"))
            else:
                lines.append(pattern)
        return Selection.of(choices, left_out), lines

    def _why_nothing_fits(self, ranked: Sequence[Ranked], near: float) -> str:
        """Why nothing that was learned fits; `near` is how near the nearest command is."""
        if not ranked:
            return "Nothing has been learned yet. `journeyman learn` learns from imported sessions."
        first, floor = ranked[:_JUDGED_BY], self._limits.floor
        best = max([near, *(one.similarity for one in first)])
        if best < floor * _BRIEFING_FLOOR:
            return too_far(best, floor)
        if best < floor * _WITHOUT_WORDS and not any(one.matched for one in first):
            return "Nothing that was learned has a word in common with this task."
        return ""
